#!/usr/bin/env bash
# Expected: a time in Thai words that the library writes is the time that it reads; and the clock of
# everyday Thai, in which eight "mong" is in the morning (the evening hours are "thum"), is read so.
# Seen: all hours from six to eleven in the morning come back twelve hours later, except eleven, which
# comes back as ten at night. "mong" without a word for the morning is taken for the afternoon. With
# "chao" (morning) behind it, it is read as meant. Version: pythainlp 5.4.0. Matters: opening hours,
# delivery windows and answers about times in Thai; nothing is refused, and both are valid times.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check pythainlp==5.4.0
cat > show.py <<'PYTHON'
from pythainlp.util import thaiword_to_time, time_to_thaiword

wrong = {}
for hour in range(24):
    time = f"{hour:02}:00"
    words = time_to_thaiword(time, fmt="m6h")
    if thaiword_to_time(words) != time:
        wrong[hour] = int(thaiword_to_time(words)[:2])
        print(f"{time} is written {words} and read {thaiword_to_time(words)}")
assert wrong == {6: 18, 7: 19, 8: 20, 9: 21, 10: 22, 11: 22}
morning = "แปดโมงเช้า"
print(morning, "is read", thaiword_to_time(morning))
assert thaiword_to_time(morning) == "08:00"
PYTHON
HOME=$folder PYTHAINLP_DATA=$folder/data venv/bin/python show.py
