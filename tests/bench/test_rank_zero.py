"""The table of rank 0 says what a step of the paper's size takes."""

from rich.console import Console

from tests.bench.rank_zero import Load, table


def test_seconds_of_a_few_responses_are_extrapolated_to_a_step():
    load = Load(responses=2, tokens=101, layers=3, top=2)
    console = Console(width=120, record=True)
    console.print(table(load, {"batch": 0.5, "snapshot": 1.5}))
    shown = console.export_text()

    assert 600 == load.route_bytes / load.responses
    assert "sum 1.0000 4096" in " ".join(shown.split())
