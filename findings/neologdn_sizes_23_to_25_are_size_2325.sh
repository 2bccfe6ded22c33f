#!/usr/bin/env bash
# Expected: a normaliser of Japanese text brings spellings together and leaves numbers as they are.
# Seen: by default it removes every tilde and wave dash, for they lengthen vowels in chats. Japanese
# writes ranges with them: "23~25cm" becomes "2325cm", "10〜20%" "1020%" and "1,000〜2,000円"
# "1,0002,000円". A range with a hyphen stays. tilde="normalize" keeps them. Version: neologdn 0.5.6,
# with which MeCab's dictionary of neologisms asks to prepare text. Matters: sizes, prices, dates and
# hours of Japanese listings and corpora, before they are counted, trained on or deduplicated.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check neologdn==0.5.6
cat > show.py <<'PYTHON'
import neologdn

for text, seen, kept in (
    ("23~25cm", "2325cm", "23~25cm"),
    ("10〜20%", "1020%", "10~20%"),
    ("1,000〜2,000円", "1,0002,000円", "1,000~2,000円"),
    ("10:00~18:00", "10:0018:00", "10:00~18:00"),
    ("23-25cm", "23-25cm", "23-25cm"),
):
    print(f"{text}: {neologdn.normalize(text)}, with normalize {neologdn.normalize(text, tilde='normalize')}")
    assert neologdn.normalize(text) == seen, text
    assert neologdn.normalize(text, tilde="normalize") == kept, text
PYTHON
HOME=$folder venv/bin/python show.py
