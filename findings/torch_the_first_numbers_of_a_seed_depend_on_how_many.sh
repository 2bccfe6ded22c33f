#!/usr/bin/env bash
# Expected: with one seed, randn(16) begins with the numbers of randn(8), as rand(16) does with
# those of rand(8), and numpy's generator in both. Seen: from 16 numbers on torch takes another way:
# nothing of randn(15) is in randn(16), and of 17 numbers, which are no multiple of 16, all but the
# first are others than of 32. Version: torch 2.13.0, on a CPU. Matters: the noise of two runs that
# differ in nothing but the size of a small batch has nothing in common, so that a comparison paired
# by the seed is none; and a reference that draws row by row does not repeat what was drawn at once.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.4.6 ${TORCH_INDEX:+--index-url "$TORCH_INDEX"}
cat > show.py <<'PYTHON'
import numpy
import torch


def numbers_of(draw, count):
    numbers = draw(count, generator=torch.Generator().manual_seed(0))
    return [round(one, 4) for one in numbers.tolist()]


normal = {count: numbers_of(torch.randn, count) for count in (8, 15, 16, 17, 32)}
for count, numbers in normal.items():
    print(f"randn({count})", *numbers[:4])
assert normal[15][:8] == normal[8]
assert not set(normal[15]) & set(normal[16])
assert normal[32][:16] == normal[16]
assert normal[17][0] == normal[32][0]
assert all(one != other for one, other in zip(normal[17][1:], normal[32][1:17], strict=True))
assert numbers_of(torch.rand, 32)[:8] == numbers_of(torch.rand, 8)
few, many = (numpy.random.default_rng(0).standard_normal(count) for count in (8, 32))
assert few.tolist() == many[:8].tolist()
PYTHON
HOME=$folder venv/bin/python show.py
