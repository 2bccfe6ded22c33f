"""Twenty held-out problems with what the first and the last model of a run answered to them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path

from data_schemas.arrow import read_table
from data_schemas.rows import Problem
from data_schemas.samples import SampleResult
from tasks.algorithms.comparison import SAMPLES_FILE
from tasks.algorithms.personal_data import without_personal_data
from tasks.formats.progression import read_evaluation
from tasks.store.files import sha256_bytes

SHOWN = 20
_BRIEF = 90
"""Characters of a prompt in its title."""


@dataclass(frozen=True, slots=True)
class FirstAnswer:
    """What a model answered first."""

    model: str
    text: str
    outcome: str
    kind: str
    """Colour of the outcome."""


@dataclass(frozen=True, slots=True)
class BeforeAfter:
    """One problem with both answers."""

    title: str
    prompt: str
    reference: str
    answers: tuple[FirstAnswer, ...]


def before_and_after(
    before: Path, after: Path, problems: Iterable[Problem], names: Sequence[str] = ()
) -> tuple[BeforeAfter, ...]:
    """Pair the first answers of two models to problems that their ids draw, domain by domain.

    Nobody chose them: neither what improved nor what did not is shown more often than it is.

    Args:
        before: folder of the evaluation of the first model.
        after: of the last one.
        problems: that were held out.
        names: of both; without them those of the evaluations.
    """
    folders = before, after
    names = names or [read_evaluation(folder).model for folder in folders]
    models = [(name, _first(folder)) for name, folder in zip(names, folders, strict=True)]
    by_id = {problem.id: problem for problem in problems}
    common = by_id.keys() & models[0][1].keys() & models[1][1].keys()
    return tuple(
        BeforeAfter(
            title=f"{problem.domain.value.replace('_', ' ')}, {problem.language}: "
            f"{_brief(without_personal_data(problem.prompt_text))}",
            prompt=f"{problem.id}\n{without_personal_data(problem.prompt_text)}",
            reference=without_personal_data(problem.answer),
            answers=tuple(_answered(name, answers[problem.id]) for name, answers in models),
        )
        for problem in _draw_in_turn([by_id[name] for name in common])
    )


def _brief(prompt: str) -> str:
    """Return what a prompt begins and ends with: instructions often come first."""
    line = " ".join(prompt.split())
    return line if len(line) <= _BRIEF else f"{line[: _BRIEF // 2]} \u2026 {line[-_BRIEF // 2 :]}"


def _first(folder: Path) -> Mapping[str, SampleResult]:
    rows = read_table(folder / SAMPLES_FILE, SampleResult)
    return {row.problem_id: row for row in rows if row.sample == 0}


def _draw_in_turn(problems: Sequence[Problem]) -> list[Problem]:
    """Take problems in the order of their ids' hashes, in turn from every domain and language."""
    groups: dict[tuple[str, str], list[Problem]] = defaultdict(list)
    for problem in sorted(problems, key=lambda one: sha256_bytes(one.id.encode())):
        groups[problem.domain.value, problem.language].append(problem)
    turns = zip_longest(*(groups[name] for name in sorted(groups)))
    return [one for one in chain.from_iterable(turns) if one is not None][:SHOWN]


def _answered(model: str, row: SampleResult) -> FirstAnswer:
    text, reason = without_personal_data(row.text), row.reason.replace("_", " ")
    if not row.scored:
        return FirstAnswer(model, text, f"no verdict: {reason}", "plain")
    return FirstAnswer(model, text, reason, "yes" if row.solved else "no")
