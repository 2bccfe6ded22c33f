"""Results and instances in the format of Every Eval Ever 0.3.

Source: schemas/eval.schema.json and schemas/instance_level_eval.schema.json of the package
every_eval_ever 0.3.0. A response without a verdict is not an instance: the format has no
abstentions, and a score of 0 would count it as wrong.
"""

import json
import uuid
from collections.abc import Mapping, Sequence

from data_schemas.reports import EvaluationReport, SuiteScore
from data_schemas.rows import Problem
from data_schemas.samples import SampleResult
from tasks.algorithms.intervals import CONFIDENCE, RESAMPLES
from tasks.gym.protocol import THINK_CLOSE, THINK_OPEN, answer_part
from tasks.store.files import canonical_json, sha256_bytes

VERSION = "0.3.0"
LIBRARY_VERSION = "0.2.0"
"""That of pyproject.toml, which no image contains."""
_SOURCE = "source:"


def aggregate(
    report: EvaluationReport, instances: bytes, *, path: str, date: float
) -> dict[str, object]:
    """Return the content of a results file.

    Args:
        report: of the model.
        instances: the lines of its sample file.
        path: of the sample file.
        date: Unix time.
    """
    stamp = f"{date:.0f}"
    endpoint = " at http" in report.checkpoint
    return {
        "schema_version": VERSION,
        "evaluation_id": evaluation_id(report, date),
        "evaluation_timestamp": stamp,
        "retrieved_timestamp": stamp,
        "source_metadata": {
            "source_name": "EachPrompt",
            "source_type": "evaluation_run",
            "source_organization_name": "EachPrompt",
            "evaluator_relationship": "third_party" if endpoint else "first_party",
        },
        "eval_library": {"name": "eachprompt", "version": LIBRARY_VERSION},
        "model_info": {
            "name": report.model,
            "id": f"eachprompt/{report.model.replace('/', '-')}",
            "additional_details": {
                "deployment_type": "externally_managed" if endpoint else "self_deployed",
                "model_availability": "unknown" if endpoint else "open_weights",
                "checkpoint": report.checkpoint,
            },
        },
        "evaluation_results": [
            _result(suite, report)
            for suite in report.suites
            if suite.suite.startswith(_SOURCE) and suite.problems
        ],
        "detailed_evaluation_results": {
            "format": "jsonl",
            "file_path": path,
            "hash_algorithm": "sha256",
            "checksum": sha256_bytes(instances),
            "total_rows": instances.count(b"\n"),
        },
    }


def instance_lines(
    report: EvaluationReport,
    samples: Sequence[SampleResult],
    problems: Mapping[str, Problem],
    date: float,
) -> bytes:
    """Return one JSON line per response that has a verdict."""
    return b"".join(
        json.dumps(_instance(row, problems[row.problem_id], report, date)).encode() + b"\n"
        for row in samples
        if row.scored
    )


def evaluation_id(report: EvaluationReport, date: float) -> str:
    """Name an evaluation: evaluation/model/time."""
    return f"eachprompt/{report.model.replace('/', '-')}/{date:.0f}"


def sample_path(report: EvaluationReport, date: float) -> str:
    """Return the path of the sample file, whose name is a UUID of version 4."""
    digest = bytes.fromhex(sha256_bytes(evaluation_id(report, date).encode()))[:16]
    name = uuid.UUID(bytes=digest, version=4)
    return f"data/eachprompt/eachprompt/{report.model.replace('/', '-')}/{name}_samples.jsonl"


def _result(suite: SuiteScore, report: EvaluationReport) -> dict[str, object]:
    name, sampling = suite.suite.removeprefix(_SOURCE), report.sampling
    result: dict[str, object] = {
        "evaluation_result_id": name,
        "evaluation_name": name,
        "source_data": {"dataset_name": name, "source_type": "other"},
        "metric_config": {
            "evaluation_description": f"share of {suite.samples} responses that solve a problem, "
            "mean over problems",
            "metric_id": "accuracy",
            "metric_name": f"avg@{suite.samples}",
            "metric_kind": "accuracy",
            "metric_unit": "proportion",
            "metric_parameters": {"k": suite.samples},
            "lower_is_better": False,
            "score_type": "continuous",
            "min_score": 0.0,
            "max_score": 1.0,
        },
        "score_details": {
            "score": suite.accuracy,
            "details": {"abstained": str(suite.abstained), "pass_at_k": f"{suite.pass_at_k:.6f}"},
            "uncertainty": {
                "confidence_interval": {
                    "lower": suite.low,
                    "upper": suite.high,
                    "confidence_level": CONFIDENCE,
                    "method": "percentile bootstrap over problems",
                },
                "num_samples": suite.problems,
                "num_bootstrap_samples": RESAMPLES,
            },
        },
    }
    if sampling is not None:
        result["generation_config"] = {
            "generation_args": {
                "temperature": sampling.temperature,
                "top_p": sampling.top_p,
                "max_tokens": sampling.max_new_tokens,
            },
            "additional_details": {"min_p": str(sampling.min_p), "seed": str(sampling.seed)},
        }
    return result


def _instance(
    row: SampleResult, problem: Problem, report: EvaluationReport, date: float
) -> dict[str, object]:
    thoughts, mark, _ = row.text.partition(THINK_CLOSE)
    return {
        "schema_version": VERSION,
        "evaluation_id": evaluation_id(report, date),
        "model_id": f"eachprompt/{report.model.replace('/', '-')}",
        "evaluation_name": row.source,
        "evaluation_result_id": row.source,
        "sample_id": f"{row.problem_id}#{row.sample}",
        "sample_hash": sha256_bytes(canonical_json([problem.prompt_text, problem.answer])),
        "interaction_type": "single_turn",
        "input": {"raw": problem.prompt_text, "reference": [problem.answer]},
        "output": {
            "raw": [row.text],
            "reasoning_trace": [thoughts.replace(THINK_OPEN, "", 1)] if mark else None,
        },
        "messages": None,
        "answer_attribution": [
            {
                "turn_idx": 0,
                "source": "output.raw",
                "extracted_value": row.answer or answer_part(row.text) or "",
                "extraction_method": problem.verifier,
                "is_terminal": True,
            }
        ],
        "evaluation": {"score": row.score, "is_correct": row.solved},
        "metadata": {
            "reason": row.reason,
            "language": row.language,
            "output_tokens": str(row.tokens),
            "truncated": str(row.truncated).lower(),
        },
    }
