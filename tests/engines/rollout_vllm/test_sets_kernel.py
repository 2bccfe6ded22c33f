"""vLLM's Triton kernels for top-p, top-k and the sets they keep, interpreted on a CPU."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tasks.algorithms.kept_sets import sets_of
from tasks.engines.embedded.sampling import truncate

pytestmark = [pytest.mark.engines, pytest.mark.timeout(1200)]
TOOL = Path(__file__).parent / "sets_tool.py"
ROWS, VOCABULARY = 6, 300
ALONE = [(1.0, 20), (0.9, VOCABULARY)]
"""Top-p and top-k of which one alone cuts."""
PAIRS = [*ALONE, (0.9, 20), (0.5, 50)]
WIDE = 20_000
"""Several blocks of the kernel; sets of more than 2,048 tokens come from its bit mask."""


def logits_of(*, tied: bool) -> torch.Tensor:
    """Random logits of a few rows; tied ones are multiples of a half."""
    logits = 3.0 * torch.randn(ROWS, VOCABULARY, generator=torch.Generator().manual_seed(0))
    return (2.0 * logits).round() / 2.0 if tied else logits


def ours(logits: torch.Tensor, top_p: float, top_k: int) -> list[list[int]]:
    kept = truncate(logits.log_softmax(1), top_p, 0.0, top_k) > -torch.inf
    return [one.tolist() for one in sets_of(kept)]


def wide() -> torch.Tensor:
    """Rows of which 1, 2,048, 2,049 and all tokens are kept, spread over the vocabulary."""
    draws = torch.Generator().manual_seed(3)
    logits = torch.full((4, WIDE), -torch.inf)
    for row, count in enumerate((1, 2048, 2049, WIDE)):
        chosen = torch.randperm(WIDE, generator=draws)[:count]
        logits[row, chosen] = torch.randn(count, generator=draws)
    return logits


CASES = {(False, pair): (logits_of(tied=False), *pair) for pair in PAIRS} | {
    (True, pair): (logits_of(tied=True), *pair) for pair in ALONE
}
"""By whether logits tie."""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """The sets of every case, and of the wide rows."""
    pytest.importorskip("vllm")
    folder = tmp_path_factory.mktemp("sets")
    cases = [*CASES.values(), (wide(), 1.0, WIDE)]
    (folder / "cases").write_bytes(pickle.dumps(cases))
    subprocess.run(
        [sys.executable, TOOL, folder / "cases", folder / "sets"],
        env=os.environ | {"TRITON_INTERPRET": "1"},
        check=True,
    )
    sets = pickle.loads((folder / "sets").read_bytes())
    rows = [[row.tolist() for row in one] for one in sets]
    return dict(zip([*CASES, "wide"], rows, strict=True))


@pytest.mark.parametrize("pair", PAIRS)
def test_vllm_keeps_the_sets_that_the_project_keeps(found, pair):
    assert ours(*CASES[False, pair]) == found[False, pair]


@pytest.mark.parametrize("pair", ALONE)
def test_of_tokens_that_tie_with_the_last_vllm_keeps_some_where_the_project_keeps_all(found, pair):
    """With top-k; with top-p both keep as many as it needs, not the same ones.

    A trainer takes the sets that were recorded, and derives none.
    """
    logits, top_p, top_k = CASES[True, pair]
    own, theirs = ours(logits, top_p, top_k), found[True, pair]
    differing = [sorted({*one} ^ {*other}) for one, other in zip(theirs, own, strict=True)]

    assert any(differing)
    assert {1} == {
        len(row[one].unique()) for row, one in zip(logits, differing, strict=True) if one
    }
    if top_p == 1.0:
        assert [top_k] * ROWS == [len(one) for one in theirs]
        assert all({*one} <= {*other} for one, other in zip(theirs, own, strict=True))
    else:
        assert [len(one) for one in own] == [len(one) for one in theirs]


def test_a_set_of_any_size_is_returned_whole_and_in_ascending_order(found):
    assert [one.tolist() for one in sets_of(wide().isfinite())] == found["wide"]
