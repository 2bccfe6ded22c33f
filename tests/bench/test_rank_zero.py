"""The table of rank 0 says what a step of the paper's size takes."""

from rich.console import Console

from tests.bench.rank_zero import OWN, Load, table


def test_seconds_of_a_few_responses_are_extrapolated_to_a_step():
    load = Load(others=2, responses=3, tokens=101, layers=3, top=2)
    console = Console(width=120, record=True)
    console.print(table(load, {OWN: 3.2, "batch": 2.0}))  # of one response, and of two others
    shown = " ".join(console.export_text().split())

    assert 600 == load.route_bytes / load.responses
    assert f"{OWN} 0.1000 410 batch 0.9687 3968 sum 1.0687 4378" in shown
