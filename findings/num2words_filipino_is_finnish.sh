#!/usr/bin/env bash
# Expected: a language that a library of number words lacks is refused, as num2words does for Malay
# (ms), Chinese (zh) and Tagalog (tl). Seen: the standard tag of Filipino, fil, is cut to its first
# two letters and answered in Finnish: 3 is "kolme"; so is fil_PH. Version: num2words 0.5.14.
# Matters: generated problems and prompts for the Philippines hold Finnish words, with no error.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check num2words==0.5.14
cat > show.py <<'PYTHON'
from num2words import num2words

for language in ("fil", "fil_PH", "fi"):
    print(language, num2words(3, lang=language))
    assert num2words(3, lang=language) == "kolme"
for language in ("tl", "ms", "zh"):
    try:
        num2words(3, lang=language)
    except NotImplementedError:
        print(language, "is refused")
    else:
        raise AssertionError(language)
PYTHON
HOME=$folder venv/bin/python show.py
