import dataclasses
import itertools
import json
import logging
import os
import signal

import pytest

from data_schemas.arrow import read_table, write_table
from data_schemas.ledgers import SKIPPED, LedgerRow, PromptCost
from data_schemas.machine_settings import Precision
from data_schemas.pass_rates import Band, GradedProblem
from data_schemas.reports import GATES_FILE, GateRecord, MismatchDecision
from data_schemas.rl_settings import (
    EngineSettings,
    JudgeKind,
    LossSettings,
    MismatchSettings,
    RewardSettings,
    RouterReplay,
    TermSettings,
)
from data_schemas.rows import Domain
from data_schemas.verdicts import scored
from tasks.algorithms.losses.table import LOSSES
from tasks.durability import states
from tasks.durability.durable import keep_durable
from tasks.engines.embedded.rollout import HFRolloutEngine
from tasks.engines.select import open_rollout
from tasks.errors import EngineError, PreemptionError, SettingsError, TamperError
from tasks.rl import state
from tasks.rl.phase import (
    PROBLEMS_FILE,
    finish,
    read_problems,
    train,
    verifiers_in_use,
    write_times,
)
from tasks.rl.state import read_pauses
from tasks.store.manifest import folder_manifest
from tests.algorithms.signals import terms_of
from tests.rl.conftest import problem
from tests.slices import sliced


@pytest.fixture
def results(scorer):
    def run(phase, folder, open_engine=open_rollout):
        """Run a phase to its end; return the bytes of everything it leaves behind."""
        list(train(phase, scorer(), open_engine=open_engine))
        model, report = folder / "model", folder / "report"
        model.mkdir(parents=True)
        report.mkdir()
        finish(phase, model, report)
        write_times(phase, folder)
        return folder_manifest(model), folder_manifest(report)

    return run


@pytest.mark.parametrize(
    ("judge", "verifier"), [("none", "reference_text"), ("model", "generative_judge")]
)
def test_a_judge_takes_the_place_of_its_substitute(tmp_path, judge, verifier):
    rows = [
        GradedProblem(
            **dict(problem(number)) | {"verifier": verifier},
            pass_rate=0.5,
            mean_tokens=1.0,
            band=Band.MEDIUM,
        )
        for number, verifier in enumerate(("final_answer", "reference_text"))
    ]
    write_table(tmp_path / PROBLEMS_FILE, GradedProblem, rows)

    found = read_problems(tmp_path, JudgeKind(judge))

    assert ["final_answer", verifier] == [row.verifier for row in found]


def test_only_verifiers_in_use_are_checked(phase_in, tmp_path):
    phase = phase_in(tmp_path)
    unused = problem(99, Domain.OPEN_TEXT).model_copy(update={"verifier": "rubric"})

    found = verifiers_in_use(dataclasses.replace(phase, problems=(*phase.problems, unused)))

    assert {"final_answer"} == found


@pytest.mark.slow
def test_a_phase_trains_a_dense_model(phase_in, tmp_path, results, scorer, tiny_dense):
    def phase(name):
        moe = phase_in(tmp_path / name, router_replay=RouterReplay.OFF)
        return dataclasses.replace(moe, start=tiny_dense)

    whole = results(phase("a"), tmp_path / "whole")
    list(itertools.islice(train(phase("b"), scorer()), 1))

    assert whole == results(phase("b"), tmp_path / "resumed")


def test_routes_of_a_dense_model_cannot_be_replayed(phase_in, tmp_path, scorer, tiny_dense):
    phase = dataclasses.replace(phase_in(tmp_path / "a"), start=tiny_dense)

    with pytest.raises(SettingsError, match=r"'r3', but .* is a dense model without a router"):
        next(train(phase, scorer()))


@pytest.mark.slow
def test_a_run_that_is_dropped_after_any_step_ends_in_the_same_bytes(
    phase_in, tmp_path, results, scorer
):
    whole = results(phase_in(tmp_path / "a"), tmp_path / "whole")
    for stop in (1, 3):
        phase = phase_in(tmp_path / f"b{stop}")
        assert stop == len(list(itertools.islice(train(phase, scorer()), stop)))

        assert whole == results(phase, tmp_path / f"resumed{stop}")


@pytest.mark.slow
def test_steps_after_the_last_committed_state_are_done_again_alike(
    phase_in, tmp_path, results, scorer
):
    whole = results(phase_in(tmp_path / "a"), tmp_path / "whole")
    sparse = phase_in(tmp_path / "b", commit_every=3)
    list(itertools.islice(train(sparse, scorer()), 2))

    assert whole == results(sparse, tmp_path / "resumed")


@pytest.mark.slow
def test_a_damaged_state_is_passed_over_for_the_one_before(
    phase_in, tmp_path, caplog, results, scorer
):
    whole = results(phase_in(tmp_path / "a"), tmp_path / "whole")
    phase = phase_in(tmp_path / "b")
    list(itertools.islice(train(phase, scorer()), 2))
    damaged = tmp_path / "b/committed/000002/trainer.pt"
    damaged.write_bytes(damaged.read_bytes()[:-1])

    assert whole == results(phase, tmp_path / "resumed")
    assert "damaged and skipped" in caplog.text


def test_only_the_newest_states_are_kept(phase_in, tmp_path, scorer):
    list(train(phase_in(tmp_path), scorer()))

    assert ["000003", "000004"] == sorted(path.name for path in (tmp_path / "committed").iterdir())


@pytest.mark.slow
def test_sigterm_finishes_the_step_commits_it_and_asks_for_a_retry(
    phase_in, tmp_path, results, scorer
):
    phase = phase_in(tmp_path / "b")
    steps = train(phase, scorer())
    next(steps)
    os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(PreemptionError, match="after committed step"):
        list(steps)
    whole = results(phase_in(tmp_path / "a"), tmp_path / "whole")
    assert whole == results(phase, tmp_path / "resumed")


def test_the_ledger_adds_up_to_the_engines_own_count(phase_in, tmp_path, results):
    counted = []

    class Counting(HFRolloutEngine):
        def generate(self, requests, sampling):
            for rollout in super().generate(requests, sampling):
                counted.append(len(rollout.response_tokens))
                yield rollout

    results(phase_in(tmp_path / "a"), tmp_path / "out", lambda _, folder: Counting(folder))
    rows = read_table(tmp_path / "out/report/ledger.parquet", LedgerRow)

    costs = read_table(tmp_path / "out/costs.parquet", PromptCost)

    assert sum(counted) == sum(row.generated_tokens for row in rows)
    assert len(counted) == sum(row.rollouts for row in rows)
    rolled_out = {(row.step, row.problem_id) for row in rows if row.outcome not in SKIPPED}
    assert rolled_out == {(cost.step, cost.problem_id) for cost in costs}
    assert all(row.trained_tokens <= row.generated_tokens for row in rows)


# Those of `durability/test_resume.py` are killed there at every operation.
MODES = {
    "two steps off": EngineSettings(staleness=2),
    "both": EngineSettings(staleness=1, segment_tokens=4),
    "bf16 rollouts": EngineSettings(precision=Precision.BF16),
    "one step off": EngineSettings(staleness=1),
    "top-p and top-k, free-running": {
        "top_p": 0.9,
        "top_k": 20,
        "engines": EngineSettings(staleness=2, segment_tokens="free"),
    },
    "top-p": {"top_p": 0.9},
}


DAILY_MODES = ("both", "top-p")


@pytest.mark.parametrize("mode", sliced(MODES, lambda mode: mode in DAILY_MODES))
def test_every_mode_resumes_with_the_same_bytes(phase_in, tmp_path, results, scorer, mode):
    engines = MODES[mode]
    changes = engines if isinstance(engines, dict) else {"engines": engines}
    whole = results(phase_in(tmp_path / "a", **changes), tmp_path / "whole")
    phase = phase_in(tmp_path / "b", **changes)
    list(itertools.islice(train(phase, scorer()), 2))

    assert whole == results(phase, tmp_path / "resumed")


@pytest.mark.slow
@pytest.mark.parametrize("staleness", [0, 1, 2])
def test_no_rollout_is_older_than_the_bound(phase_in, tmp_path, scorer, staleness):
    phase = phase_in(tmp_path, engines=EngineSettings(staleness=staleness))

    found = [r.report.metrics["rollout/staleness_versions"] for r in train(phase, scorer())]

    assert [float(min(step, staleness)) for step in range(4)] == found


@pytest.mark.slow
def test_a_sigterm_between_commits_is_followed_by_one(phase_in, tmp_path, scorer, results):
    phase = phase_in(tmp_path / "b", commit_every=100)
    steps = train(phase, scorer())
    next(steps)
    os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(PreemptionError, match="after committed step 2"):
        list(steps)
    whole = results(phase_in(tmp_path / "a", commit_every=100), tmp_path / "whole")
    assert whole == results(phase, tmp_path / "resumed")


def generated(records):
    return [sum(row.generated_tokens for row in record.ledger) for record in records]


def test_a_phase_ends_with_the_step_that_uses_its_tokens_up(phase_in, tmp_path, scorer):
    first, second, *_ = generated(train(phase_in(tmp_path / "all"), scorer()))

    for budget, steps in ((1, 1), (first, 1), (first + 1, 2), (first + second, 2), (10**9, 4)):
        phase = dataclasses.replace(phase_in(tmp_path / f"{budget}"), max_tokens=budget)
        assert steps == len(list(train(phase, scorer())))


@pytest.mark.slow
def test_a_resumed_phase_counts_the_tokens_of_its_committed_steps(
    phase_in, tmp_path, scorer, results
):
    first, second, *_ = generated(train(phase_in(tmp_path / "all"), scorer()))
    budget = {"max_tokens": first + second}
    whole = results(dataclasses.replace(phase_in(tmp_path / "a"), **budget), tmp_path / "whole")
    phase = dataclasses.replace(phase_in(tmp_path / "b"), **budget)
    list(itertools.islice(train(phase, scorer()), 1))

    assert whole == results(phase, tmp_path / "resumed")
    assert [] == list(train(phase, scorer()))


def test_a_phase_with_rare_commits_ends_at_the_first_one_beyond_its_tokens(
    phase_in, tmp_path, scorer
):
    phase = dataclasses.replace(phase_in(tmp_path, commit_every=3), max_tokens=1)

    assert 3 == len(list(train(phase, scorer())))


def test_canaries_are_judged_again_on_the_way(phase_in, tmp_path, scorer):
    watched = scorer()
    list(train(phase_in(tmp_path, rewards=RewardSettings(canary_every=2)), watched))

    assert 2 == watched.canaries


class OtherNumbers(HFRolloutEngine):
    """Its log-probs are not those of the trainer."""

    def generate(self, requests, sampling):
        for rollout in super().generate(requests, sampling):
            yield dataclasses.replace(rollout, logprobs=rollout.logprobs - 3.0)


def other_numbers(_, folder):
    return OtherNumbers(folder)


def test_the_gate_stops_a_run_whose_engines_disagree(phase_in, tmp_path, scorer):
    with pytest.raises(EngineError, match=r"step 1: k3 .* is above mismatch\.pause_above"):
        list(train(phase_in(tmp_path), scorer(), open_engine=other_numbers))


def test_a_pause_is_kept_even_if_the_step_succeeds_later(phase_in, tmp_path, scorer):
    phase = phase_in(tmp_path / "a", steps=1)
    with pytest.raises(EngineError, match="step 1: k3"):
        list(train(phase, scorer(), open_engine=other_numbers))
    list(train(phase, scorer()))
    (tmp_path / "model").mkdir()
    (tmp_path / "report").mkdir()
    finish(phase, tmp_path / "model", tmp_path / "report")

    lines = (tmp_path / "report" / GATES_FILE).read_text().splitlines()
    decisions = [GateRecord.model_validate_json(line).decision for line in lines]
    assert [MismatchDecision.PAUSE, MismatchDecision.PROCEED] == decisions


def paused(phase_in, folder, scorer):
    """A phase that was stopped in its first step, and has committed that one since."""
    phase = phase_in(folder, steps=1)
    with pytest.raises(EngineError, match="step 1: k3"):
        list(train(phase, scorer(), open_engine=other_numbers))
    list(itertools.islice(train(phase, scorer()), 1))
    return phase, phase.state / "steps" / "pause-000001.json"


@pytest.mark.attack
def test_a_pause_that_was_not_signed_for_the_phase_is_refused_by_name(phase_in, tmp_path, scorer):
    phase, pause = paused(phase_in, tmp_path / "work", scorer)
    other = pause.with_name("pause-000007.json")
    for content in (pause.read_bytes(), b'{"step": 7}'):
        other.write_bytes(content)
        with pytest.raises(TamperError, match=f"{other}"):
            read_pauses(phase.state)


@pytest.mark.attack
def test_a_state_whose_pause_was_removed_is_not_resumed(phase_in, tmp_path, scorer):
    phase, pause = paused(phase_in, tmp_path / "work", scorer)
    assert states.newest_whole(phase.state)

    pause.unlink()
    assert states.newest_whole(phase.state) is None


@pytest.mark.attack
def test_a_pause_is_known_on_another_machine_that_goes_on(phase_in, tmp_path, scorer):
    here, there = (phase_in(tmp_path / name / "work", steps=1) for name in "ab")
    durable = str(tmp_path / "durable")
    with (
        pytest.raises(EngineError, match="step 1: k3"),
        keep_durable(here.state, durable, None, lambda: 60.0),
    ):
        list(train(here, scorer(), open_engine=other_numbers))
    with keep_durable(there.state, durable, None, lambda: 60.0):
        list(train(there, scorer()))
    (tmp_path / "model").mkdir()
    (tmp_path / "report").mkdir()
    finish(there, tmp_path / "model", tmp_path / "report")

    lines = (tmp_path / "report" / GATES_FILE).read_text().splitlines()
    decisions = [GateRecord.model_validate_json(line).decision for line in lines]
    assert [MismatchDecision.PAUSE, MismatchDecision.PROCEED] == decisions


def test_a_large_mismatch_is_corrected_and_the_decision_is_kept(phase_in, tmp_path, results):
    strict = MismatchSettings(correct_above=1e-12, pause_above=1.0)
    engines = EngineSettings(precision=Precision.BF16, mismatch=strict)
    results(phase_in(tmp_path / "a", engines=engines), tmp_path / "out")
    lines = (tmp_path / "out/report" / GATES_FILE).read_text().splitlines()

    records = [GateRecord.model_validate_json(line) for line in lines]
    assert [MismatchDecision.CORRECT] * 4 == [record.decision for record in records]
    assert all(record.probe_logprob > 0.0 for record in records)


def test_a_kl_to_the_start_model_is_zero_until_the_first_update(phase_in, tmp_path, scorer):
    phase = phase_in(
        tmp_path,
        loss=LossSettings(kind="grpo"),
        terms=terms_of({"kind": "kl", "weight": 0.1}),
        num_mini_batches=1,
        router_replay=RouterReplay.OFF,
    )

    first, *_, last = (record.report.metrics["policy/kl"] for record in train(phase, scorer()))

    assert first == pytest.approx(0.0, abs=1e-6)
    assert last > 1e-6


@pytest.mark.parametrize(
    ("replay", "kind"),
    sliced(
        itertools.product(RouterReplay, LOSSES),
        lambda replay, kind: (
            list(RouterReplay)[list(LOSSES).index(kind) % len(RouterReplay)] is replay
        ),
    ),
)
def test_every_loss_and_replay_mode_trains(phase_in, tmp_path, kind, replay, scorer):
    phase = phase_in(
        tmp_path,
        steps=1,
        loss=LossSettings(kind=kind),
        router_replay=replay,
        terms=(TermSettings(kind="rl_zvp"),) if LOSSES[kind].token_advantages else (),
    )

    (record,) = train(phase, scorer())

    assert 1e-6 > record.report.metrics["mismatch/mean_abs_logprob"]
    assert 0.0 < record.report.metrics["policy/grad_norm"]


def test_reward_rises_when_it_can(phase_in, tmp_path, scorer):
    """A tiny policy learns to answer with an even number of bytes."""
    phase = phase_in(tmp_path, steps=18, prompts_per_step=8, group_size=8, learning_rate=1e-2)
    rewards = [record.report.metrics["reward/mean"] for record in train(phase, scorer())]

    assert sum(rewards[:3]) / 3 + 0.15 < sum(rewards[-3:]) / 3


def test_an_engine_with_other_weights_than_the_trainers_is_caught(phase_in, tmp_path, scorer):
    class LosingOne(HFRolloutEngine):
        def load_weights(self, weights, version):
            lost = ((n, t * 0 if "norm" in n else t) for n, t in weights)
            return super().load_weights(lost, version)

    with pytest.raises(EngineError, match="no rollout was made with the wrong weights"):
        list(train(phase_in(tmp_path), scorer(), open_engine=lambda _, folder: LosingOne(folder)))


def test_steps_are_recorded_one_json_each(phase_in, tmp_path, results):
    results(phase_in(tmp_path / "a", steps=2), tmp_path / "out")
    lines = (tmp_path / "out/report/steps.jsonl").read_text().splitlines()

    assert [1, 2] == [json.loads(line)["step"] for line in lines]


def test_a_fresh_folder_starts_at_step_zero(phase_in, tmp_path):
    class Unused:
        def restore(self, folder):
            raise AssertionError(folder)

    assert state.RunState() == state.restore(tmp_path, Unused())


def test_a_phase_warns_once_of_every_value_without_effect(phase_in, scorer, tmp_path, caplog):
    loss = LossSettings(kind="espo", clip_high=0.3, clip_scale=0.1)
    with caplog.at_level(logging.WARNING, "tasks.rl.phase"):
        list(train(phase_in(tmp_path, steps=2, loss=loss), scorer()))

    assert ["loss.clip_high 0.3 has no effect: loss.clip_scale sets ESPO's widths"] == (
        caplog.messages
    )


@pytest.mark.slow
def test_a_phase_says_once_that_the_policy_loses_what_it_could(phase_in, scorer, tmp_path, caplog):
    scored_so_far = itertools.count()

    def rule(_, response):
        able = next(scored_so_far) < 5 * 12  # five steps of three groups of four
        return scored(float(able and len(response) % 2 == 0), "rule")

    phase = phase_in(tmp_path, steps=12)
    rows = tuple(
        GradedProblem(**dict(one), pass_rate=0.5, mean_tokens=1.0, band=Band.MEDIUM)
        for one in phase.problems
    )
    with caplog.at_level(logging.WARNING, "tasks.rl.phase"):
        records = [*train(dataclasses.replace(phase, problems=rows), scorer(rule))]

    assert -0.5 == records[-1].report.metrics["reward/above_graded"]
    (line,) = caplog.messages
    assert line.startswith("the policy loses what it could: in the last 5 steps it solved -0.")
