#!/usr/bin/env bash
# Expected: a row for which a function of Dataset.map returns nothing stays as it is, as all rows do if
# it returns nothing for any. Seen: the last row decides. If the function returned something for it, the
# rows for which it returned nothing are deleted; if not, all changes are thrown away, those of the other
# rows as well. With two processes each half has a last row of its own. Nothing is said, unless the first
# row is one of those and another is not: that is an error. Version: datasets 5.2.0. Matters: "if it has
# a comma, return it without" loses rows or does nothing, by the order of the rows and the number of
# processes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check datasets==5.2.0 numpy==2.4.6 pandas==3.1.1 pyarrow==25.0.1
cat > show.py <<'PYTHON'
import datasets

datasets.disable_progress_bars()
datasets.disable_caching()


def without_commas(row):
    if "," in row["answer"]:
        return {"answer": row["answer"].replace(",", "")}


def answers(rows, **processes):
    mapped = datasets.Dataset.from_dict({"answer": rows}).map(without_commas, **processes)
    return mapped["answer"][:]


if __name__ == "__main__":
    for rows, seen, processes in [
        (["1,299", "7", "2,500", "8,000"], ["1299", "2500", "8000"], {}),
        (["1,299", "2,500", "8,000", "7"], ["1,299", "2,500", "8,000", "7"], {}),
        (["1,299", "2,500", "8,000", "7"], ["1299", "2500", "8,000", "7"], {"num_proc": 2}),
        (["1,299", "2,500", "8,000"], ["1299", "2500", "8000"], {}),
    ]:
        print(rows, "->", answers(rows, **processes), processes or "")
        assert answers(rows, **processes) == seen
PYTHON
HOME=$folder HF_HUB_OFFLINE=1 venv/bin/python show.py
