"""Build the page of an evaluation: ladder, families by language, differences, and every answer.

The page is one file. It holds at most MAX_PROBLEMS problems, those first on which the last model
falls behind another; what is left out is said.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from jinja2 import Environment, StrictUndefined

from data_schemas.prompts import Problem
from data_schemas.raw_files import RowPlace
from data_schemas.reports import EvaluationReport, SuiteScore
from data_schemas.samples import SampleResult
from data_schemas.settings import EvaluationSettings
from tasks.algorithms.comparison import compare
from tasks.algorithms.suites import per_problem
from tasks.formats.script_data import script_json, visible
from tasks.pages.answers.template import PAGE
from tasks.platform.page_style import STYLE

MAX_PROBLEMS = 400
MAX_CHARACTERS = 20_000
"""Of a response; the end is kept, because it holds the answer."""

Evaluated = tuple[EvaluationReport, Sequence[SampleResult]]


def render(
    title: str,
    evaluated: Sequence[Evaluated],
    problems: Mapping[str, Problem],
    rows: Mapping[str, RowPlace],
    settings: EvaluationSettings,
) -> bytes:
    """Build the page.

    Args:
        title: of the page.
        evaluated: reports with samples of the same problems, the last model's last.
        problems: by id.
        rows: where each raw row lies, by its hash.
        settings: of the bootstrap.

    Raises:
        DataError: the models answered different problems.
    """
    chosen = _chosen(evaluated)
    data = {
        "title": title,
        "models": [report.model for report, _ in evaluated],
        "ladder": [_ladder(report) for report, _ in evaluated],
        "heat": [_heat(samples) for _, samples in evaluated],
        "differences": _differences(evaluated, settings),
        "problems": [_problem(problems[name], rows) for name in chosen],
        "answers": [_answers(samples, chosen) for _, samples in evaluated],
        "left_out": len({row.problem_id for row in evaluated[-1][1]}) - len(chosen),
    }
    environment = Environment(autoescape=True, finalize=visible, undefined=StrictUndefined)
    # No '<' survives in the data, so that no text of a response can end the script element.
    text = script_json(data)
    return environment.from_string(PAGE).render(title=title, style=STYLE, data=text).encode()


def _ladder(report: EvaluationReport) -> dict[str, Any]:
    """The whole of one model, and how it was sampled."""
    overall = next(score for score in report.suites if score.suite == "all")
    sampling = report.sampling
    return {
        **_score(overall),
        "pass": overall.pass_at_k,
        "majority": overall.majority_at_k,
        "tokens": report.mean_response_tokens,
        "truncated": report.truncated_share,
        "abstained": overall.abstained,
        "k": overall.samples,
        "sampling": "not recorded"
        if sampling is None
        else f"temperature {sampling.temperature:g}, top-p {sampling.top_p:g}, "
        f"at most {sampling.max_new_tokens} tokens, seed {sampling.seed}",
    }


def _score(score: SuiteScore) -> dict[str, float]:
    return {"accuracy": score.accuracy, "low": score.low, "high": score.high}


def _heat(samples: Sequence[SampleResult]) -> dict[str, dict[str, tuple[float, int]]]:
    """Accuracy and problems per task family and language."""
    cells: dict[str, dict[str, list[SampleResult]]] = {}
    for row in samples:
        cells.setdefault(row.domain.value, {}).setdefault(row.language, []).append(row)
    return {
        family: {language: cell for language, rows in members.items() if (cell := _mean(rows))}
        for family, members in cells.items()
    }


def _mean(rows: Sequence[SampleResult]) -> tuple[float, int] | None:
    decided = [problem.accuracy for problem in per_problem(rows) if problem.decided]
    return (sum(decided) / len(decided), len(decided)) if decided else None


def _differences(
    evaluated: Sequence[Evaluated], settings: EvaluationSettings
) -> list[dict[str, Any]]:
    """Every pair of models on every family and language, certain losses first."""
    differences = [
        {"candidate": later, "parent": earlier, **one.model_dump(exclude={"parent"})}
        for earlier, later in combinations(range(len(evaluated)), 2)
        for one in compare(
            evaluated[later][1], evaluated[earlier][1], evaluated[earlier][0].model, settings
        )
    ]
    return sorted(differences, key=lambda one: (one["high"] >= 0.0, one["difference"]))


def _chosen(evaluated: Sequence[Evaluated]) -> list[str]:
    """Return the ids of the problems on the page: regressions of the last model first."""
    scores = [
        {one.problem_id: one.accuracy for one in per_problem(samples) if one.decided}
        for _, samples in evaluated
    ]
    names = list(dict.fromkeys(row.problem_id for row in evaluated[-1][1]))
    last = scores[-1]

    def gain(name: str) -> float:
        others = [score[name] for score in scores[:-1] if name in score]
        return last[name] - max(others) if name in last and others else 0.0

    return sorted(names, key=gain)[:MAX_PROBLEMS]


def _problem(problem: Problem, rows: Mapping[str, RowPlace]) -> dict[str, Any]:
    place = rows.get(problem.source_row)
    where = f", row {place.number} of the file with sha256 {place.file}" if place else ""
    return {
        "id": problem.id,
        "family": problem.domain.value,
        "language": problem.language,
        "source": problem.source,
        "prompt": [[message.role.value, message.content] for message in problem.messages],
        "verifier": problem.verifier,
        "answer": problem.answer,
        "row": f"sha256 {problem.source_row}{where}",
    }


def _answers(samples: Sequence[SampleResult], chosen: Sequence[str]) -> list[list[dict[str, Any]]]:
    by_problem: dict[str, list[dict[str, Any]]] = {name: [] for name in chosen}
    for row in samples:
        if row.problem_id in by_problem:
            cut = max(0, len(row.text) - MAX_CHARACTERS)
            by_problem[row.problem_id].append(
                {
                    "text": row.text[cut:],
                    "cut": cut,
                    "score": row.score,
                    "solved": row.solved,
                    "reason": row.reason,
                    "detail": row.detail,
                    "tokens": row.tokens,
                    "truncated": row.truncated,
                }
            )
    return [by_problem[name] for name in chosen]
