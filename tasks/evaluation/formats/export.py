"""Write one evaluation in the formats of other projects."""

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from data_schemas.arrow import read_table
from data_schemas.frozen_model import FrozenModel
from data_schemas.reports import EvaluationReport, SuiteScore
from data_schemas.rows import Problem
from data_schemas.samples import SampleResult
from data_schemas.suites import Metric, Suite
from tasks.algorithms.comparison import SAMPLES_FILE
from tasks.evaluation.formats import every_eval_ever, lm_eval
from tasks.formats.progression import read_evaluation
from tasks.store.files import write_bytes


class Formats(FrozenModel):
    """Versions of the formats, as recorded in the statement."""

    lm_eval: str = "0.4"
    every_eval_ever: str = every_eval_ever.VERSION


EVAL_RESULTS = ".eval_results/eachprompt.yaml"


def export(
    evaluation: Path,
    problems: Mapping[str, Problem],
    suites: Mapping[str, Suite],
    date: float,
    out: Path,
) -> None:
    """Write results and samples of one model.

    Args:
        evaluation: folder of report.json and samples.parquet.
        problems: by id.
        suites: by source; those with a dataset on the model hub are benchmarks there.
        date: Unix time of the evaluation.
        out: folder of the files.
    """
    report = read_evaluation(evaluation)
    samples = read_table(evaluation / SAMPLES_FILE, SampleResult)
    stamp = time.strftime("%Y-%m-%dT%H-%M-%S", time.gmtime(date))
    write_bytes(out / f"results_{stamp}.json", _json(lm_eval.results(report, samples, date)))
    for task, payload in lm_eval.sample_logs(samples, problems).items():
        write_bytes(out / f"samples_{task}_{stamp}.jsonl", payload)
    path = every_eval_ever.sample_path(report, date)
    lines = every_eval_ever.instance_lines(report, samples, problems, date)
    (out / path).parent.mkdir(parents=True)
    write_bytes(out / path, lines)
    record = every_eval_ever.aggregate(report, lines, path=path, date=date)
    write_bytes(out / path.replace("_samples.jsonl", ".json"), _json(record))
    entries = hub_entries(report, suites, date)
    if entries:
        (out / EVAL_RESULTS).parent.mkdir()
        write_bytes(out / EVAL_RESULTS, yaml.safe_dump(entries, sort_keys=False).encode())


def hub_entries(
    report: EvaluationReport, suites: Mapping[str, Suite], date: float
) -> Sequence[dict[str, object]]:
    """Return the entries of `.eval_results/*.yaml`, as the hub documents them (eval-results)."""
    scores = {score.suite.removeprefix("source:"): score for score in report.suites}
    return [
        {
            "dataset": {"id": suite.hub[0], "task_id": suite.hub[1]},
            "value": round(100 * _value(scores[source], suite.metric), 2),
            "date": time.strftime("%Y-%m-%d", time.gmtime(date)),
            "notes": f"{suite.metric.value}@{scores[source].samples} "
            f"of {scores[source].problems} problems",
        }
        for source, suite in suites.items()
        if suite.hub and source in scores and scores[source].problems
    ]


def _value(score: SuiteScore, metric: Metric) -> float:
    """Return the number that stands for a suite; without countable answers that of avg@k."""
    values = {
        Metric.PASS: score.pass_at_k,
        Metric.MAJORITY: score.majority_at_k,
        Metric.SCORE: score.score,
    }
    value = values.get(metric)
    return score.accuracy if value is None else value


def _json(value: object) -> bytes:
    return json.dumps(value, indent=2, ensure_ascii=False).encode() + b"\n"
