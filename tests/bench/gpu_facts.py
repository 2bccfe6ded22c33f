"""What this GPU machine can do at all, one fact a line as JSON: `python -m tests.bench.gpu_facts`.

Every fact is found in a process of its own that ends within 30 seconds, so that one which fails,
hangs or kills its process hides no other: driver and devices, shared memory, copies between GPUs,
NCCL between all of them, one Triton kernel, one linear layer and one attention of packed sequences
of Transformer Engine, forward and backward.
"""

import json
import logging
import subprocess
import sys
from collections.abc import Mapping, Sequence

from tasks.platform.command_line import run

LIMIT_S = 30.0
TAIL_CHARS = 300
FACTS = {
    "driver": """
import subprocess
asked = "--query-gpu=name,driver_version,memory.total,compute_cap,mig.mode.current"
print(subprocess.run(["nvidia-smi", asked, "--format=csv,noheader"], check=True,
                     capture_output=True, text=True).stdout.strip())
""",
    "torch": """
import torch
print(torch.__version__, "CUDA", torch.version.cuda, "GPUs", torch.cuda.device_count(),
      torch.cuda.get_device_name(), torch.cuda.get_device_capability())
""",
    "shared_memory": """
import shutil
print(f"{shutil.disk_usage('/dev/shm').total / 2**30:.1f} GiB in /dev/shm")
""",
    "matmul": """
import time, torch
side, rounds = 8192, 20
one = torch.randn(side, side, device="cuda", dtype=torch.bfloat16)
one @ one
torch.cuda.synchronize()
started = time.perf_counter()
for _ in range(rounds):
    one @ one
torch.cuda.synchronize()
print(f"{2 * side**3 * rounds / (time.perf_counter() - started) / 1e12:.0f} TFLOPS in bf16")
""",
    "copies": """
import itertools, time, torch
count = torch.cuda.device_count()
data = torch.ones(2**28, dtype=torch.uint8).pin_memory()
data.cuda()
torch.cuda.synchronize()
started = time.perf_counter()
data.cuda()
torch.cuda.synchronize()
print(f"{data.numel() / (time.perf_counter() - started) / 1e9:.1f} GB/s from pinned memory")
pairs = list(itertools.combinations(range(count), 2))
print(sum(torch.cuda.can_device_access_peer(a, b) for a, b in pairs), "of", len(pairs), "pairs P2P")
""",
    "nccl": """
import os, time, torch
from torch import distributed as dist, multiprocessing as mp
def rank(number, count, path):
    torch.cuda.set_device(number)
    store = dist.FileStore(path, count)
    dist.init_process_group("nccl", store=store, rank=number, world_size=count)
    data = torch.ones(2**28, dtype=torch.bfloat16, device="cuda")
    dist.all_reduce(data)
    torch.cuda.synchronize()
    started = time.perf_counter()
    for _ in range(5):
        dist.all_reduce(data)
    torch.cuda.synchronize()
    took = time.perf_counter() - started
    bus = 2 * (count - 1) / count * 5 * 2 * data.numel() / took / 1e9
    if number == 0:
        print(torch.cuda.nccl.version(), f"all-reduce of {count} ranks: {bus:.0f} GB/s of bus")
    dist.destroy_process_group()
if __name__ == "__main__":
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        count = torch.cuda.device_count()
        if count == 1:
            rank(0, 1, os.path.join(folder, "store"))
        else:
            context = mp.get_context("fork")
            ranks = [context.Process(target=rank, args=(n, count, os.path.join(folder, "store")))
                     for n in range(count)]
            [one.start() for one in ranks]
            [one.join() for one in ranks]
            raise SystemExit(max(abs(one.exitcode or 0) for one in ranks))
""",
    "triton": """
import pathlib, runpy, sys, tempfile
code = '''
import torch, triton, triton.language as tl
@triton.jit
def add(x, y, out, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < size) + tl.load(y + at, mask=at < size),
             mask=at < size)
x = torch.randn(1000, device="cuda")
out = torch.empty_like(x)
add[(triton.cdiv(1000, 256),)](x, x, out, 1000, BLOCK=256)
assert torch.equal(out, x + x)
print("triton", triton.__version__)
'''
with tempfile.TemporaryDirectory() as folder:  # Triton reads the source of a kernel from its file
    path = pathlib.Path(folder) / "kernel.py"
    path.write_text(code)
    runpy.run_path(str(path))
""",
    "te_linear": """
import torch, transformer_engine, transformer_engine.pytorch as te
layer = te.Linear(256, 512, bias=False, params_dtype=torch.bfloat16)
data = torch.randn(64, 256, device="cuda", dtype=torch.bfloat16, requires_grad=True)
found = layer(data)
wanted = data.float() @ layer.weight.float().T
found.float().sum().backward()
print(transformer_engine.__version__, "largest difference",
      f"{float((found.float() - wanted).abs().max()):.2g}", "gradient", tuple(data.grad.shape))
""",
    "te_packed_attention": """
import torch, transformer_engine.pytorch as te
heads, groups, width, lengths = 8, 2, 128, [3, 61, 128]
ends = torch.tensor([0, 3, 64, 192], dtype=torch.int32, device="cuda")
total = int(ends[-1])
q = torch.randn(total, heads, width, device="cuda", dtype=torch.bfloat16, requires_grad=True)
k, v = (torch.randn(total, groups, width, device="cuda", dtype=torch.bfloat16, requires_grad=True)
        for _ in range(2))
attention = te.DotProductAttention(heads, width, num_gqa_groups=groups, qkv_format="thd",
                                   attn_mask_type="padding_causal")
out = attention(q, k, v, cu_seqlens_q=ends, cu_seqlens_kv=ends, max_seqlen_q=max(lengths),
                max_seqlen_kv=max(lengths), qkv_format="thd", attn_mask_type="padding_causal")
wanted, start = [], 0
for length in lengths:
    part = [x[start:start + length].float().transpose(0, 1) for x in (q, k, v)]
    wanted.append(torch.nn.functional.scaled_dot_product_attention(
        part[0], *[x.repeat_interleave(heads // groups, dim=0) for x in part[1:]], is_causal=True,
    ).transpose(0, 1).reshape(length, -1))
    start += length
gap = float((out.float() - torch.cat(wanted)).abs().max())
out.float().sum().backward()
assert gap < 0.05, gap
print(f"largest difference {gap:.2g}, gradients {tuple(k.grad.shape)}")
""",
}  # fmt: skip
"""Programs that print a fact, by its name, in the order in which they are run."""


def find(code: str, limit_s: float = LIMIT_S) -> dict[str, object]:
    """Run a program that prints a fact; say what it printed, or why it did not."""
    command = [sys.executable, "-c", code]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=limit_s, check=False
        )
    except subprocess.TimeoutExpired:
        return {"found": False, "said": f"not within {limit_s:.0f} s"}
    said = done.stdout if done.returncode == 0 else done.stderr or f"exit {done.returncode}"
    return {"found": done.returncode == 0, "said": said.strip()[-TAIL_CHARS:]}


def main(_: Sequence[str], facts: Mapping[str, str] = FACTS) -> None:
    """Print every fact when it is known."""
    for name, code in facts.items():
        print(json.dumps({"fact": name, **find(code)}), flush=True)  # noqa: T201 - the output


if __name__ == "__main__":
    logging.getLogger("tasks").setLevel(logging.ERROR)
    run(main)
