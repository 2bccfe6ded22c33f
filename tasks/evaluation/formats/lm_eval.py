"""Results and sample logs as lm-evaluation-harness 0.4 writes them: one task per source.

A document of a sample log is a problem. `acc` is the share of its responses with a verdict that
solve it; a problem without any verdict has no line and is counted in `n-samples`.
Source: `evaluator.py` and `loggers/evaluation_tracker.py` of lm_eval 0.4.13.
"""

import json
from collections.abc import Mapping, Sequence

import numpy as np

from data_schemas.reports import EvaluationReport
from data_schemas.rows import Problem
from data_schemas.samples import SampleResult
from tasks.algorithms.suites import ProblemScore, per_problem
from tasks.store.files import canonical_json, sha256_bytes

FILTER = "none"
ACCURACY = "acc"
PASS_AT_K = "pass_at_k"
MAJORITY = "maj_at_k"


def results(
    report: EvaluationReport, samples: Sequence[SampleResult], date: float
) -> dict[str, object]:
    """Return the content of results_<date>.json."""
    by_source = _by_source(samples)
    decided = {name: _decided(rows) for name, rows in by_source.items()}
    scores = {suite.suite.removeprefix("source:"): suite for suite in report.suites}
    sampling = report.sampling.model_dump() if report.sampling else {}
    tasks: dict[str, dict[str, object]] = {}
    for name, problems in decided.items():
        values = [problem.accuracy for problem in problems]
        tasks[name] = {
            "alias": name,
            f"{ACCURACY},{FILTER}": float(np.mean(values)) if values else None,
            f"{ACCURACY}_stderr,{FILTER}": _standard_error(values),
            f"{PASS_AT_K},{FILTER}": scores[name].pass_at_k,
            f"{MAJORITY},{FILTER}": scores[name].majority_at_k,
        }
    return {
        "results": tasks,
        "group_subtasks": {name: [] for name in tasks},
        "configs": {
            name: {"task": name, "repeats": scores[name].samples, "generation_kwargs": sampling}
            for name in tasks
        },
        "versions": dict.fromkeys(tasks, 1),
        "n-shot": dict.fromkeys(tasks, 0),
        "higher_is_better": {
            name: dict.fromkeys((ACCURACY, PASS_AT_K, MAJORITY), True) for name in tasks
        },
        "n-samples": {
            name: {
                "original": len({row.problem_id for row in rows}),
                "effective": len(decided[name]),
            }
            for name, rows in by_source.items()
        },
        "config": {"model": report.checkpoint, "model_args": "", "gen_kwargs": sampling},
        "date": date,
        "model_name": report.model,
        "model_source": "eachprompt",
    }


def sample_logs(
    samples: Sequence[SampleResult], problems: Mapping[str, Problem]
) -> dict[str, bytes]:
    """Return the lines of samples_<task>_<date>.jsonl by task."""
    return {
        name: b"".join(
            json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in _lines(rows, problems)
        )
        for name, rows in _by_source(samples).items()
    }


def _lines(
    rows: Sequence[SampleResult], problems: Mapping[str, Problem]
) -> list[dict[str, object]]:
    by_problem: dict[str, list[SampleResult]] = {}
    for row in rows:
        by_problem.setdefault(row.problem_id, []).append(row)
    lines: list[dict[str, object]] = []
    for number, (name, mine) in enumerate(by_problem.items()):
        (score,) = per_problem(mine)
        if not score.decided:
            continue
        problem = problems[name]
        doc = problem.model_dump(mode="json")
        lines.append(
            {
                "doc_id": number,
                "doc": doc,
                "target": problem.answer,
                "arguments": {"gen_args_0": {"arg_0": problem.prompt_text, "arg_1": {}}},
                "resps": [[row.text for row in mine]],
                "filtered_resps": [[row.text for row in mine]],
                "filter": FILTER,
                "metrics": [ACCURACY],
                "doc_hash": sha256_bytes(canonical_json(doc)),
                "prompt_hash": sha256_bytes(problem.prompt_text.encode()),
                "target_hash": sha256_bytes(problem.answer.encode()),
                ACCURACY: score.accuracy,
            }
        )
    return lines


def _by_source(samples: Sequence[SampleResult]) -> dict[str, list[SampleResult]]:
    by_source: dict[str, list[SampleResult]] = {}
    for sample in samples:
        by_source.setdefault(sample.source, []).append(sample)
    return by_source


def _decided(samples: Sequence[SampleResult]) -> list[ProblemScore]:
    return [problem for problem in per_problem(samples) if problem.decided]


def _standard_error(values: Sequence[float]) -> float | None:
    """Standard error of a mean, as lm-evaluation-harness computes it; None for one problem."""
    if len(values) < 2:
        return None
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))
