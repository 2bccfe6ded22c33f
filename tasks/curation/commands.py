"""The commands `init`, `data` and `verify`: their options, before any library is loaded."""

import argparse
import importlib
import inspect
import sys
from collections.abc import Sequence
from pathlib import Path

from tasks.platform.command_line import command_parser

INIT = "tasks.curation.init"
LISTING = "tasks.curation.listing"
VERIFYING = "tasks.curation.verify_table"
"""Load pyarrow and the verifiers: not before the arguments are known to be right."""
LICENCE = "Licence of these tables (an SPDX name such as CC-BY-4.0, or words; empty: unknown): "
RESPONSIBLE = "Who answers for them (a person or a team; empty: unknown): "
EXAMPLES = """examples:
  eachprompt init products.csv
  eachprompt init products.csv reviews.csv dialogues.jsonl --settings shop.yaml
  eachprompt init produk.csv --label kategori --language id
"""


def init(arguments: Sequence[str]) -> None:
    """Draft the mappings of your tables, show what they make of the first rows, write the YAML."""
    parser = options("init", init.__doc__, EXAMPLES)
    parser.add_argument("tables", nargs="+", type=Path, help="CSV, JSON lines or Parquet")
    parser.add_argument(
        "--settings", type=Path, default=Path("my_settings.yaml"), help="file to write"
    )
    parser.add_argument("--label", default="", help="column of the labels, in every table")
    parser.add_argument("--language", default="", help="BCP 47 tag, or the column that has it")
    parser.add_argument("--licence", default="", help="of the tables: an SPDX name, or words")
    parser.add_argument("--responsible", default="", help="who answers for the tables")
    args = parser.parse_args(arguments)
    terms = [
        text or (input(question) if sys.stdin.isatty() else "")
        for text, question in ((args.licence, LICENCE), (args.responsible, RESPONSIBLE))
    ]
    write = importlib.import_module(INIT).write_drafts
    write(args.tables, args.settings, args.label, args.language, *map(str.strip, terms))


def data(arguments: Sequence[str]) -> None:
    """List every adapter, mapping file, suite, group of suites and verifier, and what each needs.

    An adapter needs columns of a row, a verifier the `answer` of a mapping file.

    eachprompt data
    """
    options("data", data.__doc__, "").parse_args(arguments)
    importlib.import_module(LISTING).show()


def verify(arguments: Sequence[str]) -> None:
    """Verify the answers of a table: verdict and reason, and where math-verify decides otherwise.

    eachprompt verify answers.csv --column gold=reference --column answer=output
    """
    parser = options("verify", verify.__doc__, "")
    parser.add_argument("table", type=Path, help="CSV, JSON lines, Parquet or a workbook")
    parser.add_argument(
        "--column",
        action="append",
        default=[],
        metavar="ROLE=NAME",
        help="which column is the question, gold, answer or language [of that name]",
    )
    parser.add_argument(
        "--verifier",
        choices=("final_answer", "rule_answer"),
        default="final_answer",
        help="final_answer reads boxes and sentences, rule_answer boxes only [final_answer]",
    )
    parser.add_argument("--language", default="en", help="BCP 47 tag, of rows without one [en]")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("verdicts.csv"),
        help="a new file; an earlier one is not written over [verdicts.csv]",
    )
    parser.add_argument("--show", type=int, default=20, help="disagreements to print [20]")
    args = parser.parse_args(arguments)
    importlib.import_module(VERIFYING).show(
        args.table,
        args.column,
        args.out,
        verifier=args.verifier,
        language=args.language,
        most=args.show,
    )


def options(command: str, about: str | None, examples: str) -> argparse.ArgumentParser:
    """Begin the options of a command."""
    return command_parser(f"eachprompt {command}", inspect.cleandoc(about or ""), examples)
