"""The shell of curation: what lies in its working folder is used if it was signed."""

import json
import shutil
from pathlib import Path
from typing import Any, cast

import pytest

from data_schemas.arrow import read_table
from data_schemas.artifacts import CheckpointRef, Execution, RawRef, StoreRef
from data_schemas.rows import PROBLEMS, Problem
from data_schemas.settings import CurationSettings, Source
from data_schemas.sources import Part
from tasks.curation.ingest import ingest
from tasks.curation.parts import SHARDS, map_part
from tasks.platform.cache_version import code_digest
from tasks.stages.curation import curate
from tasks.store import results
from tasks.store.interface import store_at
from tasks.store.local import new_object


def write_rows(path: Path, kind: str) -> CurationSettings:
    rows = [
        {"question": f"In town {n} a shop has {n * 3} {kind}. How many?", "answer": f"#### {n * 3}"}
        for n in range(30)
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    return CurationSettings(
        sources=(Source(adapter="gsm8k", path=str(path)),),
        held_out_per_suite=4,
        max_prompt_tokens=300,
        max_response_tokens=300,
    )


@pytest.mark.slow
@pytest.mark.attack
def test_rows_that_were_planted_in_the_working_folder_are_not_curated(tiny_moe, tmp_path):
    folder = tmp_path / "store"
    uri = str(folder)
    store = StoreRef(uri=uri, id=store_at(uri).open(), tracking_uri="http://127.0.0.1:9")
    settings = write_rows(tmp_path / "rows.jsonl", "bags of fresh fruit")
    with new_object(folder) as (path, raw):
        ingest(settings.sources, 0, path)
    with new_object(folder) as (path, base):
        shutil.copytree(tiny_moe, path, dirs_exist_ok=True)
    foreign = write_rows(tmp_path / "foreign.jsonl", "of what the attacker wants")
    for name in ("raw", "part"):
        (tmp_path / name).mkdir()
    ingest(foreign.sources, 0, tmp_path / "raw")
    map_part(foreign, tmp_path / "raw", tiny_moe, Part(number=0, of=1), tmp_path / "part")
    inputs = (raw.digest, base.digest, "")
    work = results.work_uri(uri, f"curate {code_digest('curate')}", settings, *inputs)
    shutil.copytree(tmp_path / "part" / SHARDS, Path(work) / SHARDS)

    made = cast("Any", curate).task_function(
        settings=settings,
        raw=RawRef(uri=raw.uri, digest=raw.digest, statement=""),
        base=CheckpointRef(uri=base.uri, digest=base.digest, statement=""),
        parts=[],
        store=store,
        execution=Execution(id="e", started=0.0),
    )

    problems = read_table(Path(made.uri) / PROBLEMS, Problem)
    assert problems
    assert not [one for one in problems if "attacker" in one.messages[-1].content]
