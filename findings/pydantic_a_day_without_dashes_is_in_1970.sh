#!/usr/bin/env bash
# Expected: a field of type datetime reads 20241105, a day in the basic form of ISO 8601, as the
# standard library does, or refuses it. Seen: pydantic takes a text of digits for seconds since
# 1970: 1970-08-23, 06:31:45, and gives it the zone UTC, so that AwareDatetime, which exists to
# refuse dates without a zone, is content. 20241105T101112Z, the same form with a time, is refused,
# and so is the day in a field of type date. Version: pydantic 2.14.3. Matters: a date of an order
# or of a decision that somebody wrote without dashes is valid and half a century too early.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check pydantic==2.14.3
cat > show.py <<'PYTHON'
from datetime import UTC, date, datetime

from pydantic import AwareDatetime, TypeAdapter, ValidationError

day = "20241105"
print("standard library:", datetime.fromisoformat(day))
assert datetime.fromisoformat(day) == datetime(2024, 11, 5)
for kind in (datetime, AwareDatetime):
    read = TypeAdapter(kind).validate_python(day)
    print("pydantic,", kind.__name__ + ":", read)
    assert read == datetime(1970, 8, 23, 6, 31, 45, tzinfo=UTC)
for kind, text in ((datetime, day + "T101112Z"), (date, day)):
    try:
        TypeAdapter(kind).validate_python(text)
    except ValidationError:
        print("pydantic,", kind.__name__ + ":", text, "is refused")
    else:
        raise AssertionError(text)
PYTHON
HOME=$folder venv/bin/python show.py
