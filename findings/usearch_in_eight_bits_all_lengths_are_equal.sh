#!/usr/bin/env bash
# Expected: dtype="i8" makes an index coarser; the metric stays what was asked for, and what cannot be
# stored in 8 bits is refused. Seen: every vector is divided by its length first, whatever the metric
# is. With l2sq, (0.3, 0.4), (3, 4) and (6, 8) are 0 apart, and with ip all three score the same, while
# f32, f16 and bf16 give the squared distances 0, 20.25 and 90.25. There is no warning, and the
# distances of i8 are on another scale besides. Version: usearch 2.26.6. Matters: neighbours by
# distance or by inner product (where length is popularity or confidence) become neighbours by
# angle when somebody saves memory, and a threshold for near-duplicates lets other rows through.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check usearch==2.26.6 numpy==2.4.6
cat > show.py <<'PYTHON'
import numpy
from usearch.index import Index

vectors = numpy.array([[0.3, 0.4], [3, 4], [6, 8], [4, 3]], numpy.float32)
names = ["(0.3, 0.4)", "(3, 4)", "(6, 8)", "(4, 3)"]


def distances(metric, dtype):
    index = Index(ndim=2, metric=metric, dtype=dtype)
    index.add(numpy.arange(4), vectors)
    matches = index.search(vectors[0], 4)
    return {names[key]: float(one) for key, one in zip(matches.keys, matches.distances, strict=True)}


for metric in ("l2sq", "ip"):
    for dtype in ("f32", "f16", "bf16", "i8"):
        seen = distances(metric, dtype)
        print(metric, dtype, {name: round(one, 2) for name, one in seen.items()})
        along = [seen[name] for name in names[:3]]
        if dtype == "i8":
            assert len(set(along)) == 1 and seen["(4, 3)"] > along[0]
        else:
            expected = [0, 20.25, 90.25] if metric == "l2sq" else [0.75, -1.5, -4]
            assert numpy.allclose(along, expected, atol=0.02)
PYTHON
HOME=$folder venv/bin/python show.py
