#!/usr/bin/env bash
# Expected: 1.5 in Vietnamese is "một phẩy năm" (one point five), and 1.05 is another text. Seen: 1.5
# is read "một phẩy năm mươi" (one point fifty, as a count of hundredths), 3.1 "ba phẩy mười" (three
# point ten), and 1.05 is "một phẩy năm", which is how everybody reads 1.5. Indonesian in the same
# library reads digit by digit. Version: num2words 0.5.14. Matters: prompts, golds and speech with
# weights and prices: the words of one number are those of another.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check num2words==0.5.14
cat > show.py <<'PYTHON'
from num2words import num2words

for number, seen in {
    1.5: "một phẩy năm mươi",
    1.05: "một phẩy năm",
    3.1: "ba phẩy mười",
}.items():
    words = num2words(number, lang="vi")
    print(f"vi {number}: {words:22} id:", num2words(number, lang="id"))
    assert words == seen
assert num2words(1.05, lang="id") == "satu koma nol lima"
PYTHON
HOME=$folder venv/bin/python show.py
