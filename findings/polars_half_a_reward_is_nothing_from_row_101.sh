#!/usr/bin/env bash
# Expected: a frame of rows has floats where a row has one, or raises, since `strict` is on and its
# documentation promises an error for a value that does not match the inferred type. Seen: the type is
# inferred from the first 100 rows, and what comes later is cut to it. With 100 rewards of 0 or 1 in
# front, 0.9 is 0 and 2.9 is 2, without a word, from dicts and from tuples alike; the same numbers as a
# column raise, and one float among the first 100 keeps all. Version: polars 2.1.0. Matters: rewards
# that are mostly 0 or 1 with a few fractions behind them, prices, token counts with a mean: whether a
# fraction counts depends on where in the file the first one stands.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check polars==2.1.0
cat > show.py <<'PYTHON'
import polars as pl

FRACTIONS = [0.9, 2.9]


def as_rows(rewards):
    return [{"reward": reward} for reward in rewards]


whole = [0, 1] * 50
late, early = whole + FRACTIONS, whole[1:] + FRACTIONS
frames = {
    "dicts, 100 whole ones first": pl.from_dicts(as_rows(late), strict=True),
    "the same, by DataFrame": pl.DataFrame(as_rows(late), strict=True),
    "tuples": pl.DataFrame([(one,) for one in late], schema=["reward"], orient="row"),
    "dicts, 99 whole ones first": pl.from_dicts(as_rows(early)),
}
for name, frame in frames.items():
    seen = frame["reward"]
    print(f"{name:28} {seen.dtype} ends in {seen.tail(2).to_list()} sum {seen.sum()}")
    expected = FRACTIONS if "99" in name else [0, 2]
    assert seen.tail(2).to_list() == expected

try:
    pl.DataFrame({"reward": late})
except TypeError as error:
    print("a column:", str(error).splitlines()[0])
else:
    raise AssertionError("a column is read otherwise now")
PYTHON
HOME=$folder venv/bin/python show.py
