#!/usr/bin/env bash
# Expected: a column of fractions, 1/2 and 3/4, that is read from CSV is text, since it is not a
# number; nothing in it says a date. Seen: it is a column of dates, 2 January and 4 March 2001, the year
# being agate's own choice; 7/2 is 2 July. "5m" and "10m" are five and ten minutes, and 4,5 is 45. One
# value that does not fit, "7/33", makes the whole column text again. Version: agate 1.14.2, the
# library under csvkit. Matters: answers of maths problems, sizes and ratings change on their way
# through csvjson or csvsql, and whether they do depends on the other rows.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check agate==1.14.2
cat > show.py <<'PYTHON'
from datetime import date, timedelta
from decimal import Decimal
from io import StringIO

import agate


def column(cells):
    lines = ["key,value", *(f'{key},"{cell}"' for key, cell in enumerate(cells))]
    table = agate.Table.from_csv(StringIO("\n".join(lines)))
    return type(table.column_types[1]).__name__, [row["value"] for row in table.rows]


for cells, kind, values in (
    (["1/2", "3/4"], "Date", [date(2001, 1, 2), date(2001, 3, 4)]),
    (["7/2"], "Date", [date(2001, 7, 2)]),
    (["1/2", "7/33"], "Text", ["1/2", "7/33"]),
    (["5m", "10m"], "TimeDelta", [timedelta(minutes=5), timedelta(minutes=10)]),
    (["4,5", "3,8"], "Number", [Decimal(45), Decimal(38)]),
):
    seen = column(cells)
    print(cells, "->", seen[0], *seen[1])
    assert seen == (kind, values)
PYTHON
HOME=$folder venv/bin/python show.py
