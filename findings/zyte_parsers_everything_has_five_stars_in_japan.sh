#!/usr/bin/env bash
# Expected: a reader of ratings takes the rating and the best possible one from a text, or nothing.
# Seen: it takes the first number for the rating unless "of", "/" or the like stands between two. Where the
# scale is named first, as in Japanese, Korean and Turkish shops, every product has the
# best rating: "5つ星のうち4.3" is 5.0, "5점 만점에 4.3점" and "5 yıldız üzerinden 4,3" too, and
# "10分中8" is 10. In German, French, Thai, Indonesian and Vietnamese it is 4.3 of 5. Version:
# zyte-parsers 0.6.0. Matters: ratings of a cross-border catalogue: a whole country has perfect
# products, and the missing best rating is the only trace.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check zyte-parsers==0.6.0 parsel==1.10.0
cat > show.py <<'PYTHON'
from parsel import Selector
from zyte_parsers import extract_rating

for text, seen in {
    "4,3 von 5 Sternen": (4.3, 5.0),
    "4.3 จาก 5": (4.3, 5.0),
    "4,3 dari 5": (4.3, 5.0),
    "5つ星のうち4.3": (5.0, None),
    "5점 만점에 4.3점": (5.0, None),
    "5 yıldız üzerinden 4,3": (5.0, None),
    "10分中8": (10.0, None),
}.items():
    rating = extract_rating(Selector(text=f"<p>{text}</p>").css("p")[0])
    print(f"{text}: {rating.ratingValue} of {rating.bestRating}")
    assert (rating.ratingValue, rating.bestRating) == seen, text
PYTHON
HOME=$folder venv/bin/python show.py
