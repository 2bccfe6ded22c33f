"""The released model and a candidate, paired on the problems that both were asked."""

import pytest

from data_schemas.arrow import write_table
from data_schemas.artifacts import (
    CheckpointRef,
    Context,
    DatasetRef,
    Execution,
    ReportRef,
    StoreRef,
)
from data_schemas.rows import Problem
from data_schemas.samples import SampleResult
from data_schemas.settings import EvaluationSettings, MergeSettings, ReleaseSettings
from tasks.provenance.lineage.connection import connect
from tasks.provenance.lineage.promotions import next_promotion
from tasks.provenance.lineage.signatures.keys import trusted_keys
from tasks.provenance.lineage.stage import stage
from tasks.provenance.release.promotion import Champion, find_champion
from tests.records import filled, problem_of

SETTINGS = EvaluationSettings(samples=2)


def problem(name: str, text: str = "") -> Problem:
    return problem_of(text or name, '{"value":"7"}', id=name, language="th", source="hand")


def sample(name: str, score: float) -> SampleResult:
    return filled(
        SampleResult, problem_id=name, language="th", score=score, source="hand", surprisal_nats=0.0
    )


class Evaluated:
    """A checkpoint with its evaluation on some problems."""

    def __init__(
        self, store: StoreRef, name: str, problems: list[Problem], scores: list[float]
    ) -> None:
        self.store = store
        self.execution = Execution(id=name, started=0.0)
        with stage("curate", SETTINGS, Context(store, self.execution), "c") as record:
            with record.output("curated") as out:
                write_table(out / "held_out.parquet", Problem, problems)
            curated = record.ref("curated", DatasetRef)
        with stage("rl/two", MergeSettings(), Context(store, self.execution), "c") as record:
            record.read("curated", curated)
            with record.output("model") as out:
                (out / "model.safetensors").write_text(name)
                (out / "config.json").write_text("{}")
            self.model = record.ref("model", CheckpointRef)
        with stage("evaluate/rl/two", SETTINGS, Context(store, self.execution), "c") as record:
            record.read("model", self.model)
            record.read("curated", curated)
            with record.output("report") as out:
                rows = [sample(one.id, score) for one, score in zip(problems, scores, strict=True)]
                write_table(out / "samples.parquet", SampleResult, rows)
            self.report = record.ref("report", ReportRef)

    def release(self) -> str:
        with stage(
            "release", ReleaseSettings(name="tiny"), Context(self.store, self.execution), "c"
        ) as record:
            record.read("candidate", self.model)
            record.read("progression", self.report)
            with record.output("model") as out:
                (out / "model.safetensors").write_text(self.execution.id)
                (out / "config.json").write_text("{}")
            digest = record.digest_of("model")
            record.facts(next_promotion("tiny", self.store.uri, trusted_keys(), digest))
            record.register("model", "tiny", released=True, tags={})
            return record.ref("model", CheckpointRef).statement

    def champion(self) -> Champion | None:
        return find_champion("tiny", self.model.digest, self.report, self.store)


def test_without_a_released_model_there_is_no_champion(store):
    assert Evaluated(store, "first", [problem("a")], [1.0]).champion() is None


@pytest.mark.slow
def test_both_are_compared_on_the_problems_whose_content_is_the_same(store):
    old = Evaluated(store, "old", [problem(name) for name in "abc"], [0.0, 1.0, 1.0])
    statement = old.release()
    renewed = [problem("a"), problem("b"), problem("c", "another question"), problem("d")]
    found = Evaluated(store, "new", renewed, [1.0, 1.0, 0.0, 0.0]).champion()

    assert found is not None
    assert ("models:/tiny/1", statement, old.model.digest) == (
        found.version,
        found.statement,
        found.checkpoint,
    )
    assert ["all", "domain:maths", "language:th", "source:hand"] == [
        one.suite for one in found.comparisons
    ]
    assert {(0.5, 2)} == {(one.difference, one.problems) for one in found.comparisons}
    assert {"models:/tiny/1"} == {one.parent for one in found.comparisons}


@pytest.mark.slow
@pytest.mark.parametrize("renewed", ["other", "same"])
def test_without_a_problem_in_common_nothing_is_compared(store, renewed):
    Evaluated(store, "old", [problem("a")], [1.0]).release()
    name, text = ("b", "") if renewed == "other" else ("a", "another question")
    found = Evaluated(store, "new", [problem(name, text)], [1.0]).champion()

    assert found is not None
    assert () == found.comparisons


def test_the_released_model_is_its_own_champion(store):
    released = Evaluated(store, "old", [problem("a")], [1.0])
    released.release()
    found = released.champion()

    assert found is not None
    assert (released.model.digest, ()) == (found.checkpoint, found.comparisons)


@pytest.mark.slow
def test_a_model_released_from_another_store_cannot_be_compared(store, tmp_path):
    Evaluated(store, "old", [problem("a")], [1.0]).release()
    (tmp_path / "other").mkdir()
    elsewhere = store.model_copy(update={"uri": str(tmp_path / "other"), "id": "other"})
    found = Evaluated(elsewhere, "new", [problem("a")], [1.0]).champion()

    assert found is not None
    assert ("", ()) == (found.checkpoint, found.comparisons)


@pytest.mark.slow
@pytest.mark.attack
@pytest.mark.parametrize("edit", ["moved", "deleted"])
def test_an_alias_that_somebody_moved_does_not_choose_the_champion(store, edit):
    Evaluated(store, "weak", [problem("a")], [0.0]).release()
    strong = Evaluated(store, "strong", [problem("a")], [1.0])
    current = strong.release()
    client = connect(store.tracking_uri)
    if edit == "moved":
        client.set_registered_model_alias("tiny", "released", "1")
    else:
        client.delete_registered_model_alias("tiny", "released")

    found = Evaluated(store, "new", [problem("a")], [0.5]).champion()

    assert found is not None
    assert ("models:/tiny/2", current) == (found.version, found.statement)
