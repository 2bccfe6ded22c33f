"""Ten nights of a shop in five languages, by the commands a user types: pytest -m story.

Promoted, refused, held and approved, merged, an inbox in S3, killed in the middle. Each ends with
the audit of what is released then, and each file is trained on exactly once.
"""

import json
import os
import random
import resource
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path

import pytest

from data_schemas.intake import FileStatus
from data_schemas.presets import NIGHTLY_DEMO
from data_schemas.rows import Domain
from tasks.curation.marketplace.drawing import draw_items
from tasks.curation.marketplace.items import MarketItem
from tasks.retraining.processed import load
from tasks.stages.curation import curate, ingest
from tasks.stages.evaluation import compare, evaluate
from tasks.stages.foundation import ingest_base
from tasks.stages.opening import open_store
from tasks.stages.release import release
from tasks.store.interface import store_at
from tests.buckets import served_bucket

pytestmark = [
    pytest.mark.story,
    pytest.mark.timeout(7200),
    # flytekit leaves the folder of a task's checkpoint to the garbage collector, which warns.
    pytest.mark.filterwarnings(
        "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
    ),
]
ROOT = Path(__file__).parents[1]
TABLE = ROOT / "runs" / "ten_nights.md"
MODEL = f"models:/{NIGHTLY_DEMO.release.name}@released"
SHOP = ("en", "zh-TW", "id", "pt", "vi")
DOMAINS = (Domain.CHOICE, Domain.EXTRACTION, Domain.OPEN_TEXT)
"""Those whose questions are asked in several languages."""
MAPPING = """\
name: shop_quiz
domain: choice
language: "{locale}"
prompt: "{question}"
verifier: choice
answer: {correct: "{right}", others: "{wrong}"}
facets: {currency: "{currency}"}
"""
STRICT = {"release": {"min_gain": 1.0}}
"""A gain that no night of one step has."""
SIX_STEPS = {"rl": {"steps": 6}}
"""Where RL alone learns: the prompts of one step may all be old, and such a night is refused."""


class Shop:
    """A store, an inbox in a folder and one in S3, and how the nights ended so far."""

    def __init__(self, folder: Path, bucket: str) -> None:
        self.store = str(folder / "runs")
        self.inbox, self.remote = str(folder / "inbox"), f"{bucket}/inbox"
        self.home = folder
        self.nights: list[tuple[str, str, float]] = []

    def command(self, inbox: str, *words: str, **settings: object) -> list[str]:
        """Return the command of one night."""
        given = json.dumps({"parent": "nightly_demo", **settings})
        command = ["retrain", "--inbox", inbox, "--settings", given, "--store", self.store, *words]
        return [str(Path(sys.executable).with_name("eachprompt")), *command]

    def start(self, command: list[str]) -> subprocess.Popen[str]:
        """Start a command in a process group of its own."""
        changed = {"HOME": str(self.home), "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
        return subprocess.Popen(
            command,
            cwd=ROOT,
            env=os.environ | changed,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def say(self, command: list[str]) -> str:
        """Run a command that has to succeed, and return what it says."""
        running = self.start(command)
        said, _ = running.communicate()
        assert 0 == running.returncode, said[-3000:]
        return said

    def night(self, title: str, command: list[str]) -> str:
        """Retrain, prove what is released then, and return the sentence of the night."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        said = self.say(command)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        (sentence,) = [line for line in said.splitlines() if line.startswith(FIRST_WORDS)][:1]
        program = str(Path(sys.executable).with_name("eachprompt"))
        assert "PROVED" in self.say([program, "audit", "--model", MODEL, "--store", self.store])
        self.nights.append((title, sentence, seconds))
        return sentence


FIRST_WORDS = ("Promoted", "Refused", "Not retrained", "Not promoted")


def questions(
    night: str, domains: tuple[Domain, ...] = DOMAINS, each: int = 3
) -> Iterator[MarketItem]:
    """Draw the questions of a night, as many in every domain and language of the shop."""
    for domain in domains:
        for language in SHOP:
            drawn = draw_items(random.Random(f"{night}/{language}"), domain, problems=True)
            yield from islice((item for item in drawn if item.language == language), each)


def asked(items: Iterable[MarketItem], **shown: str) -> bytes:
    """Write the rows of questions, and the answers of a teacher if there is one."""
    rows = [
        {
            "domain": item.domain.value,
            "language": item.language,
            "prompt": item.prompt,
            "verifier": item.verifier,
            "answer": item.answer,
        }
        | ({"response": item.careful} | shown if shown else {})
        for item in items
    ]
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows).encode()


def exported(items: Iterable[MarketItem], currency: str) -> bytes:
    """Write questions with a choice as a shop would, in columns of its own."""
    rows = [
        {
            "locale": item.language,
            "question": item.prompt,
            "right": item.answer["correct"],
            "wrong": item.answer["others"],
            "currency": currency,
        }
        for item in items
    ]
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows).encode()


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """A shop whose released model is the shipped base itself, and an S3 beside it."""
    monkeypatch.setenv("FLYTE_LOCAL_CACHE_ENABLED", "false")
    with served_bucket(monkeypatch):
        made = Shop(tmp_path, "s3://bucket")
        settings = NIGHTLY_DEMO
        store, execution = open_store(store=made.store, workflow="post_training")
        where = {"store": store, "execution": execution}
        base = ingest_base(path="", name="base", **where)
        raw = ingest(settings=settings.curation, **where)
        curated = curate(settings=settings.curation, raw=raw, base=base, parts=[], **where)
        grading = {"settings": settings.evaluation, "model": base, "curated": curated}
        scores = evaluate(name="base", **grading, **where)
        progression = compare(
            settings=settings.evaluation, candidate=scores, parents=[scores], **where
        )
        release(settings=settings.release, candidate=base, progression=progression, **where)
        yield made


def test_ten_nights_of_a_shop_in_five_languages(shop):
    trained(shop)
    refused(shop)
    held(shop)
    merged(shop)
    killed(shop)

    files = {file.key: file.status for file in load(shop.store, shop.inbox).files}
    assert FileStatus.HELD is files.pop("friday.jsonl")
    assert files.pop("monday-2.jsonl") in (FileStatus.TRAINED, FileStatus.REFUSED)
    assert {FileStatus.TRAINED} == set(files.values())
    lines = [f"| {title} | {said.partition('. ')[0]} | {s:.0f} |" for title, said, s in shop.nights]
    head = ["| night | how it ended | CPU s, with its audit |", "|---|---|---|"]
    TABLE.parent.mkdir(exist_ok=True)
    TABLE.write_text("\n".join([*head, *lines, ""]))


def trained(shop: Shop) -> None:
    """Three nights with rows of three forms."""
    inbox, remote = store_at(shop.inbox), store_at(shop.remote)
    inbox.write_bytes(asked(questions("one"), parent="commerce"), "monday.jsonl")
    assert shop.night("worked solutions", shop.command(shop.inbox)).startswith("Promoted")

    inbox.write_bytes(MAPPING.encode(), "quiz/_mapping.yaml")
    quiz = questions("two", (Domain.CHOICE,), 8)
    inbox.write_bytes(exported(quiz, "EUR"), "quiz/tuesday.jsonl")
    assert shop.night("a table with a mapping", shop.command(shop.inbox, **SIX_STEPS)).startswith(
        "Promoted"
    )

    remote.write_bytes(asked(questions("three"), parent="commerce"), "wednesday.jsonl")
    in_s3 = shop.night("an inbox in S3", shop.command(shop.remote))
    assert in_s3.startswith("Promoted")
    assert "wednesday.jsonl" in in_s3


def refused(shop: Shop) -> None:
    """A refused model, whose rows are used again beside a file that is held."""
    inbox = store_at(shop.inbox)
    inbox.write_bytes(asked(questions("four")), "thursday.jsonl")
    strict = shop.command(shop.inbox, **STRICT)
    assert shop.night("a gate that asks for more", strict).startswith("Refused by the release gate")

    known = list(questions("one", (Domain.EXTRACTION,)))
    wrong = [replace(one, answer=other.answer) for one, other in pairwise(known)]
    inbox.write_bytes(asked(wrong), "friday.jsonl")
    inbox.write_bytes(asked(questions("five"), parent="commerce"), "friday-good.jsonl")
    beside = shop.night("a poisoned file beside a good one", shop.command(shop.inbox))
    assert beside.startswith("Promoted")
    assert "(friday-good.jsonl, thursday.jsonl)" in beside
    assert "needs people: friday.jsonl" in beside


def held(shop: Shop) -> None:
    """A table that people are asked about, and approve."""
    new = exported(questions("six", (Domain.CHOICE,), 8), "PLN")
    store_at(shop.inbox).write_bytes(new, "quiz/saturday.jsonl")
    asks = shop.night("prices in a new currency", shop.command(shop.inbox))
    assert asks.startswith("Not retrained")
    assert "needs people: quiz/saturday.jsonl" in asks

    command = asks.partition("Say yes or no: ")[2].partition(", or eachprompt reject")[0]
    yes = shlex.split(command.replace("NAME", "ann").replace("...", "we sell in Poland now"))
    assert ["eachprompt", "approve", "quiz/saturday.jsonl"] == yes[:3]
    shop.say([str(Path(sys.executable).with_name(yes[0])), *yes[1:]])
    approved = shop.night("the same, approved", shop.command(shop.inbox, **SIX_STEPS))
    assert approved.startswith("Promoted")
    assert "quiz/saturday.jsonl" in approved


def merged(shop: Shop) -> None:
    """Solutions of both parents, each of which is fine-tuned."""
    for parent in ("reasoning", "commerce"):
        rows = asked(questions(f"eight/{parent}"), parent=parent)
        store_at(shop.inbox).write_bytes(rows, f"sunday-{parent}.jsonl")
    done = shop.night("merged", shop.command(shop.inbox, "--demonstrations", "merge"))
    assert done.startswith("Promoted")
    assert "fine-tune two merged models first" in done


def killed(shop: Shop) -> None:
    """A night that dies after its fine-tuning, the same again, and one without news."""
    rows = asked(questions("nine"), parent="commerce")
    store_at(shop.inbox).write_bytes(rows, "monday-2.jsonl")
    running = shop.start(shop.command(shop.inbox))
    assert running.stdout
    for line in running.stdout:
        if line.lstrip("0123456789/ ").startswith("sft"):  # fine-tuned; RL begins
            break
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    running.stdout.close()
    again = shop.night("killed in the middle, started again", shop.command(shop.inbox))
    # Whether a model of few rows is better than the last one is for the gate to say.
    assert again.startswith(("Promoted", "Refused by the release gate"))
    assert "monday-2.jsonl" in again

    nothing = shop.night("nothing new", shop.command(shop.inbox))
    assert nothing.startswith("Not retrained: nothing new in ")
