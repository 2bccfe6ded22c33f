import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from data_schemas.machine_settings import Precision
from data_schemas.reports import MismatchDecision
from data_schemas.rl_settings import MismatchSettings
from data_schemas.rollouts import ScoredRollout
from data_schemas.verdicts import scored
from tasks.algorithms.mismatch import SliceMismatch, mismatch_metrics
from tasks.engines.chat import load_tokenizer
from tasks.engines.embedded.rollout import HFRolloutEngine
from tasks.engines.embedded.trainer import TorchTrainer
from tasks.engines.protocols import Request, Sampling
from tasks.errors import EngineError
from tasks.rl.batch import token_batch
from tasks.rl.gate import (
    PROBE_TOLERANCE,
    check_weight_sync,
    count_overflow,
    decide,
    enforce,
    trainer_logprobs,
)

SETTINGS = MismatchSettings(correct_above=1e-2, pause_above=1e-1)


def metrics(k3, overflow=0):
    return {
        "mismatch/overflow_tokens": float(overflow),
        "mismatch/k3": k3,
        "mismatch/mean_abs_logprob": 0.0,
        "mismatch/extreme_share": 0.0,
        "mismatch/effective_share": 1.0,
    }


@pytest.mark.parametrize(
    ("k3", "decision"),
    [
        (0.0, MismatchDecision.PROCEED),
        (1e-2, MismatchDecision.PROCEED),
        (2e-2, MismatchDecision.CORRECT),
        (1e-1, MismatchDecision.CORRECT),
        (0.2, MismatchDecision.PAUSE),
        (math.nan, MismatchDecision.PAUSE),
    ],
)
def test_the_decision_follows_from_k3(k3, decision):
    record = decide(7, metrics(k3), 0.0, SETTINGS)

    assert (7, decision) == (record.step, record.decision)


@pytest.mark.parametrize(
    ("low", "decision"),
    [
        (0.0, MismatchDecision.PROCEED),
        (2e-2, MismatchDecision.CORRECT),
        (0.2, MismatchDecision.PAUSE),
    ],
)
def test_a_slice_whose_k3_is_above_a_bound_for_certain_decides_for_the_step(low, decision):
    slices = [SliceMismatch("language:th", 30, 0.3, low), SliceMismatch("domain:maths", 90, 0.0, 0)]

    record = decide(7, metrics(1e-3), 0.0, SETTINGS, slices=slices)

    assert decision is record.decision
    assert low == record.slice_k3
    assert ("language:th" in record.reason) == (low > 0.0)


def test_a_step_with_tokens_that_overflow_is_not_trained_however_small_its_k3():
    record = decide(4, metrics(0.0, overflow=2), 0.0, SETTINGS)

    assert (MismatchDecision.PAUSE, 2) == (record.decision, record.overflow_tokens)
    with pytest.raises(EngineError, match=r"step 4: 2 tokens have no finite log-probability"):
        enforce(record)


def test_updates_that_were_skipped_are_counted_in_the_record_of_the_step():
    record = decide(4, metrics(1e-3), 0.0, SETTINGS)
    losses = [{"loss": 1.0, "overflow_updates": 1.0}, {"loss": 1.0, "overflow_updates": 0.0}]

    counted = count_overflow(record, losses)

    expected = "k3 1.00e-03; 1 of 2 updates overflowed and were skipped"
    assert (MismatchDecision.PROCEED, expected) == (counted.decision, counted.reason)
    assert record == count_overflow(record, losses[1:])
    assert record == count_overflow(record, [{"loss": 1.0}])  # not in fp16


def test_a_correction_that_is_always_on_is_reported():
    record = decide(1, metrics(0.0), 0.0, SETTINGS, ["tis"])

    assert (MismatchDecision.CORRECT, "terms has tis") == (record.decision, record.reason)


def test_a_pause_says_what_to_do():
    with pytest.raises(EngineError, match=r"step 3: k3 2.00e-01 is above .* router_replay r3, or"):
        enforce(decide(3, metrics(0.2), 0.0, SETTINGS))
    enforce(decide(3, metrics(0.05), 0.0, SETTINGS))


@pytest.fixture(scope="module")
def canaries(tiny_moe):
    tokenizer = load_tokenizer(tiny_moe)
    return [
        torch.tensor(tokenizer.encode(text)).int().numpy() for text in ("say something", "and this")
    ]


def test_the_same_weights_agree_on_canaries(tiny_moe, canaries):
    gap = check_weight_sync(
        HFRolloutEngine(tiny_moe), TorchTrainer(tiny_moe), canaries, Precision.FP32
    )

    assert gap < 0.1 * PROBE_TOLERANCE[Precision.FP32]


@pytest.mark.parametrize("precision", [Precision.FP32, Precision.BF16, Precision.FP16])
def test_an_engine_that_computes_with_other_weights_is_caught(tiny_moe, canaries, precision):
    engine, trainer = HFRolloutEngine(tiny_moe, precision=precision), TorchTrainer(tiny_moe)
    wrong = ((n, t.roll(1, 0) if "experts" in n else t) for n, t in trainer.weights())
    engine.load_weights(wrong, 1)

    with pytest.raises(EngineError, match="other weights than it was sent"):
        check_weight_sync(engine, trainer, canaries, precision)


def test_an_overflow_in_fp16_is_counted_and_named_after_a_weight_sync(tiny_moe, canaries):
    """The same weights are in the range of bf16."""
    trainer = TorchTrainer(tiny_moe)
    with torch.no_grad():
        dict(trainer.weights())["model.norm.weight"].mul_(1e6)
    engines = {
        precision: HFRolloutEngine(tiny_moe, precision=precision)
        for precision in (Precision.FP16, Precision.BF16)
    }
    for engine in engines.values():
        engine.load_weights(trainer.weights(), 1)
    num_tokens = sum(len(one) - 1 for one in canaries)

    with pytest.raises(EngineError, match=rf"{num_tokens} of {num_tokens} canary tokens .* fp16"):
        check_weight_sync(engines[Precision.FP16], trainer, canaries, Precision.FP16)
    assert np.isfinite(np.concatenate(engines[Precision.BF16].score_logprobs(canaries))).all()


def test_a_route_that_was_flipped_in_fp32_stops_no_run(tiny_moe):
    """As a phase has shown: one token of 324, by 2.3 nats, and again whenever it was resumed."""

    class Flipped:
        """Right but for the last token after one context."""

        def score_logprobs(self, sequences):
            right = trainer_logprobs(trainer, sequences)
            return [right - 2.3 * (np.arange(len(right)) == 39) * (sequences[0][0] == 1)]

    trainer = TorchTrainer(tiny_moe)
    canaries = [np.arange(1, 42, dtype=np.int32)]

    gap = check_weight_sync(Flipped(), trainer, canaries, Precision.FP32)

    assert gap < 1e-6


def test_one_token_whose_route_was_flipped_is_no_sign_of_other_weights(tiny_moe):
    class Flipped:
        """Right but for one token in twenty, as a phase with bf16 rollouts has shown."""

        def score_logprobs(self, sequences):
            right = trainer_logprobs(trainer, sequences)
            return [right - 10.0 * (np.arange(len(right)) % 20 == 19)]

    trainer = TorchTrainer(tiny_moe)
    canaries = [np.arange(1, 42, dtype=np.int32)]

    assert 0.05 == pytest.approx(
        check_weight_sync(Flipped(), trainer, canaries, Precision.BF16), abs=1e-6
    )


def test_recorded_sets_keep_a_truncated_step_below_one_that_is_not_truncated(tiny_moe):
    """In bf16. Without them every ratio is the kept mass, and the gate stops the run."""
    engine, trainer = HFRolloutEngine(tiny_moe, precision=Precision.BF16), TorchTrainer(tiny_moe)
    requests = [Request(str(n), np.arange(n, n + 6, dtype=np.int32), 8) for n in range(6)]

    def k3(*, replays=True, **sampling):
        drawn = engine.generate(requests, Sampling(24, 0.3, seed=0, **sampling))
        items = [ScoredRollout(one, "", scored(1.0, "correct"), 0.0) for one in drawn]
        batch = token_batch(items, use_routes=True)
        batch = batch if replays else replace(batch, kept_N=None)
        ours = trainer.score(batch, temperature=0.3, record_routes=False).logprobs_NT
        theirs = batch.columns["rollout_logprobs"]
        return mismatch_metrics(ours, theirs, batch.response_NT)["mismatch/k3"]

    whole = k3()
    truncated = {"top_p": 0.8, "top_k": 60, "record_kept": True}

    assert k3(**truncated) < whole < 1e-3
    assert k3(**truncated, replays=False) > 10 * whole
