"""vLLM's Triton kernel for experts, interpreted on a CPU, with the experts of every preset."""

import json
import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from tasks.capacity.plan import PRESETS

pytestmark = pytest.mark.engines
TOOL = Path(__file__).parent / "triton_tool.py"
SHAPES = sorted(
    {(shape.experts, shape.experts_per_token) for _, shape, _ in PRESETS.values() if shape.experts}
)
NARROW = (72, 40)
"""Hidden size and width that are no multiples of a block: masks matter."""
TOKENS = (1, 100)
"""One token takes blocks of a token of its own, if there are many experts."""
ROUNDING = {"float32": 2e-6, "float16": 2e-3}
"""Not bf16: Triton 3.7's interpreter multiplies matrices of it as integers."""


@pytest.fixture(scope="module")
def differences():
    """By experts, chosen ones, tokens and precision: from float64's outputs, relative."""
    cases = list(product(SHAPES, TOKENS, ROUNDING))
    found = compute([(*shape, tokens, dtype, *NARROW) for shape, tokens, dtype in cases])
    return dict(zip(cases, found, strict=True))


def compute(cases: list[tuple[object, ...]]) -> list[float]:
    pytest.importorskip("vllm")
    done = subprocess.run(
        [sys.executable, TOOL, json.dumps(cases)],
        env=os.environ | {"TRITON_INTERPRET": "1"},
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "top-{1} of {0}".format(*shape))
@pytest.mark.parametrize("tokens", TOKENS)
@pytest.mark.parametrize("dtype", ROUNDING)
def test_the_triton_kernel_computes_the_chosen_experts(differences, shape, tokens, dtype):
    assert differences[shape, tokens, dtype] < ROUNDING[dtype]


def test_the_triton_kernel_computes_experts_of_a_presets_own_width():
    """One token of `single_node` takes a minute and 4 GB; the kernel loops over many blocks."""
    shape = PRESETS["single_node"][1]
    case = (shape.experts, shape.experts_per_token, 1, "float32", shape.hidden, shape.width)

    assert ROUNDING["float32"] > compute([case])[0]
