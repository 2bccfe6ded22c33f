#!/usr/bin/env bash
# Expected: in a filter that is written in SQL, "lang" is the column and 'th' is the text, as in DuckDB,
# Postgres and DataFusion, on which this reader stands. Seen: double quotes make a text too, so
# "lang" = 'th' compares two different texts and keeps no row, "lang" != 'th' keeps every row, and
# neither says anything; only backticks quote a column. Version: pylance 14.0.2. Matters: a filter that
# was written for another engine selects nothing or everything from a table of rollouts.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check pylance==14.0.2 pyarrow==25.0.1
cat > show.py <<'PYTHON'
import lance
import pyarrow

table = pyarrow.table({"lang": ["th", "vi", "th"], "row": [1, 2, 3]})
data = lance.write_dataset(table, "rollouts.lance")
kept = {
    rule: data.to_table(filter=rule)["row"].to_pylist()
    for rule in (
        "lang = 'th'",
        "`lang` = 'th'",
        "lang != 'th'",
        "\"lang\" = 'th'",
        "\"lang\" != 'th'",
    )
}
for rule, rows in kept.items():
    print(f"{rule:16}", rows)
assert list(kept.values()) == [[1, 3], [1, 3], [2], [], [1, 2, 3]]
PYTHON
HOME=$folder venv/bin/python show.py
