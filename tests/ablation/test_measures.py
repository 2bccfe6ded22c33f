import pytest

from data_schemas.arrow import write_table
from data_schemas.ledger import LedgerRow, PromptCost
from data_schemas.reports import StepReport, StepTiming
from data_schemas.samples import SampleResult
from tasks.ablation.measures import read_cell
from tasks.errors import DataError
from tasks.evaluation import runner
from tasks.rl import phase as run
from tasks.store.files import canonical_json


def test_a_phase_is_measured_as_the_docstring_defines(make_cell, make_row):
    costs = [
        PromptCost(
            step=step,
            round=0,
            problem_id="a",
            engine_seconds=1.0,
            verifier_seconds=0.5,
            judge_calls=0,
        )
        for step in (1, 1, 2)
    ]
    rows = [make_row(1, "a"), make_row(1, "b", solved=0), make_row(2, "c", generated_tokens=50)]
    steps = [{"policy/grad_norm": norm, "zero_variance/share": norm / 10} for norm in (1.0, 3.0)]

    cell = make_cell("full", 0, steps=steps, rows=rows, costs=costs)

    assert 2 == cell.steps
    assert 90 == cell.generated_tokens
    assert 45.0 == cell.tokens_per_solved
    assert (0.1, pytest.approx(0.3)) == cell.flat_first
    assert (40.0, 40.0) == cell.trained_tokens
    assert 2 == len(cell.rewards)
    assert 1.0 == cell.gradient_variance
    assert 0.25 == cell.gradient_relative_variance
    assert 0.25 == cell.wait_s
    assert 0.75 == cell.verify_s
    assert 3.0 == cell.step_s


def test_only_the_last_ten_steps_speak_for_the_reward(make_cell):
    steps = [{"reward/mean": 0.0}] * 5 + [{"reward/mean": 0.6}] * 10

    assert 0.6 == pytest.approx(make_cell("full", 0, steps=steps).reward)


def test_a_response_without_verdict_is_no_zero(make_cell):
    found = make_cell("full", 0, solved=((1, None), (None, None), (1, 0)))

    assert {"p0": 1.0, "p1": None, "p2": 0.5} == found.accuracy


def test_a_phase_without_steps_is_refused(make_cell):
    with pytest.raises(DataError, match="'gspo' with seed 1 has no step; raise max_tokens"):
        make_cell("gspo", 1, steps=())


def test_a_cell_is_read_from_the_files_of_phase_and_evaluation(
    make_cell, make_row, make_sample, metrics, tmp_path
):
    report = StepReport(step=1, policy_version=1, metrics=metrics)
    timing = StepTiming(step=1, seconds={"collect": 3.0, "reward": 0.25})
    (tmp_path / run.STEPS_FILE).write_bytes(canonical_json(report) + b"\n")
    (tmp_path / run.TIMING_FILE).write_bytes(canonical_json(timing) + b"\n")
    write_table(tmp_path / run.LEDGER_FILE, LedgerRow, [make_row(1, "a")])
    write_table(tmp_path / run.COSTS_FILE, PromptCost, [])
    samples = [make_sample("p0", 0, 1.0), make_sample("p0", 1, 0.0)]
    write_table(tmp_path / runner.SAMPLES_FILE, SampleResult, samples)

    assert make_cell("full", 4, solved=((1, 0),)) == read_cell("full", 4, tmp_path, tmp_path)
