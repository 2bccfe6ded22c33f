#!/usr/bin/env bash
# Expected: files of a shard that differ in their name before the extension are samples of their
# own. Seen: for webdataset the extension begins at the first dot of the name. v1.5_0000.json to
# v1.5_0002.json have the key v1 and the fields 5_0000.json to 5_0002.json: three rows are one
# sample, without a word, and who asks for the field json finds none. The same files as v1-5_... are
# three. A dot in the folder does no harm. Version: webdataset 1.0.2. Matters: names with the
# version of a model, a decimal learning rate or a host make one row of each shard.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check webdataset==1.0.2 numpy==2.4.6
cat > show.py <<'PYTHON'
import io
import tarfile

import webdataset


def samples(names):
    with tarfile.open("shard.tar", "w") as shard:
        for name in names:
            entry = tarfile.TarInfo(name)
            entry.size = 2
            shard.addfile(entry, io.BytesIO(b"{}"))
    rows = webdataset.WebDataset("shard.tar", shardshuffle=False)
    return [(row["__key__"], [key for key in row if not key.startswith("__")]) for row in rows]


for name in ("v1.5_000{}.json", "v1-5_000{}.json", "v1.5/000{}.json"):
    seen = samples(name.format(number) for number in range(3))
    print(name.format("*"), seen)
    if name.startswith("v1.5_"):
        assert seen == [("v1", ["5_0000.json", "5_0001.json", "5_0002.json"])]
    else:
        assert [fields for _, fields in seen] == [["json"]] * 3
PYTHON
HOME=$folder venv/bin/python show.py
