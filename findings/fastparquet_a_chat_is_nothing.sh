#!/usr/bin/env bash
# Expected: a column that a reader of Parquet does not support is refused, or left out of the list of
# columns. Seen: a list of structs (how every published set of chats is stored) is listed as a column
# and all its cells are None, without a word; a list of lists likewise. Columns of numbers, texts, flat
# lists and structs beside it are right. Version: fastparquet 2026.9.0. Matters: whoever reads chats
# through it (pandas' engine="fastparquet", and dask where it is chosen) drops every row as empty, and a
# count of missing values blames the data.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check fastparquet==2026.9.0 pyarrow==25.0.1
cat > show.py <<'PYTHON'
import pyarrow
import pyarrow.parquet
from fastparquet import ParquetFile

chat = [{"role": "user", "content": "2 + 2?"}, {"role": "assistant", "content": "4"}]
table = pyarrow.table(
    {"row": [1, 2], "tags": [["sum"], []], "messages": [chat, chat[:1]], "parts": [[[1], [2]], [[3]]]}
)
pyarrow.parquet.write_table(table, "chats.parquet")
file = ParquetFile("chats.parquet")
seen = file.to_pandas()
print("columns:", file.columns)
print(seen.to_string())
assert file.columns == ["row", "tags", "messages", "parts"]
assert list(seen["row"]) == [1, 2] and list(seen["tags"][0]) == ["sum"]
assert list(seen["messages"]) == [None, None] and list(seen["parts"]) == [None, None]
assert pyarrow.parquet.read_table("chats.parquet")["messages"].to_pylist()[0] == chat
PYTHON
HOME=$folder venv/bin/python show.py
