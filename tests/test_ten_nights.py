"""Ten nights on one released model, its store and its inbox in S3.

    make story

Rows of a shop in five languages and more: promoted, held and approved, poisoned and rejected,
merged, refused and used again, killed in the middle. Every file is trained on at most once, and
what is released after any night is proved.
"""

import gc
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import boto3
import pytest
from moto.server import ThreadedMotoServer

from data_schemas.artifacts import StoreRef
from data_schemas.intake import FileStatus, Teaching
from data_schemas.settings import (
    CurationSettings,
    EvaluationSettings,
    ReleaseSettings,
    RetrainSettings,
)
from tasks.provenance.audit.walk import audit
from tasks.provenance.lineage.lookup import Lookup
from tasks.provenance.lineage.statements import chain
from tasks.retraining import approve, reject
from tasks.retraining.processed import load
from tasks.stages.curation import curate, ingest
from tasks.stages.evaluation import compare, evaluate
from tasks.stages.foundation import ingest_base
from tasks.stages.opening import open_store
from tasks.stages.release import release
from tasks.store.interface import store_at
from tests.buckets import use_test_account
from tests.conftest import build_tiny_moe
from workflows.retrain import retrain

pytestmark = [
    pytest.mark.story,
    pytest.mark.timeout(7200),
    # flytekit leaves the folder of a task's checkpoint to the garbage collector, which warns.
    pytest.mark.filterwarnings(
        "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
    ),
]
ROOT = Path(__file__).parents[1]
MODEL = "models:/eachprompt-tiny@released"
QUESTIONS = {
    "en": "A lamp is {} and a chair {} euros. What are both?",
    "id": "Lampu {} dan kursi {} ribu. Berapa jumlahnya?",
    "pt": "Uma mesa custa {} e um copo {}. Quanto é tudo?",
    "vi": "Áo giá {} và mũ giá {}. Tất cả bao nhiêu?",
    "th": "โคม {} เก้าอี้ {} รวมเท่าไร",
}
SHORT = {"max_new_tokens": 4}
# One step teaches nothing worth releasing: the gate is opened to reach what lies behind it.
OPEN = {"min_gain": -1.0, "max_domain_drop": 1.0, "max_truncated_share": 1.0}
NIGHT = {
    "min_rows": 8,
    "curation": {"held_out_per_suite": 3},
    "sft": {"epochs": 1, "entropy_prompts": 2},
    "grading": SHORT | {"samples": 2, "drop_at_or_above": 1.01},
    "rl": SHORT
    | {
        "steps": 1,
        "prompts_per_step": 2,
        "group_size": 2,
        "domains": {"maths": 1.0},
        # Of 4 rollouts, one text too short to tell its language is more than a tenth.
        "rewards": {"max_abstained_share": 0.9},
    },
    "evaluation": SHORT | {"samples": 1},
    "release": OPEN,
}
STRICT = {"release": OPEN | {"min_gain": 1.0}}
KILLED = """
import sys
from data_schemas.settings import RetrainSettings
from workflows.retrain import retrain

settings, store = sys.argv[1:]
retrain(settings=RetrainSettings.model_validate_json(settings), store=store)
"""


def rows(first: int, count: int, *, shown: bool = False, **changes: object) -> list[dict]:
    """Questions of a shop in its five languages, each with a worked solution if it is shown."""
    found = []
    for n in range(first, first + count):
        language = [*QUESTIONS][n % len(QUESTIONS)]
        a, b = n, 3 + n * 7 % 11
        row = {
            "domain": "maths",
            "language": language,
            "prompt": QUESTIONS[language].format(a, b),
            "verifier": "final_answer",
            "answer": {"value": str(a + b)},
        }
        solution = {"response": f"<think>{a} + {b}</think>{a + b}"} if shown else {}
        found.append(row | solution | changes)
    return found


@dataclass
class Shop:
    """A released model, and how each night ended."""

    store: StoreRef
    inbox: str
    told: list[str] = field(default_factory=list)

    def settings(self, changes: dict[str, object] | None = None) -> RetrainSettings:
        """Of one night."""
        return RetrainSettings.model_validate(NIGHT | {"inbox": self.inbox} | (changes or {}))

    def drop(self, name: str, content: list[dict], *, broken: bool = False) -> None:
        """Put a file into the inbox; of a broken one every line is cut."""
        lines = [json.dumps(row, ensure_ascii=False) for row in content]
        text = "".join(f"{line[: len(line) // 2] if broken else line}\n" for line in lines)
        store_at(self.inbox).write_bytes(text.encode(), name)

    def night(
        self, changes: dict[str, object] | None = None, teaching: Teaching = Teaching.SFT
    ) -> str:
        """Retrain, and prove what is released then."""
        said = retrain(
            settings=self.settings(changes), store=self.store.uri, demonstrations=teaching
        )
        gc.collect()
        self.told.append(said)
        assert audit(MODEL, self.store.tracking_uri, self.store.uri).proved, said
        return said

    def promotes(self, teaching: Teaching = Teaching.SFT) -> str:
        """Retrain, and return the number of the version that was promoted."""
        said = self.night(teaching=teaching)
        assert said.startswith("Promoted: "), said
        return self.version()

    def killed_night(self) -> None:
        """Kill a night as its RL begins."""
        given = [self.settings().model_dump_json(), self.store.uri]
        with subprocess.Popen(
            [sys.executable, "-c", KILLED, *given],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                if line.startswith("evaluate/released"):
                    break
            os.killpg(process.pid, signal.SIGKILL)

    def decide(self, command, name: str, because: str) -> None:
        """Say yes or no to a file."""
        where = ["--inbox", self.inbox, "--store", self.store.uri]
        command.main([name, *where, "--by", "ann", "--because", because])

    def version(self) -> str:
        """Number of the released version."""
        return Lookup(self.store.tracking_uri).version(MODEL).number

    def trained(self) -> list[str]:
        """Files that promoted models were trained on, night by night."""
        found = [re.search(r"trained on \d+ files \((.*?)\)", one) for one in self.told]
        promoted = [match for one, match in zip(self.told, found, strict=True) if "Promoted" in one]
        return [name for match in promoted if match for name in match[1].split(", ")]


@pytest.fixture
def shop(tmp_path, monkeypatch, migrated) -> Iterator[Shop]:
    """A random model of two layers, released in a store in S3."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    use_test_account(monkeypatch)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    monkeypatch.setenv("FLYTE_LOCAL_CACHE_ENABLED", "false")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'mlflow.db'}")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    shutil.copy(migrated, tmp_path / "mlflow.db")
    bucket = f"bucket-{uuid.uuid4().hex}"  # servers of one process share their buckets
    boto3.client("s3").create_bucket(Bucket=bucket)
    first = tmp_path / "first.jsonl"
    first.write_text("".join(f"{json.dumps(row)}\n" for row in rows(0, 60, shown=True)))
    build_tiny_moe(tmp_path / "model")
    source = {"adapter": "prompt_jsonl", "path": str(first)}
    given = CurationSettings.model_validate({"sources": [source], "held_out_per_suite": 3})
    measured = EvaluationSettings.model_validate(NIGHT["evaluation"])
    store, execution = open_store(store=f"s3://{bucket}/runs", workflow="post_training")
    where = {"store": store, "execution": execution}
    base = ingest_base(path=str(tmp_path / "model"), name="base", **where)
    raw = ingest(settings=given, **where)
    curated = curate(settings=given, raw=raw, base=base, parts=[], **where)
    scores = evaluate(settings=measured, name="base", model=base, curated=curated, **where)
    compared = compare(settings=measured, candidate=scores, parents=[scores], **where)
    gate = ReleaseSettings.model_validate(OPEN)
    release(settings=gate, candidate=base, progression=compared, **where)
    yield Shop(store, f"s3://{bucket}/inbox")
    server.stop()


def test_ten_nights_of_a_shop_train_every_file_once_and_are_proved(shop):
    shop.drop("monday.jsonl", rows(100, 20, shown=True))
    assert shop.promotes() == "2"

    shop.drop("tuesday.jsonl", rows(130, 20))
    assert shop.promotes() == "3"

    # Known questions with other answers, a damaged export, and a good file beside them.
    shop.drop("wednesday.jsonl", rows(100, 20, answer={"value": "1"}))
    shop.drop("thursday.jsonl", rows(160, 20), broken=True)
    shop.drop("good.jsonl", rows(190, 20))
    mixed = shop.night()
    assert mixed.startswith("Promoted: ")
    assert "4" == shop.version()
    assert "wednesday.jsonl" in mixed.partition("Say yes or no: ")[2]
    assert "thursday.jsonl" in mixed.partition("Say yes or no: ")[2]

    assert shop.night().startswith("Not retrained: nothing new in ")

    shop.drop("friday.jsonl", rows(220, 16, language="is"))
    assert "needs people: friday.jsonl" in shop.night()

    shop.decide(approve, "friday.jsonl", "we sell there now")
    assert shop.promotes() == "5"
    made = Lookup(shop.store.tracking_uri).version(MODEL).tags["statement"]
    assert "approve" in {one.stage for one in chain(shop.store.uri, [made]).values()}

    shop.drop("sunday.jsonl", rows(250, 40, shown=True))
    assert shop.promotes(teaching=Teaching.MERGE) == "6"

    shop.drop("monday_2.jsonl", rows(300, 20))
    assert "Refused by the release gate" in shop.night(STRICT)
    assert "6" == shop.version()

    shop.drop("tuesday_2.jsonl", rows(330, 20))
    shop.killed_night()
    assert "6" == shop.version()
    assert shop.promotes() > "6"

    shop.decide(reject, "wednesday.jsonl", "somebody tampered with it")
    assert shop.night().startswith("Not retrained: nothing new in ")

    assert 10 == len(shop.told)
    trained = shop.trained()
    files = {"monday", "tuesday", "good", "friday", "sunday", "monday_2", "tuesday_2"}
    assert sorted(f"{name}.jsonl" for name in files) == sorted(trained)
    known = {one.key: one.status for one in load(shop.store.uri, shop.inbox).files}
    assert FileStatus.REJECTED is known["wednesday.jsonl"]
    assert FileStatus.HELD is known["thursday.jsonl"]
