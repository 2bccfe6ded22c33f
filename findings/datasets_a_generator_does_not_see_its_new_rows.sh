#!/usr/bin/env bash
# Expected: Dataset.from_generator runs the generator, or at least notices that the file which it
# reads is another one, as load_dataset does for the same file. Seen: its result is kept under a
# digest of the generator's code and arguments. A file of the same name with new rows gives the old
# ones, in a new process too, without a word; so does a function of another module that the
# generator calls and that has changed. Version: datasets 5.2.0. Matters: "rollouts.jsonl" of each
# step or night is read once, and all later trainings are on the rows of the first.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check datasets==5.2.0 numpy==2.4.6 pandas==3.1.1 pyarrow==25.0.1
cat > show.py <<'PYTHON'
import subprocess
import sys
from pathlib import Path

READ = """
import json
import datasets
from cleaning import clean

datasets.disable_progress_bars()


def rows():
    for line in open("rows.jsonl"):
        yield {"text": clean(json.loads(line)["text"])}


generated = datasets.Dataset.from_generator(rows, cache_dir="cache")
loaded = datasets.load_dataset("json", data_files="rows.jsonl", split="train", cache_dir="cache")
print(*generated["text"], *loaded["text"])
"""


def read(text, body):
    Path("rows.jsonl").write_text('{"text": "%s"}' % text)
    Path("cleaning.py").write_text(f"def clean(text):\n    return {body}\n")
    command = [sys.executable, "-B", "-c", READ]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


first, other = read("first", "text.upper()"), read("second", "text.title()")
print("of the generator and of the file, first run:", first)
print("after rows and cleaning have changed:       ", other)
assert first == ["FIRST", "first"]
assert other == ["FIRST", "second"]
PYTHON
HOME=$folder venv/bin/python show.py
