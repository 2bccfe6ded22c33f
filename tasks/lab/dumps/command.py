"""Print what the rollouts of another trainer say: signal, duplicates, mismatch, verdicts.

Reads what verl, slime, miles, prime-rl and TRL write while they train, one table for each file:
how many groups have no signal, whether siblings are the same text, how far the trainer's
log-probabilities are from the engine's and in which part of a response, and for which answers
other verifiers say otherwise, and which estimator gives the recorded advantages. A page shows the
last file token by token, and the curves of several files in their order.
"""

import importlib
from collections.abc import Sequence
from pathlib import Path

from tasks.errors import SettingsError
from tasks.platform.command_line import command_parser, run

EXAMPLES = """examples:
  verl, trainer.rollout_data_dir:
  eachprompt lab dumps rollouts/17.jsonl
  slime, --save-debug-rollout-data and --save-debug-train-data:
  eachprompt lab dumps rollout_17.pt train_17_0.pt
  TRL, log_completions:
  eachprompt lab dumps completions_00010.parquet --show 9"""
REPORT = "tasks.lab.dumps.report"
"""Loads torch and the verifiers: not before the arguments are known to be right."""


def main(arguments: Sequence[str]) -> None:
    """Print a table for each dump; see --help."""
    parser = command_parser("eachprompt lab dumps", __doc__, EXAMPLES)
    parser.add_argument("files", nargs="+", metavar="FILE", help="what the trainer wrote")
    parser.add_argument(
        "--rewards", default="", help="TRL: columns of rewards, a,b [all numbers]; their plain sum"
    )
    parser.add_argument("--show", type=int, default=5, help="answers judged otherwise [5]")
    parser.add_argument("--out", default="", help="JSON file for the numbers")
    parser.add_argument("--page", default="", help="HTML file: curves, and responses by token")
    parser.add_argument("--model", default="", help="folder whose tokenizer names the tokens")
    options = parser.parse_args(arguments)
    for file in options.files:
        if not Path(file).is_file():
            raise SettingsError(f"{file} is no file. Correct the path.")
    if options.model and not (Path(options.model) / "tokenizer_config.json").is_file():
        raise SettingsError(
            f"--model {options.model} has no tokenizer_config.json. Name the policy's folder."
        )
    report = importlib.import_module(REPORT)
    rewards = [name for name in options.rewards.split(",") if name]
    report.print_dumps(
        options.files, rewards, options.show, options.out, options.page, options.model
    )


if __name__ == "__main__":
    run(main)
