"""Rates from reports: exact where the world is linear, and predicted for other sizes."""

import pytest

from data_schemas.arrow import write_table
from data_schemas.ledgers import GroupOutcome, LedgerRow
from data_schemas.reports import LEDGER_FILE, STEPS_FILE, TIMING_FILE, StepReport, StepTiming
from tasks.errors import DataError
from tests.bench.calibration import StepWork, calibrate, predict, read_steps
from tests.records import filled


def step(passes: float, tokens: float, batch: float) -> StepWork:
    amounts = {
        "steps": 1.0,
        "passes": passes,
        "tokens": tokens,
        "prompt_tokens": tokens / 4 + passes,
        "batch_prompt_tokens": passes,
        "batch_response_tokens": batch,
    }
    seconds = {
        "collect": 0.01 * passes + 0.002 * tokens + 0.001 * amounts["prompt_tokens"],
        "old_logprobs": 0.1 + 0.003 * batch + 0.004 * passes,
        "update": 0.2 + 0.009 * batch + 0.02 * passes,
        "weight_sync": 0.05,
    }
    return StepWork(amounts, seconds)


def test_a_linear_machine_is_predicted_exactly_at_another_size():
    known = [step(48, 900, 500), step(64, 700, 650), step(50, 1000, 400)]
    other = [step(200, 9000, 7000)]

    for measured, predicted in predict(calibrate(known), other).values():
        assert pytest.approx(measured) == predicted


def test_one_step_that_was_disturbed_changes_no_prediction():
    known = [step(48, 900, 500), step(64, 700, 650), step(50, 1000, 400), step(70, 800, 900)]
    other = [step(200, 9000, 7000)] * 3
    disturbed = StepWork(other[0].amounts, {part: 9.0 * s for part, s in other[0].seconds.items()})

    for measured, predicted in predict(calibrate(known), [*other, disturbed]).values():
        assert pytest.approx(measured) == predicted


def row(step_number: int, outcome: GroupOutcome, round_number: int) -> LedgerRow:
    counts = dict.fromkeys(("saved_tokens", "draft_tokens", "trained_tokens", "abstained"), 0)
    zeros = dict.fromkeys(("mean_score", "advantage_mass", "pass_rate_change"), 0.0)
    return filled(
        LedgerRow,
        step=step_number,
        round=round_number,
        problem_id="a",
        outcome=outcome,
        prompt_tokens=10,
        generated_tokens=30,
        **counts,
        **zeros,
    )


def write_report(folder, cpu_seconds: dict[str, float]) -> None:
    outcomes = (GroupOutcome.NON_ZERO_VARIANCE, GroupOutcome.SURPLUS)
    rows = [row(number, one, place) for number in (1, 2) for place, one in enumerate(outcomes)]
    write_table(folder / LEDGER_FILE, LedgerRow, rows)
    metrics = {"schedule/makespan_tokens": 20.0}
    for name, lines in (
        (STEPS_FILE, [StepReport(step=n, policy_version=n, metrics=metrics) for n in (1, 2)]),
        (TIMING_FILE, [StepTiming(step=n, seconds={}, cpu_seconds=cpu_seconds) for n in (1, 2)]),
    ):
        (folder / name).write_text("".join(f"{line.model_dump_json()}\n" for line in lines))


PARTS = {"collect": 2.0, "old_logprobs": 0.5, "update": 1.0, "weight_sync": 0.1}


def test_a_report_says_what_its_steps_did_and_the_first_step_does_not_count(tmp_path):
    write_report(tmp_path, PARTS)
    amounts = {"passes": 40.0, "tokens": 60.0, "prompt_tokens": 20.0}
    amounts |= {"batch_prompt_tokens": 10.0, "batch_response_tokens": 30.0}

    assert [StepWork(amounts | {"steps": 1.0}, PARTS)] == read_steps(tmp_path)


def test_a_report_without_cpu_seconds_is_refused(tmp_path):
    write_report(tmp_path, {})

    with pytest.raises(DataError, match="each with its CPU seconds"):
        read_steps(tmp_path)


def test_a_folder_that_is_no_report_is_named(tmp_path):
    with pytest.raises(DataError, match="is not the report of an RL phase"):
        read_steps(tmp_path)
