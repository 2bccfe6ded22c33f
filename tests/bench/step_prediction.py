"""How well steps of a phase predict the parts of another phase's steps, on the embedded engines.

    python -m tests.bench.step_prediction runs/objects/A ... --held_out runs/objects/B ...

A and B are reports of RL phases; `report` outputs of their statements name them. Give reports of
two shapes of steps at least: one shape does not separate what a pass, a token and a prompt take.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tasks.platform.command_line import run
from tests.bench.calibration import calibrate, predict, read_steps


def main(arguments: Sequence[str]) -> None:
    """Fit, predict and print."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.step_prediction",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("calibration", type=Path, nargs="+", help="reports that rates are from")
    parser.add_argument("--held_out", type=Path, nargs="+", required=True, help="reports")
    options = parser.parse_args(arguments)
    rates = calibrate([step for folder in options.calibration for step in read_steps(folder)])
    table = Table(
        title="CPU seconds of the median step", title_justify="left", title_style="", box=None
    )
    table.add_column("report")
    table.add_column("part")
    for head in ("measured", "predicted", "error"):
        table.add_column(head, justify="right")
    for folder in options.held_out:
        for part, (measured, predicted) in predict(rates, read_steps(folder)).items():
            error = f"{predicted / measured - 1.0:+.1%}"
            table.add_row(folder.name, part, f"{measured:.3f}", f"{predicted:.3f}", error)
    Console(highlight=False).print(table)


if __name__ == "__main__":
    run(main)
