"""The commands `init` and `data`: their options, before any library is loaded."""

import argparse
import importlib
import inspect
from collections.abc import Sequence
from pathlib import Path

INIT = "tasks.curation.init"
LISTING = "tasks.curation.listing"
"""Load pyarrow and the verifiers: not before the arguments are known to be right."""
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
    args = parser.parse_args(arguments)
    write = importlib.import_module(INIT).write_drafts
    write(args.tables, args.settings, args.label, args.language)


def data(arguments: Sequence[str]) -> None:
    """List every adapter, mapping file, suite, group of suites and verifier, and what each needs.

    An adapter needs columns of a row, a verifier the `answer` of a mapping file.

    eachprompt data
    """
    options("data", data.__doc__, "").parse_args(arguments)
    importlib.import_module(LISTING).show()


def options(command: str, about: str | None, examples: str) -> argparse.ArgumentParser:
    """Begin the options of a command."""
    return argparse.ArgumentParser(
        prog=f"eachprompt {command}",
        description=inspect.cleandoc(about or ""),
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
