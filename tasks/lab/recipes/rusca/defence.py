"""Mine what responses with a high rubric score have in common, and write it as vetoes.

python -m tasks.lab.recipes.rusca.defence REPORT rows.jsonl

After the defence against reward hacking of Rubicon (arXiv 2508.12790), which turns patterns such as
praise of the question and of oneself into a rubric. REPORT is the report folder of a finished phase
of RL; its step snapshots hold the responses. The rows have the problems with their rubrics and the
vetoes, for people to read first and then for the next phase:

    pyflyte run workflows/lab/recipes/rusca.py rusca --sources prompt_jsonl=rows.jsonl

Differs: Rubicon names patterns and no rule to find them. Here [I], a pattern is a phrase of PRAISE,
an opening that responses with a high score share, or a criterion that a response repeats word by
word. It counts in at least MIN_PROBLEMS problems, and if it is ENRICHED times as frequent among the
responses with a high score as among the others; so what a task asks for is no pattern. What is in a
prompt or a rubric is never a pattern, but for criteria. No judge reads a veto: it is a phrase that
is forbidden.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from data_schemas.rollouts import RolloutGroup
from data_schemas.rows import Problem
from tasks.errors import SettingsError
from tasks.gym.protocol import answer_part
from tasks.platform.command_line import command_parser, run
from tasks.rl.step_snapshot import FOLDER, decode
from tasks.store.files import canonical_json, write_bytes

HIGH = 0.8
"""Score from which a response counts as high."""
OPENING_WORDS = 3
MIN_CRITERION_WORDS = 4
"""Shorter criteria are repeated by chance."""
MIN_PROBLEMS = 3
ENRICHED = 2.0
PRAISE = (
    "great question",
    "good question",
    "excellent question",
    "this response fully",
    "this answer fully",
    "meets all criteria",
    "meets every criterion",
    "as an expert",
)
"""Praise of the question and of the answer, which Rubicon reports."""
_RUBRICS = ("rubric", "rule_rubric")


@dataclass(frozen=True, slots=True)
class Pattern:
    """A phrase that pays."""

    phrase: str
    kind: str
    problems: int
    """With a response of a high score that has it."""
    high: float
    """Share of the responses with a high score that have it."""
    low: float
    """Share of the others."""


@dataclass(frozen=True, slots=True)
class _Response:
    problem: Problem
    text: str
    is_high: bool


def mine(groups: Iterable[RolloutGroup]) -> list[Pattern]:
    """Find the patterns of a phase, the most frequent first; none without rubrics."""
    responses = [
        _Response(group.problem, _folded(answer_part(item.text) or ""), item.verdict.score >= HIGH)
        for group in groups
        if group.problem.verifier in _RUBRICS
        for item in group.rollouts
        if item.verdict.score is not None
    ]
    problems = {one.problem.id: one.problem for one in responses}.values()
    openings = {" ".join(one.text.split()[:OPENING_WORDS]) for one in responses if one.is_high}
    criteria = {text for problem in problems for text in _criteria(problem)}
    task_text = "\n".join(_folded(f"{one.prompt_text}\n{one.answer}") for one in problems)
    kinds = {phrase: "opening" for phrase in openings if len(phrase.split()) == OPENING_WORDS}
    kinds |= dict.fromkeys(PRAISE, "praise")
    kinds = {phrase: kind for phrase, kind in kinds.items() if phrase not in task_text}
    kinds |= {text: "criterion" for text in criteria if len(text.split()) >= MIN_CRITERION_WORDS}
    results = [_count(phrase, kind, responses) for phrase, kind in sorted(kinds.items())]
    patterns = [
        one for one in results if one.problems >= MIN_PROBLEMS and one.high >= ENRICHED * one.low
    ]
    return sorted(patterns, key=lambda one: (-one.high, one.phrase))


def defended(problem: Problem, patterns: Sequence[Pattern]) -> dict[str, object] | None:
    """Return the problem's row with the vetoes; None if its rubric has penalties.

    Only `rubicon` has vetoes, and it has no penalties.
    """
    rubric = json.loads(problem.answer)
    if any(item["points"] < 0 for item in rubric["criteria"]):
        return None
    vetoes = [
        {
            "criterion": f"Do not say {one.phrase!r}.",
            "points": 0.0,
            "veto": True,
            "verifier": "instruction_rules",
            "answer": {
                "instruction_id_list": ["keywords:forbidden_words"],
                "kwargs": [{"forbidden_words": [one.phrase]}],
            },
        }
        for one in patterns
    ]
    answer = {**rubric, "criteria": [*rubric["criteria"], *vetoes], "aggregation": "rubicon"}
    return {
        "id": problem.id,
        "domain": problem.domain,
        "language": problem.language,
        "messages": [message.model_dump(mode="json") for message in problem.messages],
        "verifier": problem.verifier,
        "answer": answer,
    }


def find_snapshots(report: Path) -> list[Path]:
    """Find the step snapshots of a phase's report, by step."""
    # As numbers: from step 1,000,000 on the names are longer.
    return sorted((report / FOLDER).glob("[0-9]*.npz"), key=lambda path: int(path.stem))


def read_groups(report: Path) -> list[RolloutGroup]:
    """Read the groups of all step snapshots in a phase's report, by step.

    Raises:
        SettingsError: there is none.
    """
    paths = find_snapshots(report)
    if not paths:
        raise SettingsError(f"{report} has no step snapshots; give the report folder of a phase")
    return [entry.group for path in paths for entry in decode(path.read_bytes()).groups]


def main(arguments: Sequence[str]) -> None:
    """Write the rows and print the patterns; see --help."""
    parser = command_parser("python -m tasks.lab.recipes.rusca.defence", __doc__)
    parser.add_argument("report", type=Path, help="report folder of a finished phase")
    parser.add_argument("rows", type=Path, help="file for the problems with vetoes")
    args = parser.parse_args(arguments)
    groups = read_groups(args.report)
    patterns = mine(groups)
    problems = {one.problem.id: one.problem for one in groups if one.problem.verifier in _RUBRICS}
    rows = [row for one in problems.values() if (row := defended(one, patterns)) is not None]
    write_bytes(args.rows, b"".join(canonical_json(row) + b"\n" for row in rows))
    table = Table("pattern", "kind", "problems", "high", "others", box=box.SIMPLE_HEAD)
    for one in patterns:
        table.add_row(one.phrase, one.kind, str(one.problems), f"{one.high:.0%}", f"{one.low:.0%}")
    console = Console(highlight=False)
    console.print(table)
    console.print(f"{len(rows)} of {len(problems)} problems with {len(patterns)} vetoes each")


def _count(phrase: str, kind: str, rows: Sequence[_Response]) -> Pattern:
    has = [one.text.startswith(phrase) if kind == "opening" else phrase in one.text for one in rows]
    pairs = list(zip(rows, has, strict=True))
    high = [mark for one, mark in pairs if one.is_high]
    low = [mark for one, mark in pairs if not one.is_high]
    problems = {one.problem.id for one, mark in pairs if mark and one.is_high}
    return Pattern(phrase, kind, len(problems), _share(high), _share(low))


def _share(marks: Sequence[bool]) -> float:
    return sum(marks) / len(marks) if marks else 0.0


def _criteria(problem: Problem) -> list[str]:
    rubric: Mapping[str, list[Mapping[str, str]]] = json.loads(problem.answer)
    return [_folded(item["criterion"]) for item in rubric["criteria"]]


def _folded(text: str) -> str:
    return " ".join(text.lower().split())


if __name__ == "__main__":
    run(main)
