"""Runs where vLLM's CPU build is installed: its interpreted Triton kernel for experts and float64.

    TRITON_INTERPRET=1 python triton_tool.py '[[16, 4, 100, "float32", 72, 40]]'

A case is experts, chosen ones, tokens, precision, hidden size and width of an expert. Triton's
interpreter computes every program of a launch with NumPy: blocks, masks and strides are those of a
GPU, compilation and memory are not. vLLM's CPU build hides Triton from itself, and has not the two
CUDA operations around the kernel: here they are torch.
"""

import importlib
import json
import sys

import torch

from tasks.engines.rollout_vllm.environment import prepare_environment

prepare_environment()

import vllm.triton_utils  # noqa: E402

vllm.triton_utils.importing.HAS_TRITON = True
importlib.reload(vllm.triton_utils)

from triton.runtime.interpreter import InterpretedFunction  # noqa: E402
from vllm.model_executor.layers.fused_moe.fused_moe import (  # noqa: E402
    fused_experts_impl,
    fused_moe_kernel,
)

OPERATIONS = torch.library.Library("_moe_C", "DEF")
OPERATIONS.define(
    "moe_align_block_size(Tensor chosen, int experts, int block, Tensor(a!) places,"
    " Tensor(b!) owners, Tensor(c!) total, Tensor? map) -> ()"
)
OPERATIONS.define("moe_sum(Tensor parts, Tensor(a!) out, Tensor? chosen, Tensor? map) -> ()")


def align(
    chosen: torch.Tensor,
    experts: int,
    block: int,
    places: torch.Tensor,
    owners: torch.Tensor,
    total: torch.Tensor,
    expert_map: torch.Tensor | None,
) -> None:
    """Sort choices by expert, each expert's filled up to whole blocks, as vLLM documents it."""
    assert expert_map is None
    flat = chosen.flatten()
    places.fill_(len(flat))
    start = 0
    for expert in range(experts):
        own = (flat == expert).nonzero()[:, 0]
        end = start + -(-len(own) // block) * block
        places[start : start + len(own)] = own.int()
        owners[start // block : end // block] = expert
        start = end
    total.fill_(start)


def add(
    parts: torch.Tensor,
    out: torch.Tensor,
    chosen: torch.Tensor | None,
    expert_map: torch.Tensor | None,
) -> None:
    """Sum the chosen experts of a token."""
    assert chosen is None
    assert expert_map is None
    out.copy_(parts.sum(1))


OPERATIONS.impl("moe_align_block_size", align, "CPU")
OPERATIONS.impl("moe_sum", add, "CPU")


def difference(experts: int, top: int, tokens: int, dtype: str, hidden: int, width: int) -> float:
    """Compare the kernel's outputs with float64's; return the largest difference to the largest."""
    draws = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=draws).to(getattr(torch, dtype)) / shape[-1] ** 0.5

    data, first = normal(tokens, hidden), normal(experts, 2 * width, hidden)
    second, scores = normal(experts, hidden, width), torch.randn(tokens, experts, generator=draws)
    weights, chosen = scores.softmax(-1).topk(top)
    found = fused_experts_impl(data, first, second, weights, chosen.int())

    inner = torch.einsum("td,tkwd->tkw", data.double(), first[chosen].double())
    gate, up = inner.chunk(2, -1)
    outer = torch.einsum(
        "tkw,tkdw->tkd", torch.nn.functional.silu(gate) * up, second[chosen].double()
    )
    wanted = (weights.double()[..., None] * outer).sum(1)
    return float((found.double() - wanted).abs().max() / wanted.abs().max())


if __name__ == "__main__":
    assert isinstance(fused_moe_kernel, InterpretedFunction)
    sys.stdout.write(json.dumps([difference(*case) for case in json.loads(sys.argv[1])]))
