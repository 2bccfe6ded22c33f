"""What vLLM's kernels keep of logits: `TRITON_INTERPRET=1 python sets_tool.py IN OUT`.

`IN` has cases of logits [N, V], top-p and top-k; `OUT` the sets of their rows.
"""

import pickle
import sys
from pathlib import Path

import numpy as np
import torch

from tests.engines.rollout_vllm import second_runner  # noqa: F401, lets vLLM find the interpreter

# isort: split
from vllm.v1.sample.ops.topk_topp_sampler import apply_top_k_top_p
from vllm.v1.worker.gpu.sample.output import SamplingMaskTensors


def compacted(logits_NV: torch.Tensor, top_k: int) -> list[np.ndarray]:
    """Sets of finite logits, as an engine returns them to its owner."""
    drawn = torch.ones(len(logits_NV), dtype=torch.int32)
    lists = SamplingMaskTensors.from_logits(logits_NV, drawn, top_k).tolists()
    return [lists.slice_request(row, 1).token_ids for row in range(len(logits_NV))]


def kept(logits_NV: torch.Tensor, top_p: float, top_k: int) -> list[np.ndarray]:
    """Sets that rows are drawn from."""
    count, vocabulary = logits_NV.shape
    most = torch.full((count,), top_k, dtype=torch.int32) if top_k < vocabulary else None
    mass = torch.full((count,), top_p) if top_p < 1.0 else None
    return compacted(apply_top_k_top_p(logits_NV.clone(), most, mass), top_k)


if __name__ == "__main__":
    given, out = map(Path, sys.argv[1:])
    cases = pickle.loads(given.read_bytes())
    out.write_bytes(pickle.dumps([kept(*case) for case in cases]))
