#!/usr/bin/env bash
# Expected: text that is extracted from a page keeps what changes a number: 10<sup>8</sup> is 10^8 or
# 10 8 in plain text. Seen: raised and struck-out digits are joined to their neighbours: 10<sup>8</sup>
# is 108, <del>$50</del><ins>$30</ins> is $50$30, and with its filter for the main content Resiliparse
# makes 12 of 1&frasl;2. trafilatura marks them in its Markdown and not in its text, which is what it
# writes by default. Versions: trafilatura 2.3.1, resiliparse 2.0.1. Matters: these two made the
# text of large web corpora; magnitudes, areas, discounts and fractions of such pages are other numbers,
# and nothing in the row shows it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check trafilatura==2.3.1 lxml==6.1.3 lxml_html_clean==0.4.6 Resiliparse==2.0.1
cat > show.py <<'PYTHON'
import trafilatura
from resiliparse.extract.html2text import extract_plain_text

PAGE = """<html><body><article><h1>Numbers of the week</h1>
<p>Light travels about 3 x 10<sup>8</sup> metres in each second, as everybody learns at school.</p>
<p>The price of the lamp was <del>$50</del><ins>$30</ins> last week in all shops of the town.</p>
<p>A half is written as <sup>1</sup>&frasl;<sub>2</sub> in cookery books of every country.</p>
</article></body></html>"""
texts = {
    "trafilatura": trafilatura.extract(PAGE),
    "trafilatura, Markdown": trafilatura.extract(PAGE, output_format="markdown"),
    "resiliparse": extract_plain_text(PAGE),
    "resiliparse, main content": extract_plain_text(PAGE, main_content=True),
}
for name, text in texts.items():
    print(f"{name}:\n{text}\n")
    if name == "trafilatura, Markdown":
        assert "10<sup>8</sup>" in text and "~~$50~~" in text
    else:
        assert "3 x 108 metres" in text and "$50$30" in text
assert "A half is written as 12 in" in texts["resiliparse, main content"]
PYTHON
HOME=$folder venv/bin/python show.py
