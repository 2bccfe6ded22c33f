"""What vLLM's outputs become."""
# ruff: noqa: E402, the skip stands before what needs vLLM

import re
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("vllm")
pytestmark = pytest.mark.engines

import torch
from vllm.logprobs import FlatLogprobs, Logprob
from vllm.outputs import CompletionOutput, RequestOutput, SamplingMask
from vllm.v1.worker.gpu.sample.output import SamplingMaskTensors

from tasks.engines.protocols import Request, Sampling
from tasks.engines.rollout_vllm.completions import kept_of, make_seats, refuse_sets, rollout_of
from tasks.engines.rollout_vllm.options import ModelFacts
from tasks.errors import EngineError, SettingsError


def masks_of(supports: list[list[int]], width: int) -> SamplingMask:
    """Masks of one response in vLLM's own form: rows beyond the width come from the bit mask."""
    compact, bits = torch.zeros(len(supports), width, dtype=torch.int32), []
    for row, support in enumerate(supports):
        held = torch.tensor(support[:width], dtype=torch.int32)
        compact[row, : len(held)] = held
        bits.append(np.packbits(np.isin(np.arange(100), support), bitorder="little"))
    tensors = SamplingMaskTensors(
        compact,
        torch.from_numpy(np.stack(bits)),
        torch.tensor([len(support) for support in supports], dtype=torch.int32),
        100,
    )
    lists = tensors.tolists()
    rows = [lists.slice_request(row, 1) for row in range(len(supports))]
    return SamplingMask([row.token_ids.tolist() for row in rows])


SUPPORTS = [[3, 42, 55], [1, 17], [8], [8, 9, 23, 99]]


def test_the_masks_of_a_response_are_its_sets():
    tokens = np.array([42, 1, 8, 99], dtype=np.int32)

    kept = kept_of(masks_of(SUPPORTS, width=3), tokens, "p sample 0")

    assert sum(SUPPORTS, []) == kept.ids.tolist()  # noqa: RUF017 - four rows
    assert [3, 2, 1, 4] == kept.counts.tolist()
    assert (np.int32, np.int32) == (kept.ids.dtype, kept.counts.dtype)


@pytest.mark.parametrize(
    ("mask", "tokens", "message"),
    [
        (None, [3], "vLLM returned no sampling mask for p sample 0"),
        (SamplingMask([[3]]), [3, 4], "p sample 0: 1 sets with 1 tokens do not fit 2 tokens"),
        (SamplingMask([[3], []]), [3, 4], "p sample 0: response token 1 has 0 tokens in its set"),
        (SamplingMask([[3], [5]]), [3, 4], "p sample 0: response token 1 is not in the set"),
    ],
)
def test_masks_that_are_not_those_of_a_response_are_refused(mask, tokens, message):
    with pytest.raises(EngineError, match=re.escape(message)):
        kept_of(mask, np.array(tokens, dtype=np.int32), "p sample 0")


BOUNDED = Sampling(8, 1.0, seed=0, top_p=0.9, top_k=60, record_kept=True)

FACTS = ModelFacts(num_experts=0, moe_layers=(), max_tokens=64, expert_width=0, head_width=8)


def answered(mask: SamplingMask | None) -> RequestOutput:
    """vLLM's output for a request that drew tokens 3 and 4."""
    logprobs = FlatLogprobs()
    for token in (3, 4):
        logprobs.append({token: Logprob(-0.5, rank=1)})
    answer = CompletionOutput(
        index=0,
        text="",
        token_ids=[3, 4],
        cumulative_logprob=None,
        logprobs=logprobs,
        sampling_mask=mask,
        finish_reason="length",
    )
    return RequestOutput("1", None, [1, 2], None, [answer], finished=True)


def test_an_output_without_a_mask_is_no_rollout_and_has_no_sets_unless_they_were_asked_for():
    (seat,) = make_seats([Request("p", np.array([1, 2], dtype=np.int32), 1)], BOUNDED, 64, 64)

    drawn = rollout_of(seat, answered(SamplingMask([[3, 9], [4]])), BOUNDED, FACTS, 0)
    assert ([3, 9, 4], [2, 1]) == (drawn.kept.ids.tolist(), drawn.kept.counts.tolist())
    with pytest.raises(EngineError, match="returned no sampling mask for p sample 0"):
        rollout_of(seat, answered(None), BOUNDED, FACTS, 0)
    plain = replace(BOUNDED, record_kept=False)
    assert rollout_of(seat, answered(SamplingMask([[3, 9], [4]])), plain, FACTS, 0).kept is None


@pytest.mark.parametrize(
    ("changes", "records", "message"),
    [
        ({}, False, "records what it draws from only if it was opened for it"),
        ({"temperature": 0.0}, True, "temperature 0 with top_k 60: .* set both above 0"),
        ({"top_k": 0, "record_kept": False}, True, "temperature 1 with top_k 0: "),
    ],
)
def test_sets_that_an_engine_does_not_record_are_refused_before_it_draws(changes, records, message):
    with pytest.raises(SettingsError, match=message):
        refuse_sets(replace(BOUNDED, **changes), records=records)


def test_an_engine_that_records_draws_from_bounded_sets_that_nobody_asked_for_too():
    refuse_sets(BOUNDED, records=True)
    refuse_sets(replace(BOUNDED, record_kept=False), records=True)
    refuse_sets(Sampling(8, 0.0, seed=0), records=False)
