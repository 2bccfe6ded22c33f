"""Parts: any number of them gives the bytes of none; what is in a part is not done again."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from data_schemas.rows import Problem
from data_schemas.settings import CurationSettings, Source
from data_schemas.sources import Part
from data_schemas.verdicts import Verdict
from tasks.cores import LIMIT
from tasks.curation.curate import curate
from tasks.curation.ingest import ingest
from tasks.curation.parts import SHARDS, map_part, take_parts
from tasks.curation.shards import mapping, processes
from tasks.curation.shards.mapping import DONE
from tasks.curation.shards.steps import VERDICTS
from tasks.errors import TamperError
from tasks.gym.degenerate import TEXTS
from tasks.gym.table import score_batch
from tasks.provenance.lineage.statements import load_statement
from tests.processes import run_process

ROOT = Path(__file__).parents[2]
SETTINGS = CurationSettings(max_prompt_tokens=300, max_response_tokens=300, held_out_per_suite=4)


def row(number: int) -> bytes:
    """Rows of which some repeat others, and one is broken."""
    if number == 17:
        return b"{"
    price = number % 20
    asked = f"In town {price % 7} a shop has {price} bags of fresh fruit. How many bags?"
    return json.dumps({"question": asked, "answer": f"{price}\n#### {price}"}).encode()


def chat(number: int) -> bytes:
    """Rows with a response, one of which is wrong."""
    asked = f"What is {number} plus {number * number}?"
    answer = number + number * number
    fields = {"domain": "maths", "language": "en", "verifier": "final_answer"}
    shown = {"prompt": asked, "response": f"Answer: {answer + (number == 5)}"}
    return json.dumps(fields | shown | {"answer": {"value": f"{answer}"}}).encode()


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files to train on, a benchmark and an exclusion list."""
    folder = tmp_path_factory.mktemp("parts")
    for name, make, count in (("one", row, 30), ("two", chat, 20), ("exam", row, 3)):
        (folder / f"{name}.jsonl").write_bytes(b"\n".join(map(make, range(count))))
    (folder / "gone.jsonl").write_text(json.dumps({"source_row": "0" * 64}))
    sources = [
        Source(adapter="gsm8k", path=str(folder / "one.jsonl")),
        Source(adapter="prompt_jsonl", path=str(folder / "two.jsonl")),
        Source(adapter="gsm8k", path=str(folder / "exam.jsonl"), evaluation=True),
        Source(adapter="withdrawn", path=str(folder / "gone.jsonl")),
    ]
    (folder / "raw").mkdir()
    ingest(sources, 0, folder / "raw")
    return folder / "raw"


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapping, "ROWS", 7)


def written(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def new(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def parts_of(raw: Path, base_model: Path, folder: Path, count: int) -> list[Path]:
    made = [new(folder / f"{number}") for number in range(count)]
    for number, out in enumerate(made):
        map_part(SETTINGS, raw, base_model, Part(number=number, of=count), out)
    return made


def refuse_to_score(problems: Sequence[Problem], responses: Sequence[str]) -> list[Verdict]:
    """Score the texts that do no task, which stand for themselves, and no demonstration."""
    if responses and f"constant {responses[0]!r}" not in TEXTS:
        raise AssertionError(f"{len(problems)} demonstrations were verified again: {responses[:9]}")
    return score_batch(problems, responses)


@pytest.fixture(scope="module")
def whole(
    base_model: Path, raw: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[object, dict[str, bytes]]:
    """What a curation without parts says and writes."""
    out = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mapping, "ROWS", 7)
        return curate(SETTINGS, raw, base_model, out), written(out)


@pytest.mark.slow
@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(count=st.integers(1, 12))
def test_any_number_of_parts_gives_the_bytes_of_none(
    base_model: Path,
    raw: Path,
    whole: tuple[object, dict[str, bytes]],
    tmp_path_factory: pytest.TempPathFactory,
    count: int,
):
    folder = tmp_path_factory.mktemp("any")
    parts = parts_of(raw, base_model, folder, count)
    before = [written(part) for part in parts]
    take_parts(parts, folder / "work")
    out = new(folder / "out")
    collected = curate(SETTINGS, raw, base_model, out, score=refuse_to_score, work=folder / "work")

    assert whole == (collected, written(out))
    assert before == [written(part) for part in parts]
    sources = json.loads(written(out)["report.json"])["sources"]
    assert {"contaminated", "duplicate"} <= sources["gsm8k"]["dropped"].keys()
    assert {"wrong_demonstration": 1} == sources["prompt_jsonl"]["quarantined"]


def test_a_part_has_every_nth_shard_and_counts_it(base_model: Path, raw: Path, tmp_path: Path):
    out = new(tmp_path / "part")
    facts = map_part(SETTINGS, raw, base_model, Part(number=1, of=3), out)

    shards = sorted(path.parent.name for path in out.glob(f"{SHARDS}/*/{DONE}"))
    assert ["000001", "000004", "000007"] == shards
    assert 3 == facts["shards"]
    assert facts["items"] >= facts["verified"] > 0


def test_a_part_beyond_the_last_shard_is_empty(base_model: Path, raw: Path, tmp_path: Path):
    out = new(tmp_path / "part")
    facts = map_part(SETTINGS, raw, base_model, Part(number=40, of=41), out)

    assert {"shards": 0, "items": 0, "verified": 0} == facts
    assert {} == written(out)


@pytest.mark.slow
def test_a_part_that_is_missing_is_mapped_by_whoever_collects(
    base_model: Path, raw: Path, whole: tuple[object, dict[str, bytes]], tmp_path: Path
):
    take_parts(parts_of(raw, base_model, tmp_path, 3)[:2], tmp_path / "work")
    out = new(tmp_path / "out")
    curate(SETTINGS, raw, base_model, out, work=tmp_path / "work")

    assert whole[1] == written(out)


@pytest.mark.slow
def test_links_of_an_earlier_attempt_to_a_copy_that_is_gone_are_made_anew(
    base_model: Path, raw: Path, tmp_path: Path
):
    parts = parts_of(raw, base_model, tmp_path, 2)
    take_parts(parts, tmp_path / "work")
    moved = [part.rename(tmp_path / f"moved-{part.name}") for part in parts]
    assert not next((tmp_path / "work" / SHARDS).glob("*/*")).exists()
    take_parts(moved, tmp_path / "work")
    out = new(tmp_path / "out")
    curate(SETTINGS, raw, base_model, out, score=refuse_to_score, work=tmp_path / "work")

    assert written(out)


@pytest.mark.slow
def test_a_shard_that_a_killed_attempt_left_unfinished_is_that_of_its_part(
    base_model: Path, raw: Path, whole: tuple[object, dict[str, bytes]], tmp_path: Path
):
    killed = new(tmp_path / "work" / SHARDS / "000001")
    (killed / mapping.ITEMS).write_bytes(b"half")
    (killed / VERDICTS).write_bytes(b"")
    take_parts(parts_of(raw, base_model, tmp_path, 2), tmp_path / "work")
    out = new(tmp_path / "out")
    curate(SETTINGS, raw, base_model, out, score=refuse_to_score, work=tmp_path / "work")

    assert whole[1] == written(out)


def test_no_process_is_started_for_shards_that_are_complete(
    base_model: Path, raw: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    take_parts(parts_of(raw, base_model, tmp_path, 2), tmp_path / "work")
    monkeypatch.setattr(processes, "WORTH_BYTES", 1)
    monkeypatch.delenv(LIMIT, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(subprocess, "Popen", None)
    out = new(tmp_path / "out")
    curate(SETTINGS, raw, base_model, out, score=refuse_to_score, work=tmp_path / "work")

    assert written(out)


def test_a_raw_file_that_changed_is_refused_by_a_part(base_model: Path, tmp_path: Path):
    path = tmp_path / "set.jsonl"
    path.write_bytes(row(1))
    ingest([Source(adapter="gsm8k", path=str(path))], 0, new(tmp_path / "raw"))
    path.write_bytes(row(2))

    with pytest.raises(TamperError, match=r"set\.jsonl"):
        map_part(SETTINGS, tmp_path / "raw", base_model, Part(number=0, of=2), new(tmp_path / "o"))


@pytest.mark.slow  # and in make test-stack, by two pods
def test_a_map_task_curates_the_same_set_and_is_part_of_the_chain(tmp_path: Path):
    path = tmp_path / "set.jsonl"
    path.write_bytes(b"\n".join(map(row, range(60))))
    stages = []
    for count in ("1", "3"):
        done = run_process(
            [
                *(Path(sys.executable).with_name("pyflyte"), "run"),
                *(ROOT / "workflows/curate.py", "curate", "--store", tmp_path / f"runs{count}"),
                *("--sources", f"gsm8k={path},sample_world"),
            ],
            cwd=tmp_path,
            variables={"EACHPROMPT_CURATION_TASKS": count}
            | {"HOME": str(tmp_path / count), "PYTHONPATH": str(ROOT)},
            check=False,
        )
        # One row is no JSON: the set without it is written, and the command says so with a 1.
        said = done.stdout + done.stderr
        assert (1, 1) == (done.returncode, said.count("could not be read")), said[-6000:]
        files = (tmp_path / f"runs{count}").glob("executions/*/curate*.json")
        stages.append(sorted(json.loads(file.read_bytes())["stage"] for file in files))

    assert [["curate"], ["curate", *(f"curate_part/{number}_of_3" for number in (1, 2, 3))]] == (
        stages
    )
    whole, divided = (
        [
            load_statement(str(store), file.stem)
            for file in sorted((store / "statements").glob("*.json"))
        ]
        for store in (tmp_path / "runs1", tmp_path / "runs3")
    )
    alone, curated = (
        next(one for one in statements if one.stage == "curate") for statements in (whole, divided)
    )
    assert alone.outputs[0].digest == curated.outputs[0].digest
    parts = {one.outputs[0].digest for one in divided if "_of_3" in one.stage}
    assert 3 == len(parts)
    assert parts < {one.digest for one in curated.inputs}
