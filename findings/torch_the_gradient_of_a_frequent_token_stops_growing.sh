#!/usr/bin/env bash
# Expected: the gradient of a row of an embedding is the sum over all tokens that used it, as sum()
# and matmul of bfloat16 numbers on a CPU add in float32 and round at the end. Seen: the backward of
# an embedding, and of weight[ids], adds token after token in bfloat16. A gradient of 1 from each of
# 1,000 tokens is 256, where adding 1 no longer changes anything; float16 stops at 2,048. Of 20,000
# small gradients with noise a quarter of the sum remains. index_select, which reads the same rows,
# sums right. Version: torch 2.13.0, on a CPU. Matters: for a small model that is trained in
# bfloat16 on a laptop the gradients of frequent tokens (the end of a turn, blanks, digits) are a
# fraction of what they should be, and so is the norm that is clipped.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.4.6 ${TORCH_INDEX:+--index-url "$TORCH_INDEX"}
cat > show.py <<'PYTHON'
import torch
from torch.nn.functional import embedding


def gradient(dtype, read, upstream):
    weight = torch.zeros(2, upstream.shape[1], dtype=dtype, requires_grad=True)
    ids = torch.zeros(len(upstream), dtype=torch.long)
    read(weight, ids).backward(upstream.to(dtype))
    return weight.grad[0].float()


def selected(weight, ids):
    return weight.index_select(0, ids)


def by_embedding(weight, ids):
    return embedding(ids, weight)


for dtype, num_tokens, seen in (
    (torch.float32, 1000, 1000),
    (torch.bfloat16, 1000, 256),
    (torch.float16, 3000, 2048),
):
    ones = torch.ones(num_tokens, 4)
    stopped = gradient(dtype, by_embedding, ones).tolist()
    whole = gradient(dtype, selected, ones).tolist()
    print(dtype, num_tokens, "tokens: embedding", stopped[0], "index_select", whole[0])
    assert stopped == [seen] * 4
    assert whole == [num_tokens] * 4

noise = torch.randn(20_000, 64, generator=torch.Generator().manual_seed(0)) * 0.01 + 0.002
right = gradient(torch.float32, by_embedding, noise).mean().item()
small = gradient(torch.bfloat16, by_embedding, noise).mean().item()
print("20,000 tokens with noise: float32", round(right, 1), "bfloat16", round(small, 1))
assert small < 0.4 * right
assert abs(gradient(torch.bfloat16, selected, noise).mean().item() / right - 1) < 0.05
PYTHON
HOME=$folder venv/bin/python show.py
