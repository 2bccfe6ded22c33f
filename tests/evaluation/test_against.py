"""A candidate against every model before it, and several runs as one."""

import pytest

from data_schemas.arrow import write_table
from data_schemas.samples import SampleResult
from data_schemas.settings import EvaluationSettings
from tasks.errors import DataError
from tasks.evaluation.earlier_models import against_all
from tasks.evaluation.pooling import pool
from tasks.evaluation.runner import REPORT_FILE, SAMPLES_FILE, summarise
from tasks.formats import progression
from tasks.store.files import canonical_json, write_bytes

SETTINGS = EvaluationSettings(samples=2)


@pytest.fixture
def evaluated(tmp_path, make_samples):
    """A folder of an evaluation, from problem id to its scores."""

    def make(name, answers, place=""):
        folder = tmp_path / f"{place}{name}"
        folder.mkdir()
        samples = [s for id_, scores in answers.items() for s in make_samples(id_, scores)]
        write_table(folder / SAMPLES_FILE, SampleResult, samples)
        report = summarise(SETTINGS, name, f"digest of {name}", samples)
        write_bytes(folder / REPORT_FILE, canonical_json(report))
        return folder

    return make


def test_the_candidate_is_last_in_the_progression_and_measured_against_all_others(
    tmp_path, evaluated
):
    base = evaluated("base", {"a": [0, 0], "b": [1, 0]})
    merged = evaluated("merged", {"a": [1, 0], "b": [1, 0]})
    last = evaluated("rl/two".replace("/", "-"), {"a": [1, 1], "b": [1, 0]})

    facts = against_all(SETTINGS, last, [base, merged], tmp_path)

    assert ["base", "merged", "rl-two"] == [
        evaluation.model for evaluation in progression.read_progression(tmp_path)
    ]
    gains = {row.parent: row.difference for row in progression.read_comparisons(tmp_path)}
    assert {"base": 0.5, "merged": 0.25} == gains
    assert {"gain over base": 0.5, "gain over merged": 0.25} == facts


def test_pooled_runs_count_every_problem_of_every_run(tmp_path, evaluated):
    first = evaluated("merged", {"a": [0, 0], "b": [0, 0]}, place="1")
    second = evaluated("merged", {"a": [1, 1], "b": [0, 0]}, place="2")
    out = tmp_path / "out"
    out.mkdir()

    pool(SETTINGS, "merged", [first, second], out)

    whole = next(suite for suite in progression.read_evaluation(out).suites if suite.suite == "all")
    assert (4, 0.25) == (whole.problems, whole.accuracy)


def test_pooled_runs_are_compared_run_by_run(tmp_path, evaluated):
    before = [evaluated("merged", {"a": [0, 0]}, place=str(run)) for run in (1, 2)]
    after = [evaluated("two", {"a": [1, 1]}, place=str(run)) for run in (1, 2)]
    for name, parts in (("merged", before), ("two", after)):
        (tmp_path / name).mkdir()
        pool(SETTINGS, name, parts, tmp_path / name)

    against_all(SETTINGS, tmp_path / "two", [tmp_path / "merged"], tmp_path)

    whole = progression.read_comparisons(tmp_path)[0]
    assert (2, 1.0, 1.0) == (whole.problems, whole.difference, whole.low)


def test_a_folder_without_a_progression_is_refused_by_name(tmp_path):
    with pytest.raises(DataError, match=r"progression\.json cannot be read"):
        progression.read_progression(tmp_path)
