"""One step with engines that only note what they are asked, and whole steps with real ones."""

import contextlib
import itertools
import math
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import torch

from data_schemas.ledgers import GroupOutcome
from data_schemas.reports import MismatchDecision
from data_schemas.rl_settings import (
    EngineSettings,
    LossSettings,
    MismatchSettings,
    OldPolicy,
    RouterReplay,
)
from data_schemas.rollouts import RolloutGroup, RouterTrace, ScoredRollout
from data_schemas.verdicts import scored
from tasks.algorithms.kept_sets import end_to_end
from tasks.algorithms.terms.fold import fold_step
from tasks.algorithms.terms.table import find_terms
from tasks.durability import states
from tasks.durability.preemption import Termination
from tasks.engines.chat import load_tokenizer
from tasks.engines.protocols import TokenScores
from tasks.errors import EngineError
from tasks.rl import step, step_snapshot
from tasks.rl.batch import build
from tasks.rl.collector import StepRollouts
from tasks.rl.groups import CollectedGroup
from tasks.rl.objective import first_signal, split
from tasks.rl.phase import train
from tasks.rl.recipe import PLAIN
from tasks.rl.replay.recompute import compare
from tests.algorithms.signals import terms_of
from tests.rl.conftest import RuleScorer


@dataclass
class NotingTrainer:
    """Scores every token alike and notes how it is called."""

    nats: float = -2.0

    scored: list[tuple[bool, bool]] = field(default_factory=list)
    """Flags of every pass: whether it had routes to replay, and whether it recorded its own."""
    sizes: list[int] = field(default_factory=list)
    """Sizes of every pass: its sequences."""
    updated: list[tuple[list[int], float]] = field(default_factory=list)
    """Arguments of every update: numbers of its sequences, learning rate."""

    def score(self, batch, *, temperature, record_routes=False):
        self.scored.append((batch.experts_NTLK is not None, record_routes))
        self.sizes.append(len(batch.tokens_NT))
        shape = batch.tokens_NT.shape
        native = torch.full((*shape, 1, 2), 7) if record_routes else None
        return TokenScores(torch.full(shape, self.nats), torch.ones(shape), native)

    def update(self, batch, loss, *, temperature, learning_rate, auxiliary):
        rows = batch.columns[step_snapshot.ROW].tolist()
        self.updated.append((rows, learning_rate))
        value, metrics = loss(batch.columns["old_logprobs"], batch)
        return {"loss": float(value), "grad_norm": 1.0} | metrics

    def weights(self):
        yield "weight", torch.ones(3)


class NotingEngine:
    """Installs weights, or others than it was sent."""

    num_experts = 8

    def __init__(self, digest=None):
        self.digest, self.versions = digest, []

    def load_weights(self, weights, version):
        for _ in weights:
            self.versions.append(version)
        return self.digest or weights.digest()


@pytest.fixture
def run(settings, tmp_path):
    """A run of engines that note; what the settings change comes in by name."""

    def make(trainer=None, engine=None, reference=None, **changes):
        return step.Engines(
            settings=settings.model_copy(update=changes),
            recipe=PLAIN,
            rollout=engine or NotingEngine(),
            trainer=trainer or NotingTrainer(),
            reference=reference,
            vocabulary=288,
            render=lambda messages: np.array([1], dtype=np.int32),
            positions=64,
            canaries=[],
            folder=tmp_path,
        )

    return make


@pytest.fixture
def groups(problems, make_rollout):
    """Two groups of four responses, half of them solved."""
    return [
        CollectedGroup(
            RolloutGroup(
                problem,
                tuple(
                    ScoredRollout(
                        make_rollout(n, logprobs=np.full(4, -2.0, dtype=np.float32)),
                        "",
                        scored(float(n % 2), "rule"),
                        0.0,
                    )
                    for n in range(4)
                ),
            ),
            0,
            GroupOutcome.NON_ZERO_VARIANCE,
            new_tokens=16,
        )
        for problem in problems[:2]
    ]


REPLAYS = {
    # Whether the pass that scores has routes and records its own; what the updates replay.
    RouterReplay.OFF: ((False, True), None),
    RouterReplay.R2: ((False, True), "the trainer's own"),
    RouterReplay.R3: ((True, False), "the rollout's"),
}


def prepared(now, groups):
    """Batch, old scores and what the updates get."""
    batch = build(now.settings, groups)
    old = step.old_scores(now, batch)
    rows = split(now.settings, len(batch.owners), 1)
    terms = find_terms(now.settings.terms)
    first = first_signal(
        now.settings,
        batch,
        (old, old),
        rows,
        vocabulary=288,
        step=1,
        reference_NT=step.reference_scores(now, batch),
    )
    signal = fold_step(terms, replace(first, advantages_NT=torch.zeros(old.entropy_NT.shape)))
    return batch, old, step.replaying_batch(now, batch, old, signal, terms)


@pytest.mark.parametrize("replay", list(RouterReplay))
def test_the_replay_mode_says_whose_routes_are_scored_and_trained_with(run, groups, replay):
    now = run(router_replay=replay)
    batch, old, training = prepared(now, groups)

    asked, theirs = REPLAYS[replay]
    assert [asked] == now.trainer.scored
    routes = {"the trainer's own": old.experts_NTLK, "the rollout's": batch.tokens.experts_NTLK}
    assert training.experts_NTLK is (routes[theirs] if theirs else None)


def test_the_start_model_scores_with_its_own_routes(run, groups):
    reference = NotingTrainer()
    now = run(reference=reference, terms=terms_of({"kind": "kl"}))
    _, _, training = prepared(now, groups)

    assert [(False, False)] == reference.scored
    assert "reference_logprobs" in training.columns


def test_every_sequence_is_updated_once_at_a_rate_that_warms_up(run, groups):
    now = run(num_mini_batches=2, learning_rate=8e-3)
    record, updates, seen = step.one_step(
        now, StepRollouts(1, 0, groups), updates=1, probe=0.25, clock=step.Clock()
    )

    rows = [row for part, _ in now.trainer.updated for row in part]
    assert list(range(8)) == sorted(rows)
    # Updates 2 and 3 of the phase: two and three quarters of the peak.
    assert [4e-3, 6e-3] == [rate for _, rate in now.trainer.updated]
    assert 3 == updates
    assert (1, 0.25) == (record.gate.step, record.gate.probe_logprob)
    assert 32 == sum(row.generated_tokens for row in record.ledger)
    assert 1 == seen.step


def without_contrast(groups):
    """The groups with every response solved, and RL-ZVP off."""
    return [
        replace(
            entry,
            outcome=GroupOutcome.ZERO_VARIANCE_IDLE,
            group=replace(
                entry.group,
                rollouts=tuple(
                    replace(item, verdict=scored(1.0, "rule")) for item in entry.group.rollouts
                ),
            ),
        )
        for entry in groups
    ]


def test_responses_without_an_advantage_are_held_to_the_start_model_too(run, groups):
    terms = terms_of({"kind": "kl", "weight": 0.5})
    now = run(reference=NotingTrainer(), terms=terms, num_mini_batches=1)
    now.reference.nats = -3.0
    whole = [*groups[:1], *without_contrast(groups[1:])]
    record, _, _ = step.one_step(
        now, StepRollouts(1, 0, whole), updates=0, probe=0.0, clock=step.Clock()
    )

    ((rows, _),) = now.trainer.updated
    assert list(range(8)) == sorted(rows)
    # log ref - log pi = -1 on every token of all eight responses.
    assert math.exp(-1.0) == pytest.approx(record.report.metrics["policy/kl"], rel=1e-5)
    shares = [record.report.metrics[f"tokens/{use}_share"] for use in ("trained", "regularised")]
    assert [0.5, 0.5] == shares


def test_recorded_log_probs_are_the_old_ones_and_the_gate_measures_a_sample(run, groups):
    mismatch = MismatchSettings(old_policy=OldPolicy.ROLLOUT)
    now = run(
        trainer=NotingTrainer(nats=-2.3),
        engines=EngineSettings(mismatch=mismatch),
        loss=LossSettings(kind="grpo"),
        terms=(),
        num_mini_batches=1,
    )
    many = [replace(entry, round=n) for n in range(8) for entry in groups]
    record, _, seen = step.one_step(
        now, StepRollouts(1, 0, many), updates=0, probe=0.0, clock=step.Clock()
    )

    assert [8] == now.trainer.sizes  # of 64 responses
    # D = -0.3 on the sampled tokens: k3 = e^-0.3 - 1 + 0.3, above the bound of a correction.
    assert math.exp(-0.3) - 0.7 == pytest.approx(record.gate.k3, rel=1e-5)
    assert MismatchDecision.PROCEED == record.gate.decision
    assert 1.0 == record.report.metrics["policy/entropy_nats"]
    assert {-2.0} == set(seen.inputs["old_logprobs_NT"][seen.outputs["response_NT"]].tolist())
    assert {1.0} == set(seen.outputs["correction_NT"][seen.outputs["response_NT"]].tolist())


class OfSets(NotingTrainer):
    """Scores with and without sets as the vector top_p_0.8 does."""

    def score(self, batch, *, temperature, record_routes=False):
        found = super().score(batch, temperature=temperature, record_routes=record_routes)
        nats = -1.360486 if batch.kept_N is None else -1.136871
        return replace(found, logprobs_NT=torch.full(batch.tokens_NT.shape, nats))


def test_the_mass_that_truncated_sampling_kept_is_measured_on_a_sample(run, groups):
    def drawn_from_sets(item):
        sets = [np.array([token, 9], np.int32) for token in item.rollout.response_tokens]
        logprobs = np.full(4, -1.136871, dtype=np.float32)
        drawn = replace(item.rollout, kept=end_to_end(sets), logprobs=logprobs)
        return replace(item, rollout=drawn)

    truncated = [
        replace(
            one,
            round=n,
            group=replace(one.group, rollouts=tuple(map(drawn_from_sets, one.group.rollouts))),
        )
        for n in range(8)
        for one in groups
    ]
    now = run(trainer=OfSets())
    record, _, _ = step.one_step(
        now, StepRollouts(1, 0, truncated), updates=0, probe=0.0, clock=step.Clock()
    )

    assert [64, 8] == now.trainer.sizes
    metrics = record.report.metrics
    assert 0.799623 == pytest.approx(metrics["rollout/kept_mass"], abs=2e-6)
    assert 0.799623 == pytest.approx(metrics["rollout/kept_mass_p5"], abs=2e-6)


def test_own_routes_are_compared_with_recorded_ones_by_layer_on_a_sample(run, groups):
    """The trainer that notes routes every token to expert 7, twice."""
    layer_TK = np.array([[7, 7], [7, 3], [7, 7], [3, 7], [7, 7]], np.uint8)

    def routed(item):
        return replace(item, rollout=replace(item.rollout, trace=RouterTrace(layer_TK[:, None])))

    many = [
        replace(
            one, round=n, group=replace(one.group, rollouts=tuple(map(routed, one.group.rollouts)))
        )
        for n in range(8)
        for one in groups
    ]
    now = run(engines=EngineSettings(mismatch=MismatchSettings(routes=True)))
    record, _, _ = step.one_step(
        now, StepRollouts(1, 0, many), updates=0, probe=0.0, clock=step.Clock()
    )

    assert [64, 8] == now.trainer.sizes
    assert [(True, False), (True, True)] == now.trainer.scored
    metrics = record.report.metrics
    assert 0.4 == pytest.approx(metrics["mismatch/route_disagreement"])
    assert 0.4 == pytest.approx(metrics["mismatch/route_disagreement_layer_0"])


def test_a_step_of_nothing_compares_no_routes(run, groups):
    now = run(engines=EngineSettings(mismatch=MismatchSettings(routes=True)))
    record, _, _ = step.one_step(
        now, StepRollouts(1, 0, without_contrast(groups)), updates=0, probe=0.0, clock=step.Clock()
    )

    assert not [name for name in record.report.metrics if "route_disagreement" in name]


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_engines_that_compute_alike_choose_the_recorded_routes(
    phase_in, tiny_moe, tmp_path, precision
):
    """And in bf16 not all of them; the gate and its record stay as they are without."""
    measured = MismatchSettings(routes=True, correct_above=1.0, pause_above=2.0)
    engines = EngineSettings(precision=precision, mismatch=measured)
    phase = phase_in(tmp_path, steps=1, engines=engines)

    (record,) = train(phase, RuleScorer(load_tokenizer(tiny_moe)))

    metrics = record.report.metrics
    layers = [v for name, v in metrics.items() if name.startswith("mismatch/route_disagreement_")]
    assert len(layers) > 1
    assert sum(layers) / len(layers) == pytest.approx(metrics["mismatch/route_disagreement"])
    assert any(layers) == (precision == "bf16")
    (path,) = step_snapshot.find_snapshots(phase.state, 1)
    snapshot = step_snapshot.decode(path.read_bytes())
    assert not [one.name for one in compare(snapshot) if one.difference]


def test_what_the_budget_cuts_is_not_updated(run, groups):
    terms = terms_of({"kind": "token_budget", "tokens_per_response": 1.5})
    chosen = run(terms=terms, num_mini_batches=1, prompts_per_step=2, group_size=4)
    record, _, _ = step.one_step(
        chosen, StepRollouts(1, 0, groups), updates=0, probe=0.0, clock=step.Clock()
    )

    ((rows, _),) = chosen.trainer.updated
    assert 3 == len(rows)
    assert 12 == record.report.metrics["policy/trained_tokens"]
    assert 20 / 32 == record.report.metrics["tokens/cut_share"]


def test_a_step_without_a_gradient_updates_nothing_and_still_has_a_record(run, groups):
    zero_variance = without_contrast(groups)
    now = run()
    record, updates, _ = step.one_step(
        now, StepRollouts(1, 0, zero_variance), updates=5, probe=0.0, clock=step.Clock()
    )

    assert ([], 5) == (now.trainer.updated, updates)
    assert 1.0 == record.report.metrics["zero_variance/share"]
    assert 0.0 == record.report.metrics["policy/trained_sequences"]


def test_an_engine_that_reports_other_weights_stops_the_run(run):
    now = run(engine=NotingEngine("another digest"))

    with pytest.raises(EngineError, match="version 3: the engine has another dige"):
        step.sync_weights(now, version=3)


def test_the_parts_of_a_step_follow_one_another():
    clock = step.Clock()
    for name in ("collect", "update"):
        clock.lap(name)
    found = replace(StepRollouts(4, 3, []), rollout_seconds=2.0, reward_seconds=0.5)
    timing = step.timing(found, clock)

    assert ["collect", "update", "rollout", "reward"] == list(timing.seconds)
    assert (4, 2.0, 0.5) == (timing.step, timing.seconds["rollout"], timing.seconds["reward"])
    assert all(seconds >= 0.0 for seconds in timing.seconds.values())
    assert ["collect", "update"] == list(timing.cpu_seconds)


STEPS = 3


def test_a_generator_that_is_dropped_after_two_steps_leaves_the_third_to_a_new_one(
    phase_in, scorer, tmp_path
):
    phase = phase_in(tmp_path / "dropped", steps=STEPS)
    with contextlib.closing(train(phase, scorer())) as steps:
        for number, record in enumerate(itertools.islice(steps, 2), start=1):
            assert (number, number) == (record.report.step, states.newest(phase.state))

    (third,) = train(phase, scorer())

    whole = list(train(phase_in(tmp_path / "whole", steps=STEPS), scorer()))
    assert whole[-1].report == third.report
    assert whole[-1].ledger == third.ledger


def test_states_are_committed_as_often_as_set_and_at_the_end(phase_in, scorer, tmp_path):
    phase = phase_in(tmp_path, steps=STEPS, commit_every=2)

    assert [0, 2, 3] == [states.newest(phase.state) for _ in train(phase, scorer())]


def test_whoever_must_stop_has_the_step_in_flight_committed(phase_in, scorer, tmp_path):
    phase, stop = phase_in(tmp_path, steps=STEPS, commit_every=3), Termination(3600.0)
    with contextlib.closing(train(phase, scorer(), stop)) as steps:
        next(steps)
        assert 0 == states.newest(phase.state)
        stop.notify()
        next(steps)

    assert 2 == states.newest(phase.state)


def test_the_engine_rolls_out_with_the_weights_of_the_step_before(phase_in, scorer, tmp_path):
    phase = phase_in(tmp_path, steps=2)
    records = list(train(phase, scorer()))

    assert [0.0, 0.0] == [one.report.metrics["rollout/staleness_versions"] for one in records]
    files = step_snapshot.find_snapshots(phase.state, 2)
    one, other = (step_snapshot.decode(file.read_bytes()) for file in files)
    assert one.weights_after == other.weights_before
    assert one.weights_before != one.weights_after


def test_a_step_weighs_by_the_shift_of_its_routers_and_is_replayed_with_it(
    phase_in, tiny_moe, tmp_path
):
    shift = terms_of({"kind": "tasks/lab/terms/router_shift.py:RouterShift", "least": 0.8})
    phase = phase_in(tmp_path, steps=1, terms=shift, learning_rate=1e-2)

    (record,) = train(phase, RuleScorer(load_tokenizer(tiny_moe)))

    (path,) = step_snapshot.find_snapshots(phase.state, 1)
    snapshot = step_snapshot.decode(path.read_bytes())
    assert 0.8 < record.report.metrics["policy/router_shift"] < 1.0
    assert snapshot.inputs["router_shift_NT"].any()
    assert not [one.name for one in compare(snapshot) if one.difference]
