"""What becomes of the rows of one shard."""

import json

import pyarrow as pa

from data_schemas.settings import CurationSettings
from data_schemas.sources import RawFile
from data_schemas.suites import Selection
from tasks.curation.shards.mapping import ITEMS, REFUSED, Rules, counts_of, map_shard, plan
from tasks.formats.benchmark_file import shipped_suites
from tests.records import filled


def rows(path):
    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_file(source).read_all().to_pylist()


def test_rows_that_a_suite_does_not_select_are_dropped_and_those_without_its_column_broken(
    base_model, tmp_path
):
    dates = ("2024-07-31", "2024-08-01T00:00:00", "2025-01-31T23:00:00", "2025-02-01", None)
    given = [{"problem": "1 + 1?", "answer": 2, "on": on} for on in dates]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, [*given, {"problem": "1 + 1?", "answer": 2}])))
    window = {"on": Selection(first="2024-08-01", last="2025-01-31")}
    suite = shipped_suites()["aime24"].model_copy(update={"select": window})
    file = filled(
        RawFile,
        adapter="aime24",
        uri=str(path),
        sha256="0" * 64,
        bytes=path.stat().st_size,
        mapping=suite.mapping,
        suite=suite,
        evaluation=True,
    )

    (job,) = plan(tmp_path, [file], tmp_path / "shards")
    map_shard(job, Rules(CurationSettings(max_prompt_tokens=300), base_model, None))

    assert ["aime24/rows-2", "aime24/rows-3"] == [one["id"] for one in rows(job.out / ITEMS)]
    assert [
        ("dropped", "not_selected", "on is '2024-07-31'"),
        ("dropped", "not_selected", "on is '2025-02-01'"),
        ("dropped", "not_selected", "on is None"),
        ("quarantined", "missing_column", "'on', by which rows are selected"),
    ] == [(one["outcome"], one["reason"], one["detail"]) for one in rows(job.out / REFUSED)]
    assert (6, {"aime24": 6}) == (counts_of(job.out).rows, counts_of(job.out).read)
