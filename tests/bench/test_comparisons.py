"""Comparisons of an RL step: every one has an outcome, and thresholds include their ends."""

import pytest

from tests.bench.comparisons import (
    THRESHOLDS,
    Outcome,
    Part,
    compare,
    line_of,
    read_comparisons,
    written,
)

ROLLOUTS, UPDATE, SYNC, LOOP_SECONDS, LOOP_PEAK = THRESHOLDS


def part(name: str, seconds: float = 1.0, *, peak: int | None = None, budget: int | None = None):
    return Part(name, 100, seconds, 100 / seconds, None, peak, budget)


def outcomes(*parts: Part) -> dict[str, Outcome]:
    return {one.comparison: one.outcome for one in compare({one.part: one for one in parts})}


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(10.0, Outcome.MET), (9.0, Outcome.MET), (10.1, Outcome.NOT_MET)],
)
def test_rollouts_reach_nine_tenths_of_vllms_benchmark(seconds, expected):
    assert expected == outcomes(part("rollouts", seconds), part("vllm_bench", 9.0))[ROLLOUTS]


@pytest.mark.parametrize("name", ["update", "weight_sync"])
@pytest.mark.parametrize(
    ("peak", "expected"),
    [
        (949, Outcome.NOT_MET),
        (950, Outcome.MET),
        (1050, Outcome.MET),
        (1051, Outcome.NOT_MET),
        (None, Outcome.NOT_MEASURED),
    ],
)
def test_peak_memory_is_within_five_percent_of_the_budget_on_both_sides(name, peak, expected):
    found = outcomes(part(name, peak=peak, budget=1000))

    assert expected == found[f"{name}: peak memory to make budget"]


def test_megatrons_own_loop_is_a_ratio_without_a_threshold():
    parts = (part("update", 3.0, peak=90), part("megatron_loop", 2.0, peak=100))
    found = {one.comparison: one for one in compare({one.part: one for one in parts})}

    assert (1.5, Outcome.NO_THRESHOLD) == (found[LOOP_SECONDS].ratio, found[LOOP_SECONDS].outcome)
    assert (0.9, Outcome.NO_THRESHOLD) == (found[LOOP_PEAK].ratio, found[LOOP_PEAK].outcome)
    assert Outcome.NOT_MEASURED == found[UPDATE].outcome


def test_what_a_command_printed_is_read_back_and_the_rest_is_not_measured():
    parts = {"update": part("update", peak=990, budget=1000)}
    printed = [line_of(one) for one in compare(parts)]

    assert compare(parts) == read_comparisons("\n".join(["{}", *printed, "a warning"]))
    assert [Outcome.NOT_MEASURED] * len(THRESHOLDS) == [one.outcome for one in read_comparisons("")]


def test_a_person_reads_ratio_outcome_and_threshold():
    lines = [written(one) for one in compare({"update": part("update", peak=990, budget=1000)})]

    assert "rollouts: tokens/s to vllm bench throughput: not measured (at least 0.9)" == lines[0]
    assert "update: peak memory to make budget: 0.990 met (0.95 to 1.05)" == lines[1]
    assert "update: seconds to Megatron's own loop: not measured" == lines[3]
