"""Any number of shards and processes gives the same bytes; what is complete is not repeated."""

import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from data_schemas.rows import DEMONSTRATIONS, PROBLEMS, QUARANTINE, Problem
from data_schemas.settings import CurationSettings, Source
from data_schemas.verdicts import Verdict
from tasks.curation.curate import curate
from tasks.curation.ingest import ingest, raw_files
from tasks.curation.shards import mapping
from tasks.curation.shards.mapping import DONE, Rules, collector_paused, map_shard, plan
from tasks.curation.shards.processes import map_shards
from tasks.errors import EngineError, SettingsError
from tasks.gym.degenerate import TEXTS
from tasks.gym.table import score_batch
from tests.engines.families import write_family

SETTINGS = CurationSettings(
    max_prompt_tokens=300, max_response_tokens=300, held_out_per_suite=4, near_duplicate_jaccard=0.6
)


def row(number: int) -> bytes:
    """Rows of which some repeat others, some nearly, some contradict and one is broken."""
    if number == 17:
        return b"{"
    price = number % 11
    wanted = price + (number == 19)
    asked = (
        f"In town {'' if number % 5 else 'there '}a shop has {price} bags of fresh fruit. Count?"
    )
    answer = f"{price}=<<{price}={price}>>{price}\n#### {wanted}"
    return json.dumps({"question": asked, "answer": answer}).encode()


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    folder = tmp_path / "raw"
    folder.mkdir()
    (tmp_path / "set.jsonl").write_bytes(b"\n".join(row(number) for number in range(40)))
    (tmp_path / "exam.jsonl").write_bytes(b"\n".join(row(number) for number in range(3)))
    sources = [
        Source(adapter="gsm8k", path=str(tmp_path / "set.jsonl")),
        Source(adapter="gsm8k", path=str(tmp_path / "exam.jsonl"), evaluation=True),
    ]
    ingest(sources, 0, folder)
    return folder


def written(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.slow
def test_the_size_of_shards_does_not_change_a_byte(
    base_model: Path, raw: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    outs = []
    for rows in (8192, 7, 1):
        monkeypatch.setattr(mapping, "ROWS", rows)
        out = tmp_path / f"out{rows}"
        out.mkdir()
        curate(SETTINGS, raw, base_model, out)
        outs.append(written(out))

    assert {PROBLEMS, DEMONSTRATIONS, QUARANTINE} < outs[0].keys()
    reasons = json.loads(outs[0]["report.json"])["sources"]["gsm8k"]
    assert {"duplicate", "conflicting_answers", "contaminated"} <= reasons["dropped"].keys()
    assert {"not_json": 1} == reasons["quarantined"]
    assert outs[0] == outs[1] == outs[2]


@pytest.fixture
def ring(tiny_moe: Path, tmp_path: Path) -> Path:
    """A model whose classes are ours, and import torch."""
    return write_family("ling mini 2", tiny_moe, tmp_path / "ring")


@pytest.mark.parametrize(
    "architecture", ["base_model", pytest.param("ring", marks=pytest.mark.slow)]
)
def test_a_process_writes_the_shards_that_this_one_writes(
    architecture: str,
    request: pytest.FixtureRequest,
    raw: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
):
    monkeypatch.setattr(mapping, "ROWS", 15)
    rules = Rules(SETTINGS, request.getfixturevalue(architecture), None)

    for workers in (0, 1):
        jobs = plan(raw, raw_files(raw), tmp_path / str(workers))
        done = [job.out.name for job in map_shards(jobs, rules, workers)]
        assert [f"{number:06d}" for number in range(4)] == done

    assert written(tmp_path / "0") == written(tmp_path / "1")
    assert [] == caplog.messages  # none of them had to be mapped here


def test_an_attempt_goes_on_where_the_last_one_failed(
    base_model: Path, raw: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(mapping, "ROWS", 10)
    for name in ("whole", "failed", "again"):
        (tmp_path / name).mkdir()
    curate(SETTINGS, raw, base_model, tmp_path / "whole")
    work = tmp_path / "work"
    scored: list[int] = []

    def score(problems: Sequence[Problem], responses: Sequence[str]) -> list[Verdict]:
        if responses and f"constant {responses[0]!r}" in TEXTS:  # of no demonstration
            return score_batch(problems, responses)
        scored.append(len(problems))
        if len(scored) == 3:
            raise EngineError("the third shard fails")
        return score_batch(problems, responses)

    with pytest.raises(EngineError):
        curate(SETTINGS, raw, base_model, tmp_path / "failed", score=score, work=work)
    curate(SETTINGS, raw, base_model, tmp_path / "again", score=score, work=work)

    assert 3 + 3 == len(scored)  # the two shards that were scored at first are not scored again
    assert written(tmp_path / "whole") == written(tmp_path / "again")
    assert not work.exists()


def test_a_complete_shard_is_not_written_again(base_model: Path, raw: Path, tmp_path: Path):
    rules = Rules(SETTINGS, base_model, None)
    (first, *_) = plan(raw, raw_files(raw), tmp_path / "shards")

    map_shard(first, rules)
    before = {path: path.stat().st_ino for path in first.out.iterdir()}
    map_shard(first, rules)

    assert DONE in {path.name for path in before}
    assert before == {path: path.stat().st_ino for path in first.out.iterdir()}


def test_the_search_for_cycles_goes_on_after_a_failure():
    seen: list[bool] = []

    def fail() -> None:
        with collector_paused():
            seen.append(gc.isenabled())
            raise EngineError("a shard fails")

    with pytest.raises(EngineError):
        fail()

    assert [False, True] == [*seen, gc.isenabled()]


@pytest.mark.slow
def test_a_shard_whose_process_fails_is_mapped_here(
    base_model: Path,
    raw: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
):
    monkeypatch.setattr(mapping, "ROWS", 15)
    rules = Rules(SETTINGS, base_model, None)
    jobs = list(plan(raw, raw_files(raw), tmp_path / "shards"))
    jobs[1].out.parent.mkdir()
    jobs[1].out.write_bytes(b"")  # a file stands where the folder belongs
    done = map_shards(jobs, rules, 1)

    assert jobs[0] is next(done)
    with pytest.raises(FileExistsError):
        next(done)
    assert ["shard 000001: its process ended with status 1; it is mapped here"] == caplog.messages


@pytest.mark.slow
def test_rules_that_no_shard_can_be_mapped_by_fail_here(raw: Path, tmp_path: Path):
    rules = Rules(SETTINGS, tmp_path, None)

    with pytest.raises(SettingsError, match="is not a model directory"):
        list(map_shards(plan(raw, raw_files(raw), tmp_path / "shards"), rules, 1))


@pytest.mark.slow
def test_no_process_outlives_the_one_that_asked_for_shards(raw: Path, tmp_path: Path):
    asking = (
        "import os, sys; sys.modules['torch'] = None  # which takes seconds\n"
        "from pathlib import Path; from data_schemas.settings import *\n"
        "from tasks.curation.ingest import raw_files; from tasks.curation.shards import mapping\n"
        "from tasks.curation.shards.processes import map_shards\n"
        "from tasks.models.model_folder import SHIPPED\n"
        "mapping.ROWS, raw = 1, Path(sys.argv[1])\n"
        "jobs = mapping.plan(raw, raw_files(raw), Path(sys.argv[2]))\n"
        "rules = mapping.Rules(CurationSettings(), SHIPPED, None)\n"
        "next(map_shards(jobs, rules, 2)); os.kill(os.getpid(), 9)"
    )
    command = [sys.executable, "-c", asking, str(raw), str(tmp_path / "shards")]
    mark = {"STARTED_BY": str(tmp_path)}  # what it starts inherits it

    done = subprocess.run(
        command, env={**os.environ, **mark, "PYTHONPATH": os.pathsep.join(sys.path)}, check=False
    )

    assert -9 == done.returncode
    end = time.monotonic() + 60
    while (left := started_with(f"STARTED_BY={tmp_path}")) and time.monotonic() < end:
        time.sleep(0.1)
    assert [] == left


def started_with(entry: str) -> list[str]:
    """Processes with this entry in their environment."""
    found: list[str] = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if entry.encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append(folder.name)
    return found
