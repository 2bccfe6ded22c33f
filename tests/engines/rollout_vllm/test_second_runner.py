"""vLLM with the model runner that records what tokens were drawn from.

On a GPU as it is, on a CPU in Triton's interpreter.
"""
# ruff: noqa: E402, the skip stands before what needs vLLM

import os
import pickle
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import (
    LogitsProcessorList,
    Qwen3MoeForCausalLM,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

pytest.importorskip("vllm")
pytestmark = [pytest.mark.engines, pytest.mark.timeout(1800)]

from data_schemas.rollouts import ScoredRollout, StopReason
from data_schemas.verdicts import scored
from tasks.algorithms.digests import weight_digest
from tasks.algorithms.kept_sets import check_kept
from tasks.algorithms.mismatch import mismatch_metrics
from tasks.engines.embedded.trainer import TorchTrainer
from tasks.rl.batch import token_batch
from tasks.rl.groups import join_segments
from tests.engines.rollout_vllm import second_runner
from tests.engines.rollout_vllm.second_runner import CANARIES, PART, SAMPLING
from tests.engines.siblings import deviations

MOVED = 0.02
"""Share of the sets whose boundary the rounding of a GPU may move; a CPU's moves none."""
WARPERS = LogitsProcessorList(
    [
        TemperatureLogitsWarper(SAMPLING.temperature),
        TopKLogitsWarper(SAMPLING.top_k),
        TopPLogitsWarper(SAMPLING.top_p),
    ]
)


@pytest.fixture(scope="module")
def other_moe(served_moe, tmp_path_factory):
    """The same model with other weights."""
    folder = tmp_path_factory.mktemp("other")
    shutil.copytree(served_moe, folder, dirs_exist_ok=True)
    model, draws = Qwen3MoeForCausalLM.from_pretrained(served_moe), torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.05 * torch.randn(parameter.shape, generator=draws)
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def recorded(served_moe, other_moe, tmp_path_factory):
    if torch.cuda.is_available():
        return second_runner.record(served_moe, other_moe)
    out = tmp_path_factory.mktemp("recorded") / "recorded.pickle"
    subprocess.run(
        [sys.executable, second_runner.__file__, served_moe, other_moe, out],
        env=os.environ | {"TRITON_INTERPRET": "1"},
        check=True,
    )
    return pickle.loads(out.read_bytes())


@pytest.fixture(scope="module")
def models(served_moe, other_moe):
    return [Qwen3MoeForCausalLM.from_pretrained(one) for one in (served_moe, other_moe)]


def joined(recorded):
    """Responses that were continued, joined with their first parts, and those begun anew."""
    begun = {(one.problem_id, one.sample): one for one in recorded.parts}
    for rest in recorded.continued:
        before = begun[rest.problem_id, rest.sample]
        yield join_segments(before, rest) if rest.problem_id == "p0" else rest


@pytest.fixture(params=["in this process", "in processes of their own", "in segments"])
def drawn(request, recorded, models):
    """Whole responses, and the model that they are of."""
    if request.param == "in segments":
        return list(joined(recorded)), models[1]
    elsewhere = request.param == "in processes of their own"
    return (recorded.elsewhere if elsewhere else recorded.rollouts), models[0]


def outputs_of(model, rollout):
    """Outputs of transformers, on a whole sequence alone."""
    tokens = np.concatenate([rollout.prompt_tokens, rollout.response_tokens]).astype(np.int64)
    with torch.inference_mode():
        return model(input_ids=torch.from_numpy(tokens)[None], output_router_logits=True)


def drawn_from(model, rollout):
    """Log-probabilities that transformers would draw the tokens of a response from: [R, V]."""
    logits = outputs_of(model, rollout).logits[0, len(rollout.prompt_tokens) - 1 : -1]
    return WARPERS(torch.empty(len(logits), 1, dtype=torch.long), logits).log_softmax(1)


def test_an_engine_that_records_has_the_second_runner_and_one_after_it_the_first(recorded):
    second, first, again = recorded.runners

    assert second == again != first
    assert second.endswith((".gpu.model_runner", ".cpu.model_runner"))
    assert first.endswith(("gpu_model_runner", "cpu_model_runner"))


def test_the_recorded_sets_are_those_that_transformers_keeps(drawn):
    rollouts, model = drawn
    moved = sizes = 0
    for rollout in rollouts:
        check_kept(rollout.kept, rollout.response_tokens, None)
        ends = np.cumsum(rollout.kept.counts)
        found = np.split(rollout.kept.ids, ends[:-1])
        for row, kept in zip(drawn_from(model, rollout).isfinite(), found, strict=True):
            moved += row.nonzero()[:, 0].tolist() != kept.tolist()
            sizes += 1

    assert sizes > 20
    assert moved <= (MOVED * sizes if torch.cuda.is_available() else 0)


def test_samples_of_a_prompt_are_drawn_independently(recorded, models):
    """As many pairs of siblings agree as the distribution says: draws that hang together show."""
    chances_V = drawn_from(models[0], recorded.siblings[0])[0].exp()

    tokens_S = torch.tensor([int(one.response_tokens[0]) for one in recorded.siblings])
    assert deviations(tokens_S, chances_V) < 5.0


def test_log_probs_are_those_over_the_recorded_sets(drawn):
    rollouts, model = drawn
    for rollout in rollouts:
        tokens = torch.from_numpy(rollout.response_tokens.astype(np.int64))
        expected = drawn_from(model, rollout).gather(1, tokens[:, None])[:, 0]

        assert expected.tolist() == pytest.approx(rollout.logprobs.tolist(), abs=1e-3)


def test_routes_are_those_of_the_model(drawn):
    rollouts, model = drawn
    for rollout in rollouts:
        layers = outputs_of(model, rollout).router_logits
        chosen = [layer[:-1].topk(2, dim=1).indices.sort(1).values.numpy() for layer in layers]

        assert (np.stack(chosen, 1) == np.sort(rollout.trace.experts_TLK, 2)).all()


def test_a_response_in_segments_has_the_sets_of_all_of_them(recorded):
    assert {PART} == {len(one.kept.counts) for one in recorded.parts}
    whole = [one for one in joined(recorded) if one.problem_id == "p0"]

    assert 3 == len(whole)
    for one in whole:
        assert len(one.response_tokens) == len(one.kept.counts) > PART


def test_a_response_that_is_cut_has_the_sets_of_what_it_has(recorded):
    cut = [one for one in recorded.continued if one.stop_reason is StopReason.SEGMENT]

    assert {"p1"} == {one.problem_id for one in cut}
    for one in cut:
        assert 0 < len(one.response_tokens) == len(one.kept.counts) < SAMPLING.max_new_tokens


def test_an_engine_of_its_own_process_draws_the_same_from_the_same_sets(recorded):
    def by_key(rollouts):
        return {
            (one.problem_id, one.sample): (one.response_tokens.tolist(), one.kept.ids.tolist())
            for one in rollouts
        }

    assert by_key(recorded.rollouts) == by_key(recorded.elsewhere)
    assert 0 == recorded.restarts


def test_canaries_are_scored_over_all_tokens_before_and_after_a_weight_sync(
    recorded, models, other_moe
):
    assert weight_digest(TorchTrainer(other_moe).weights()) == recorded.digest
    for model, scores in zip(models, (recorded.scores, recorded.scores_after), strict=True):
        for tokens, found in zip(CANARIES, scores, strict=True):
            ids = torch.from_numpy(tokens.astype(np.int64))
            with torch.inference_mode():
                logprobs = model(input_ids=ids[None]).logits[0, :-1].log_softmax(1)

            expected = logprobs.gather(1, ids[1:, None])[:, 0].tolist()
            assert expected == pytest.approx(found.tolist(), abs=1e-3)


def test_recorded_sets_keep_the_mismatch_below_that_of_drawing_from_all_tokens(
    recorded, served_moe
):
    """In bf16, against the trainer. Without the sets every ratio is the kept mass."""
    trainer = TorchTrainer(served_moe)

    def k3(drawn, *, replays=True):
        items = [ScoredRollout(one, "", scored(1.0, "correct"), 0.0) for one in drawn]
        batch = token_batch(items, use_routes=True)
        batch = batch if replays else replace(batch, kept_N=None)
        temperature = SAMPLING.temperature
        ours = trainer.score(batch, temperature=temperature, record_routes=False).logprobs_NT
        theirs = batch.columns["rollout_logprobs"]
        return mismatch_metrics(ours, theirs, batch.response_NT)["mismatch/k3"]

    whole = k3(recorded.mismatched["whole"])
    assert k3(recorded.mismatched["sets"]) < whole < 1e-3
    assert k3(recorded.mismatched["sets"], replays=False) > 10 * whole
