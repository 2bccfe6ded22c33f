"""What is measured of a cell, from the files of its stages."""

import json
from pathlib import Path

import pytest

from data_schemas.arrow import write_table
from data_schemas.ledgers import GroupOutcome, LedgerRow
from data_schemas.pass_rates import PROBLEMS_FILE, Band, GradedProblem
from data_schemas.reports import LEDGER_FILE, STEPS_FILE, TIMING_FILE, StepReport, StepTiming
from data_schemas.rows import Domain, Message, Role
from data_schemas.samples import SampleResult
from data_schemas.study import StudyCell
from tasks.errors import DataError
from tasks.formats.ledgers import write_ledger
from tasks.lab.study.measures import measure
from tests.records import filled

CELL = StudyCell(
    variant="a",
    seed=1,
    run="x:Y",
    settings='{"grading": {"samples": 4}}',
    checkpoints=("merged", "rl/one", "rl/two"),
    max_tokens=0,
)
METRICS = {
    "zero_variance/share": 0.25,
    "zero_variance/trained_share": 0.5,
    "policy/clip_share": 0.0,
    "rollout/staleness_versions": 0.0,
    "mismatch/mean_abs_logprob": 1e-6,
    "mismatch/k3": 1e-12,
    "policy/entropy_nats": 0.5,
    "policy/grad_norm": 1.0,
    "policy/trained_tokens": 100.0,
    "rollout/length_tokens": 10.0,
    "reward/mean": 0.5,
}


def row(problem: str, outcome: GroupOutcome, trained: int) -> LedgerRow:
    """A prompt that generated 100 tokens, 10 of them drafts."""
    return filled(
        LedgerRow,
        problem_id=problem,
        outcome=outcome,
        rollouts=8,
        generated_tokens=100,
        draft_tokens=10,
        trained_tokens=trained,
        solved=4,
    )


def phase(folder: Path, *rows: LedgerRow, **metrics: float) -> Path:
    """A phase of one step; its metrics by their names below 'policy/'."""
    folder.mkdir()
    write_ledger(folder / LEDGER_FILE, rows)
    own = {f"policy/{name}": value for name, value in metrics.items()}
    step = StepReport(step=1, policy_version=1, metrics=METRICS | own)
    (folder / STEPS_FILE).write_text(step.model_dump_json() + "\n")
    timing = StepTiming(step=1, seconds={"rollout": 1.0}, cpu_seconds={"rollout": 2.0})
    (folder / TIMING_FILE).write_text(timing.model_dump_json() + "\n")
    return folder


def evaluation(folder: Path, scores: list[float | None], sources: str = "sss") -> Path:
    folder.mkdir()
    rows = [
        filled(
            SampleResult,
            problem_id=f"p{place // 2}",
            source=sources[place // 2],
            sample=place % 2,
            score=score,
        )
        for place, score in enumerate(scores)
    ]
    write_table(folder / "samples.parquet", SampleResult, rows)
    return folder


def graded(folder: Path) -> Path:
    folder.mkdir()
    domains = {"maths": {"graded": 10, "mean_tokens": 20.5}}
    (folder / "report.json").write_text(json.dumps({"domains": domains}))
    return folder


def test_tokens_of_grading_drafts_and_all_phases_are_counted(tmp_path):
    reports = {
        "training/rl/one": phase(tmp_path / "one", row("p", GroupOutcome.NON_ZERO_VARIANCE, 90)),
        "training/rl/two": phase(
            tmp_path / "two", row("p", GroupOutcome.ZERO_VARIANCE_TRAINED, 60)
        ),
    }

    found = measure(CELL, reports, [graded(tmp_path / "graded")])

    assert {"merged": 820, "rl/one": 920, "rl/two": 1020} == found.tokens
    assert {"merged": 0, "rl/one": 1, "rl/two": 2} == found.steps
    assert {"merged": 0.0, "rl/one": 2.0, "rl/two": 4.0} == found.seconds
    assert (820, 200, 1020) == tuple(
        found.metrics[name] for name in ("tokens/grading", "tokens/rl", "tokens")
    )
    uses = {name: value for name, value in found.metrics.items() if name.startswith("use/")}
    assert (0.45, 0.3, 0.15, 0.1) == tuple(
        uses[f"use/{name}"] for name in ("trained", "trained_zvp", "no_advantage", "draft")
    )
    assert 0.75 == uses.pop("use/in a loss")
    assert 1.0 == pytest.approx(sum(uses.values()))
    assert (90 / 1020, 60 / 1020, 820 / 1020) == tuple(
        found.metrics[f"of all tokens/{name}"] for name in ("trained", "trained_zvp", "grading")
    )
    assert (0.25, 4.0) == (
        found.metrics["zero variance/first draws"],
        found.metrics["cpu seconds of rl"],
    )


def test_steadiness_is_the_variance_over_the_squared_mean_of_the_steps(tmp_path):
    one, two = row("p", GroupOutcome.NON_ZERO_VARIANCE, 9), row("q", GroupOutcome.UNSCORED, 0)
    reports = {
        "training/rl/one": phase(tmp_path / "one", one, grad_norm=1.0, trained_tokens=0.0),
        "training/rl/two": phase(tmp_path / "two", two, grad_norm=3.0, trained_tokens=200.0),
    }

    found = measure(CELL, reports, [graded(tmp_path / "graded")]).metrics

    steady = ("gradient", "trained tokens", "length", "mean reward")
    assert (0.25, 1.0, 0.0, 0.0) == tuple(found[f"{name}/relative variance"] for name in steady)


def test_entropy_is_of_both_ends_and_the_factor_of_rspo_of_the_steps_that_have_it(tmp_path):
    one, two = row("p", GroupOutcome.NON_ZERO_VARIANCE, 9), row("q", GroupOutcome.UNSCORED, 0)
    reports = {
        "training/rl/one": phase(tmp_path / "one", one, entropy_nats=0.8, router_shift=0.9),
        "training/rl/two": phase(tmp_path / "two", two, entropy_nats=0.6),
    }

    metrics = measure(CELL, reports, []).metrics

    assert (0.8, 0.6, 0.9) == (
        metrics["entropy/first step"],
        metrics["entropy/last step"],
        metrics["router shift"],
    )
    assert "router shift" not in measure(CELL, {"training/rl/two": tmp_path / "two"}, []).metrics


def test_what_was_not_trained_is_told_by_its_group_and_rules_are_judged_by_phase(tmp_path):
    """The prompt that grading solved always is foreseen as flat, the other one is not."""
    easy, mixed = (
        GradedProblem(
            id=name,
            domain=Domain.MATHS,
            language="en",
            messages=(Message(role=Role.USER, content="1 + 1"),),
            verifier="final_answer",
            answer="2",
            source="s",
            source_row="0",
            pass_rate=rate,
            mean_tokens=1.0,
            band=Band.UNGRADED,
        )
        for name, rate in (("easy", 1.0), ("mixed", 0.5))
    )
    folder = graded(tmp_path / "graded")
    write_table(folder / PROBLEMS_FILE, GradedProblem, [easy, mixed])
    rows = (
        row(easy.id, GroupOutcome.ZERO_VARIANCE_PARTIAL, 0),
        row(mixed.id, GroupOutcome.NON_ZERO_VARIANCE, 90),
    )

    found = measure(CELL, {"training/rl/one": phase(tmp_path / "one", *rows)}, [folder]).metrics

    assert (0.5, 0.0) == (
        found["outcome/zero_variance_partial"],
        found["outcome/zero_variance_idle"],
    )
    assert 1.0 == found["foreseen/rl/one/MoPPS, decay 1"]


def test_accuracy_is_of_responses_with_a_verdict_and_none_without(tmp_path):
    scores = [1.0, 0.0, 1.0, None, None, None]

    found = measure(CELL, {"merged": evaluation(tmp_path / "e", scores)}, [])

    assert {"p0": 0.5, "p1": 1.0, "p2": None} == found.accuracy["merged"]
    assert {"maths"} == set(found.domains.values())


def test_benchmarks_of_one_domain_are_families_of_their_own(tmp_path):
    reports = {"merged": evaluation(tmp_path / "e", [1.0] * 6, "sst")}

    families = measure(CELL, reports, []).domains

    assert {"p0": "maths of s", "p1": "maths of s", "p2": "maths of t"} == families


def test_a_recipe_reports_numbers_of_its_own(tmp_path):
    (tmp_path / "metrics.json").write_text('{"lift": 0.5}')

    assert {"lift": 0.5} == measure(CELL, {"mine": tmp_path}, []).metrics
    with pytest.raises(DataError, match="'other' has none of the files"):
        measure(CELL, {"other": tmp_path / "nothing"}, [])
