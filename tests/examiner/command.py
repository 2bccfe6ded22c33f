"""Score answers whose verdict is known: `python -m tests.examiner.command DATA`.

Prints a confusion table of every verifier and writes each disagreement to disagreements.jsonl,
with examples of every kind in disagreements.md. `--classes` lists the classes. In addition to our
verifiers, math-verify scores the cases, and so does the code of BFCL and lm-evaluation-harness if
`--python` names an environment in which they are installed:

    python3 -m venv .venv-examiner
    .venv-examiner/bin/pip install "lm-eval[ifeval,math]==0.4.13" tenacity overrides python-dotenv
    .venv-examiner/bin/pip install tree_sitter==0.21.3 tree-sitter-java==0.21.0 \\
        tree-sitter-javascript==0.21.4
    .venv-examiner/bin/pip install pylatexenc==2.11
    .venv-examiner/bin/pip install --no-deps bfcl-eval==2026.3.23 verl==0.9.1 opencompass==0.5.4
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from tqdm import tqdm

from tasks.lab.study import evidence_file
from tasks.platform.command_line import run
from tasks.store.files import write_bytes
from tests.examiner.confusion import Confusion, disagrees, row, write_examples
from tests.examiner.families import FAMILIES, cases
from tests.examiner.scoring import MATH_VERIFY, Foreign, Scorer


def examine(asked: argparse.Namespace) -> Confusion:
    """Score the cases, write every disagreement, and return the counts."""
    asked.out.mkdir(parents=True, exist_ok=True)
    foreign = [Foreign(asked.python) for _ in range(asked.workers if asked.python else 0)]
    references = () if asked.alone else (MATH_VERIFY, *(foreign[0].checkers if foreign else ()))
    counted = Confusion()
    with (
        Scorer(asked.workers, references, foreign) as scorer,
        (asked.out / "disagreements.jsonl").open("w") as rows,
        tqdm(total=asked.cases, unit="case", disable=not sys.stderr.isatty()) as bar,
    ):
        for chunk in scorer.verdicts(cases(asked.data, asked.cases, asked.seed, asked.only)):
            for found in chunk:
                counted.add(found)
                if disagrees(found):
                    rows.write(json.dumps(row(found), ensure_ascii=False) + "\n")
            bar.update(len({id(found.case) for found in chunk}))
    write_examples(asked.out / "disagreements.jsonl", asked.out / "disagreements.md", asked.seed)
    return counted


def classes() -> Table:
    """List every class with what it does and an example."""
    shown = Table()
    for name in ("class", "must be", "what", "gold -> answer"):
        shown.add_column(name, overflow="fold")
    for family in FAMILIES:
        for kind in family.classes:
            must = "accepted" if kind.right else "refused"
            shown.add_row(f"{family.name}: {kind.name}", must, kind.about, kind.example)
    return shown


def parse_arguments(words: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "data", type=Path, nargs="?", help="folder with one sub-folder per data set"
    )
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", nargs="*", default=(), help="families; default: all")
    parser.add_argument("--alone", action="store_true", help="no checkers of other projects")
    parser.add_argument("--python", help="Python of an environment with lm-eval and bfcl-eval")
    parser.add_argument("--out", type=Path, default=Path("runs/examination"))
    parser.add_argument("--counts", type=Path, help="file for the sums that pages show")
    parser.add_argument("--classes", action="store_true", help="list the classes and stop")
    asked = parser.parse_args(words)
    if not asked.classes and (asked.data is None or not asked.data.is_dir()):
        parser.error(f"{asked.data} is no folder of data sets. Name one: make examine DATA=folder")
    return asked


def main(arguments: Sequence[str]) -> None:
    """Examine and print; see --help."""
    asked = parse_arguments(arguments)
    console = Console(width=120)
    if asked.classes:
        console.print(classes())
        return
    counted = examine(asked)
    console.print(counted.by_class(), counted.by_verifier())
    if asked.counts:
        made_by = f"python -m tests.examiner.command DATA --cases {asked.cases} --seed {asked.seed}"
        origin = evidence_file.origin(made_by, "tasks.gym.table")
        content = {**origin, "rows": counted.sums()}
        write_bytes(asked.counts, (json.dumps(content, indent=1) + "\n").encode())
    console.print(f"Every disagreement: {asked.out}/disagreements.jsonl, examples in .md")


if __name__ == "__main__":
    run(main)
