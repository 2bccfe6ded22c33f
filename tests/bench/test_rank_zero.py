"""What rank 0 takes for a response, and what the table says of a step of the paper's size."""

import json
from pathlib import Path

import pytest
from rich.console import Console

from tests.bench.rank_zero import LONGEST, OWN, Load, continued, measure, response_seconds, table
from tests.engines.trainer_megatron.gloo_world import run_world


def test_seconds_of_a_few_responses_are_extrapolated_to_a_step():
    load = Load(others=2, responses=3, tokens=101, layers=3, top=2)
    console = Console(width=120, record=True)
    console.print(table(load, {OWN: 3.2, "batch": 2.0}))  # of one response, and of two others
    shown = " ".join(console.export_text().split())

    assert 600 == load.route_bytes / load.responses
    assert f"{OWN} 0.1000 410 batch 0.9687 3968 sum 1.0687 4378" in shown


def test_the_kept_measurement_of_a_large_team_is_continued_by_the_bytes_of_longer_responses():
    kept = json.loads(Path(__file__).with_name("rank_zero.json").read_bytes())
    sums = {int(tokens): sum(row.values()) for tokens, row in kept["cpu_s_a_response"].items()}
    shape = kept["layers"], kept["top"]
    loads = [Load(kept["ranks"] - 1, kept["responses"], tokens, *shape) for tokens in sums]

    assert LONGEST == kept["continued_to_tokens"]
    assert pytest.approx([continued(load, sums[load.tokens]) for load in loads]) == list(
        kept["continued_cpu_s_a_response"].values()
    )


@pytest.mark.slow
def test_rank_zero_takes_at_most_three_hundredths_of_a_second_for_a_response():
    """CPU seconds as they are, not scaled by the speed of the machine: an old processor took 0.02.

    The bound leaves it half as much again: threads that wait for a loaded machine look at their
    sockets meanwhile.
    """
    load = Load(others=2, responses=12, tokens=2**15, layers=72, top=4)

    seconds = run_world(measure, load.ranks, load, timeout_s=240)[0]

    Console(highlight=False).print(table(load, seconds))
    assert 0.03 >= sum(response_seconds(load, seconds).values())
