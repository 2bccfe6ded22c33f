#!/usr/bin/env bash
# Expected: a stemmer of Indonesian joins the forms of a word, buy and buyer; words of quantity have
# other values and stay apart, as stemmers of English keep "quarter" and "four". Seen: the parts of
# numerals are taken for prefixes. Seperempat (a quarter), keempat (the fourth) and empat (four) are
# all empat; sepuluh (ten) is puluh, seribu (a thousand) ribu; and of 3,5 the comma goes, so that three
# and a half are 3 and 5. Version: PySastrawi 1.2.1. Matters: a shop's search and the detection of
# near-duplicates, which work on stems, take a quarter of a kilo for four kilos.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check PySastrawi==1.2.1
cat > show.py <<'PYTHON'
from Sastrawi.Stemmer.StemmerFactory import StemmerFactory

stemmer = StemmerFactory().create_stemmer()
for text, meaning, stems in (
    ("pembeli", "buyer", "beli"),
    ("empat kilo", "four kilos", "empat kilo"),
    ("seperempat kilo", "a quarter of a kilo", "empat kilo"),
    ("keempat", "the fourth", "empat"),
    ("sepuluh", "ten", "puluh"),
    ("seribu", "a thousand", "ribu"),
    ("ukuran 3,5", "size three and a half", "ukur 3 5"),
):
    seen = stemmer.stem(text)
    print(f"{text} ({meaning}) -> {seen}")
    assert seen == stems
PYTHON
HOME=$folder venv/bin/python show.py
