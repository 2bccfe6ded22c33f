"""A small released chain of every kind of thing, made once and copied for every test."""

import functools
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from data_schemas.artifacts import (
    CheckpointRef,
    Context,
    DatasetRef,
    Execution,
    ReportRef,
    StoreRef,
)
from data_schemas.reports import Comparison, EvaluationReport
from data_schemas.settings import CurationSettings, MergeSettings, ReleaseSettings, SFTSettings
from data_schemas.sources import RawFile
from tasks.provenance.lineage.promotions import next_promotion
from tasks.provenance.lineage.registry import CARD_FILE, MANIFEST_TAG, read_description
from tasks.provenance.lineage.signatures.keys import trusted_keys
from tasks.provenance.lineage.stage import stage
from tasks.provenance.release.gate import decide
from tasks.provenance.release.release import ReleaseCandidate, release
from tasks.store.files import sha256_file
from tasks.store.interface import store_at
from tests.records import filled, suite_score
from tests.tracking_servers import copy_database

RELEASE = ReleaseSettings(name="tiny")
# The density is a setting of the method, which a run writes beside those that all methods have.
MERGE = MergeSettings.model_validate({"method": "ties", "density": 0.8})


@dataclass(frozen=True)
class Chain:
    """A released chain: its store, MLflow, and the outside it rests on."""

    store: Path
    tracking_uri: str
    refs: dict[str, CheckpointRef | DatasetRef | ReportRef]
    outside: Path
    empty: Callable[[], object]
    database: Path

    def forget_mlflow(self) -> None:
        """Lose MLflow: its file, or everything its server knows."""
        self.empty()

    def folder(self, name: str) -> Path:
        """Where an object lies in this copy of the store."""
        return self.store / "objects" / self.refs[name].digest[:16]

    def statement(self, name: str) -> Path:
        """Where a statement lies in this copy of the store."""
        return self.store / "statements" / f"{self.refs[name].statement}.json"


def report(name: str, checkpoint: str, accuracy: float) -> EvaluationReport:
    score = suite_score(accuracy)
    return filled(
        EvaluationReport,
        model=name,
        checkpoint=checkpoint,
        suites=(score, score.model_copy(update={"suite": "domain:maths"})),
        mean_response_tokens=10.0,
        mean_entropy_nats=0.5,
    )


def comparison(suite: str) -> Comparison:
    return Comparison(
        suite=suite, parent="merged", difference=0.1, low=0.05, high=0.15, problems=100
    )


class Maker:
    """Runs the stages of a chain with contents of a few bytes."""

    def __init__(self, store: StoreRef, outside: Path) -> None:
        self.store = store
        self.outside = outside
        self.execution = Execution(id="e1", started=0.0)
        self.refs: dict[str, CheckpointRef | DatasetRef | ReportRef] = {}

    def run(self) -> None:
        """Make everything from raw files to the registered release."""
        self._ingest()
        with stage(
            "foundation", SFTSettings(), Context(self.store, self.execution), "c1"
        ) as record:
            shipped = record.source("shipped", self.outside / "base")
            with record.output("base") as out:
                shutil.copytree(shipped, out, dirs_exist_ok=True)
            self.refs["base"] = record.ref("base", CheckpointRef)
        self.step("curate", "curated", DatasetRef, ["raw", "base"], "problems.parquet")
        self.finish()

    def finish(self) -> None:
        """Make everything from curated rows on."""
        for name in ("sft/reasoning", "sft/commerce"):
            self.step(name, name, CheckpointRef, ["base", "curated"])
        self.step("merge", "merged", CheckpointRef, ["base", "sft/reasoning", "sft/commerce"])
        self.step("rl/one", "policy", CheckpointRef, ["merged", "curated"])
        self.step("evaluate", "report", ReportRef, ["merged", "policy", "curated"], "a.json")
        self.release()

    def _ingest(self) -> None:
        with stage(
            "ingest", CurationSettings(), Context(self.store, self.execution), "c1"
        ) as record:
            with record.output("raw") as out:
                (out / "world.jsonl").write_text('{"q": 1}\n')
                raw = [out / "world.jsonl", self.outside / "gsm8k.jsonl"]
                entries = [
                    filled(
                        RawFile,
                        adapter="gsm8k",
                        uri=path.name if path.parent == out else str(path),
                        sha256=sha256_file(path),
                        bytes=path.stat().st_size,
                    )
                    for path in raw
                ]
                dumped = [entry.model_dump() for entry in entries]
                (out / "raw_files.json").write_text(json.dumps(dumped))
            self.refs["raw"] = record.ref("raw", DatasetRef)

    def step(
        self,
        name: str,
        role: str,
        kind: type,
        inputs: list[str],
        file: str = "model.safetensors",
    ) -> None:
        with stage(name, MERGE, Context(self.store, self.execution), "c2") as record:
            for wanted in inputs:
                record.read(wanted, self.refs[wanted])
            with record.output("made") as out:
                (out / file).write_bytes(f"content of {role}".encode() * 10)
                (out / "config.json").write_text("{}")
            record.facts({"rows": 7})
            self.refs[role] = record.ref("made", kind)

    def release(self) -> None:
        policy, scores = self.refs["policy"], self.refs["report"]
        assert isinstance(policy, CheckpointRef)
        progression = [report("merged", "m", 0.5), report("rl/one", policy.digest, 0.6)]
        decision = decide(
            RELEASE,
            progression[1],
            {"merged": progression[0]},
            [comparison("all"), comparison("domain:maths")],
        )
        with stage("release", RELEASE, Context(self.store, self.execution), "c3") as record:
            folder = record.read("candidate", policy)
            record.read("evaluation", scores)
            candidate = ReleaseCandidate(policy, folder, [scores.statement], progression, decision)
            with record.output("release") as out:
                facts = release(RELEASE, candidate, self.store.uri, out)
                card = (out / CARD_FILE).read_text()
            record.facts(facts)
            digest = record.digest_of("release")
            record.facts(next_promotion("tiny", self.store.uri, trusted_keys(), digest))
            self.refs["release"] = record.ref("release", CheckpointRef)
            record.register(
                "release",
                "tiny",
                released=decision.released,
                tags={MANIFEST_TAG: str(facts["manifest_sha256"])},
                description=read_description(card),
            )


@pytest.fixture(scope="session")
def outside(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("outside")
    (folder / "base").mkdir()
    (folder / "base" / "model.safetensors").write_bytes(b"base" * 10)
    (folder / "base" / "config.json").write_text("{}")
    (folder / "gsm8k.jsonl").write_text('{"question": "1+1", "answer": "2"}\n')
    return folder


@pytest.fixture(scope="session")
def make_original(request, tmp_path_factory, outside, migrated) -> Callable[[str], Chain]:
    """Make the chain once of each kind, with the database in which its MLflow was written.

    A parametrised session fixture would be made again in every file.
    """

    @functools.cache
    def make(kind: str) -> Chain:
        folder = tmp_path_factory.mktemp("chain") / "store"
        identity = store_at(str(folder)).open()
        database = folder / "mlflow.db"
        tracking_uri = f"sqlite:///{database}"
        server = None if kind == "sqlite" else request.getfixturevalue("mlflow_server")
        if server is None:
            copy_database(migrated, database)
        else:
            server.load(migrated)
            tracking_uri = server.uri
        maker = Maker(StoreRef(uri=str(folder), id=identity, tracking_uri=tracking_uri), outside)
        maker.run()
        if server is not None:
            copy_database(server.database, folder / "of_server.db")
        return Chain(folder, tracking_uri, maker.refs, outside, lambda: None, database)

    return make


@pytest.fixture(params=["sqlite", "server"])
def original(request, make_original) -> Chain:
    """The chain; read only."""
    return make_original(request.param)


@pytest.fixture
def chain(original, request, tmp_path, migrated) -> Chain:
    store = tmp_path / "store"
    shutil.copytree(original.store, store)
    if original.tracking_uri.startswith("http"):
        server = request.getfixturevalue("mlflow_server")
        server.load(store / "of_server.db")
        (store / "of_server.db").unlink()
        return replace(
            original,
            store=store,
            empty=lambda: server.load(migrated),
            database=server.database,
        )
    return replace(
        original,
        store=store,
        tracking_uri=f"sqlite:///{store / 'mlflow.db'}",
        empty=lambda: (store / "mlflow.db").unlink(),
        database=store / "mlflow.db",
    )
