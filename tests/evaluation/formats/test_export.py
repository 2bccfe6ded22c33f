"""Results as others read them, against their published schemas."""

import json
import tomllib
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft7Validator

from data_schemas.arrow import write_table
from data_schemas.samples import SampleResult
from data_schemas.settings import EvaluationSettings
from data_schemas.suites import Suite
from tasks.evaluation.formats.every_eval_ever import LIBRARY_VERSION
from tasks.evaluation.formats.export import EVAL_RESULTS, export
from tasks.evaluation.formats.score_logs import read_scores
from tasks.evaluation.runner import summarise
from tests.evaluation.conftest import make_problem, make_samples

__all__ = ["make_problem", "make_samples"]
SUITE = Suite(name="hand", rows="hand", hub=("openai/gsm8k", "gsm8k"))
HERE = Path(__file__).parent
DATE = 1767225600.0  # 2026-01-01


@pytest.fixture
def exported(make_problem, make_samples, tmp_path):
    """Two solved out of three scored responses, one abstention, and a problem without verdict."""
    samples = [
        *make_samples("a", [1.0, 0.0], answers=["7", "8"]),
        *make_samples("b", [1.0, None], answers=["7", ""]),
        *make_samples("c", [None, None], answers=["", ""]),
    ]
    samples[0] = samples[0].model_copy(update={"text": "<think>3 + 4</think>7"})
    report = summarise(EvaluationSettings(samples=2), "rl/two", "c" * 64, samples)
    evaluation = tmp_path / "evaluation"
    evaluation.mkdir()
    write_table(evaluation / "samples.parquet", SampleResult, samples)
    (evaluation / "report.json").write_text(report.model_dump_json())
    out = tmp_path / "out"
    out.mkdir()
    problems = {name: make_problem(name) for name in "abc"}
    export(evaluation, problems, {"hand": SUITE}, DATE, out)
    return evaluation, out


def validate(schema, value):
    Draft7Validator(json.loads((HERE / schema).read_text())).validate(value)


def test_every_eval_ever_accepts_the_results_and_every_instance(exported):
    _, out = exported
    (lines,) = out.glob("data/eachprompt/eachprompt/rl-two/*_samples.jsonl")
    record = json.loads(Path(str(lines).replace("_samples.jsonl", ".json")).read_text())
    instances = [json.loads(line) for line in lines.read_text().splitlines()]

    validate("every_eval_ever_0_3.schema.json", record)
    for instance in instances:
        validate("every_eval_ever_0_3_instance.schema.json", instance)
    (result,) = record["evaluation_results"]
    assert 0.75 == result["score_details"]["score"]
    assert "3" == result["score_details"]["details"]["abstained"]
    assert record["detailed_evaluation_results"]["total_rows"] == len(instances)
    assert str(lines).endswith(record["detailed_evaluation_results"]["file_path"])
    # An abstention is no instance, so that nobody counts it as wrong.
    assert ["a#0", "a#1", "b#0"] == [one["sample_id"] for one in instances]
    assert ["3 + 4"] == instances[0]["output"]["reasoning_trace"]


def test_the_harness_has_one_task_per_source_and_one_document_per_problem(exported):
    _, out = exported
    results = json.loads((out / "results_2026-01-01T00-00-00.json").read_text())
    lines = (out / "samples_hand_2026-01-01T00-00-00.jsonl").read_text().splitlines()

    assert 0.75 == results["results"]["hand"]["acc,none"]
    assert 0.25 == pytest.approx(results["results"]["hand"]["acc_stderr,none"])
    assert {"original": 3, "effective": 2} == results["n-samples"]["hand"]
    assert [("a", 0.5), ("b", 1.0)] == [
        (row["doc"]["id"], row["acc"]) for row in map(json.loads, lines)
    ]


def test_the_hub_reads_scores_of_its_own_benchmarks_only(exported):
    _, out = exported

    (entry,) = yaml.safe_load((out / EVAL_RESULTS).read_text())

    assert {"id": "openai/gsm8k", "task_id": "gsm8k"} == entry["dataset"]
    assert (75.0, "2026-01-01") == (entry["value"], entry["date"])


def test_what_is_written_for_the_harness_reads_back_as_the_evaluation_itself(exported):
    evaluation, out = exported

    ours, theirs = read_scores(str(evaluation)), read_scores(str(out))

    assert {("hand", "acc"): {"a": 0.5, "b": 1.0}} == ours.items
    assert sorted(ours.items["hand", "acc"].values()) == sorted(
        theirs.items["hand", "acc"].values()
    )


def test_the_version_of_the_library_is_that_of_the_project():
    project = tomllib.loads((HERE.parents[2] / "pyproject.toml").read_text())["project"]

    assert project["version"] == LIBRARY_VERSION
