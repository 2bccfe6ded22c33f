"""The generated suites: one case in eight languages, the same for every seed, never trained on."""

import json

import pytest

from data_schemas.arrow import read_table
from data_schemas.rows import (
    HELD_OUT,
    PROBLEMS,
    QUARANTINE,
    Demonstration,
    Problem,
    QuarantinedItem,
)
from data_schemas.settings import CurationSettings, Source
from tasks.curation.adapters.table import read_file
from tasks.curation.curate import curate
from tasks.curation.generated.ecommerce import FILE, GENERATORS, NAMES, NUM_CASES
from tasks.curation.ingest import ingest
from tasks.curation.marketplace.words import LANGUAGES
from tasks.formats.benchmark_file import group_of
from tasks.formats.licences import LICENCES


def test_every_task_is_a_member_of_the_group_and_has_a_licence():
    assert set(NAMES) == set(group_of("ecommerce_generated").members)
    assert NAMES.keys() <= LICENCES.keys()


@pytest.mark.parametrize("source", NAMES)
def test_a_suite_has_thirty_cases_in_every_language_whatever_the_seed(tmp_path, source):
    GENERATORS[source](0, tmp_path)
    first = (tmp_path / FILE).read_bytes()
    GENERATORS[source](1, tmp_path)

    problems = [item.record for row in read_file(source, 0, tmp_path / FILE) for item in row]

    assert first == (tmp_path / FILE).read_bytes()
    assert all(isinstance(problem, Problem) for problem in problems)
    assert len({one.id for one in problems}) == len({one.prompt_text for one in problems})
    for language in LANGUAGES:
        assert NUM_CASES == sum(one.language == language.tag for one in problems)


def test_rows_that_repeat_a_generated_suite_are_not_trained_on(tmp_path, base_model):
    GENERATORS["generated_price"](0, tmp_path)
    leaked = [json.loads(line) for line in (tmp_path / FILE).read_text().splitlines()]
    rows = [
        {"domain": "maths", "language": one["language"], "prompt": one["prompt"], "response": "7"}
        for one in leaked
    ]
    clean = {"domain": "maths", "language": "en", "verifier": "final_answer"}
    rows += [
        clean | {"prompt": f"{name} has {count} birds. How many wings?", "answer": {"value": "2"}}
        for count, name in enumerate(("Ari", "Bo", "Cy", "Di"), start=3)
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    for name in ("raw", "out"):
        (tmp_path / name).mkdir()
    settings = CurationSettings(max_prompt_tokens=4096, max_response_tokens=64)
    sources = [
        Source(adapter="prompt_jsonl", path=str(tmp_path / "rows.jsonl")),
        Source(adapter="generated_price", evaluation=True),
    ]

    ingest(sources, 0, tmp_path / "raw")
    curate(settings, tmp_path / "raw", base_model, tmp_path / "out")

    held_out = read_table(tmp_path / "out" / HELD_OUT, Problem)
    assert len(LANGUAGES) * NUM_CASES == sum(one.source == "generated_price" for one in held_out)
    trained = [
        *read_table(tmp_path / "out" / PROBLEMS, Problem),
        *read_table(tmp_path / "out" / "demonstrations.parquet", Demonstration),
    ]
    assert {"prompt_jsonl"} == {one.source for one in trained}
    assert not {one["prompt"] for one in leaked} & {one.prompt_text for one in trained}
    refused = read_table(tmp_path / "out" / QUARANTINE, QuarantinedItem)
    assert len(leaked) == sum(one.reason == "contaminated" for one in refused)
