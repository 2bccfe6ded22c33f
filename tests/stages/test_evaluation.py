"""The shell of an evaluation: the same weights are asked once in an execution."""

import shutil
from typing import Any, cast

import pytest

from data_schemas.arrow import read_table, write_table
from data_schemas.artifacts import CheckpointRef, DatasetRef, Execution, StoreRef
from data_schemas.rows import HELD_OUT, PROBLEMS, Problem
from data_schemas.samples import SampleResult
from data_schemas.settings import EvaluationSettings
from tasks.algorithms.comparison import SAMPLES_FILE
from tasks.formats.progression import read_evaluation
from tasks.provenance.lineage.statements import load_statement
from tasks.stages.evaluation import evaluate
from tasks.store.interface import store_at
from tasks.store.local import new_object
from tasks.store.objects import localise
from tests.records import problem_of

PROBLEM = problem_of("3 + 4?", '{"value": "7"}', id="s/a", source="s", source_row="0")
SETTINGS = EvaluationSettings(samples=1, max_new_tokens=4)


@pytest.fixture
def ask(tiny_moe, tmp_path):
    """Evaluate as the task does; returns folder of the report and its statement."""
    folder = tmp_path / "store"
    store = StoreRef(
        uri=str(folder), id=store_at(str(folder)).open(), tracking_uri="http://127.0.0.1:9"
    )
    with new_object(folder) as (path, model):
        shutil.copytree(tiny_moe, path, dirs_exist_ok=True)
    with new_object(folder) as (path, curated):
        write_table(path / PROBLEMS, Problem, [])
        write_table(path / HELD_OUT, Problem, [PROBLEM])

    def ask(name, execution="one", settings=SETTINGS):
        ref = cast("Any", evaluate).task_function(
            settings=settings,
            name=name,
            model=CheckpointRef(uri=model.uri, digest=model.digest),
            curated=DatasetRef(uri=curated.uri, digest=curated.digest),
            store=store,
            execution=Execution(id=execution, started=0.0),
        )
        return localise(ref.uri, ref.digest, folder), load_statement(store.uri, ref.statement), ref

    return ask


def test_a_model_with_the_same_weights_is_not_asked_again_and_its_statement_says_so(ask):
    merged, _, asked = ask("merged")
    phase, statement, _ = ask("rl/one")

    reports = read_evaluation(merged), read_evaluation(phase)
    assert ("rl/one", "merged") == (reports[1].model, reports[1].same_as)
    assert reports[0].suites == reports[1].suites
    assert read_table(merged / SAMPLES_FILE, SampleResult) == read_table(
        phase / SAMPLES_FILE, SampleResult
    )
    assert asked.digest == {item.role: item.digest for item in statement.inputs}["answers"]
    assert "merged" == statement.facts["same_as"]


@pytest.mark.slow
def test_another_execution_or_other_sampling_asks_for_itself(ask):
    ask("merged")
    colder = SETTINGS.model_copy(update={"temperature": 0.5})
    for folder, statement, _ in (ask("rl/one", "two"), ask("rl/two", settings=colder)):
        assert "" == read_evaluation(folder).same_as
        assert {"model", "curated"} == {item.role for item in statement.inputs}
