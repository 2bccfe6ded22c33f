"""Code problems in the whole stage: counts in the funnel, and an attempt after another one."""

import json

import pytest

from data_schemas.arrow import read_table
from data_schemas.gold_decisions import Annotation
from data_schemas.rows import HELD_OUT, PROBLEMS, QUARANTINE, Problem, QuarantinedItem
from data_schemas.settings import CurationSettings, Source
from tasks.curation import code_inputs, code_soundness
from tasks.curation.adapters.table import read_file
from tasks.curation.code_tests import check_code_tests
from tasks.curation.curate import REPORT, curate
from tasks.curation.ingest import ingest, raw_files
from tasks.curation.shards.mapping import Rules, map_shard, plan
from tasks.curation.shards.opened import Shards
from tasks.curation.shards.steps import RefusalTables
from tasks.errors import DataError
from tasks.formats.decisions import write_annotations

SETTINGS = CurationSettings(max_prompt_tokens=600, max_response_tokens=600, held_out_per_suite=1)


def task(number, text, code, *tests):
    return {"task_id": number, "text": text, "code": code, "test_list": tests}


ROWS = [
    task(1, "Add two numbers.", "def add(a, b):\n    return a + b", "assert add(1, 2) == 3"),
    task(2, "Negate a number.", "def negate(n):\n    return -n", "assert negate(1) == 1"),
    task(
        3, "Join two texts.", "def join(a, b):\n    return a + b", "assert join('a', 'b') == 'ab'"
    ),
]


def write(path, rows):
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(map(json.dumps, rows)))
    return str(path)


@pytest.fixture
def sources(tmp_path):
    """Return MBPP rows, and a second solution of the first one."""
    path = write(tmp_path / "mbpp" / "set.jsonl", ROWS)
    problem = next(read_file("mbpp", 0, tmp_path / "mbpp" / "set.jsonl"))[0].record
    shown = {
        "id": "second",
        "domain": "code",
        "language": "en",
        "messages": [{"role": "user", "content": problem.prompt_text}],
        "verifier": problem.verifier,
        "answer": problem.answer,
        "response": "<think></think>```python\ndef add(a, b):\n    return b + a\n```",
    }
    second = write(tmp_path / "second" / "set.jsonl", [shown])
    return (Source(adapter="mbpp", path=path), Source(adapter="prompt_jsonl", path=second))


def test_the_funnel_says_what_became_of_tests(base_model, sources, tmp_path, monkeypatch):
    monkeypatch.setattr(code_inputs, "MAX_TRIED", 2)
    for name in ("raw", "out"):
        (tmp_path / name).mkdir()
    ingest(sources, 0, tmp_path / "raw")

    curate(SETTINGS, tmp_path / "raw", base_model, tmp_path / "out")

    funnel = json.loads((tmp_path / "out" / REPORT).read_bytes())["sources"]["mbpp"]
    assert {
        "problems": 3,
        "failed_tests": 1,
        "problems_with_one_solution": 1,
        "problems_with_new_tests": 1,
        "new_tests": 2,
    } == funnel["tests"]
    assert {"unsound_tests": 1} == funnel["quarantined"]
    (refused,) = [
        one
        for one in read_table(tmp_path / "out" / QUARANTINE, QuarantinedItem)
        if one.stage == "code_tests"
    ]
    assert "mbpp/2" == refused.key
    left = [
        row for name in (PROBLEMS, HELD_OUT) for row in read_table(tmp_path / "out" / name, Problem)
    ]
    assert {"mbpp/1": 3, "mbpp/3": 1} == {
        one.id: len(json.loads(one.answer)["tests"]) for one in left
    }


@pytest.mark.slow
def test_people_decide_about_a_code_problem_as_its_set_shows_it(base_model, sources, tmp_path):
    """The set shows other tests than the source has; another program is another problem."""

    def curated(name, *decisions):
        (tmp_path / name / "raw").mkdir(parents=True)
        (tmp_path / name / "out").mkdir()
        write_annotations(tmp_path / name / "annotate.jsonl", decisions)
        listed = Source(adapter="decisions", path=str(tmp_path / name / "annotate.jsonl"))
        ingest((*sources, listed), 0, tmp_path / name / "raw")
        curate(SETTINGS, tmp_path / name / "raw", base_model, tmp_path / name / "out")
        out = tmp_path / name / "out"
        tables = (read_table(out / one, Problem) for one in (PROBLEMS, HELD_OUT))
        return {problem.id: problem for table in tables for problem in table}

    def decision(problem, **changes):
        shown = {
            "problem": problem.id,
            "source": problem.source,
            "source_row": problem.source_row,
            "reason": "no model solved it",
            "question": "",
            "gold": problem.answer,
            "answers": {},
            "decision": "keep",
            "by": "Ana",
            "at": "2026-01-02T03:04:05Z",
        }
        return Annotation.model_validate(shown | changes)

    before = curated("before")["mbpp/1"]
    assert 1 < len(json.loads(before.answer)["tests"])

    assert before == curated("after", decision(before))["mbpp/1"]
    other = before.answer.replace("return a + b", "return a - b")
    for number, gold in enumerate((other, "add", "3")):
        with pytest.raises(DataError, match="mbpp/1: its raw row or gold answer is another one"):
            curated(f"other-{number}", decision(before, gold=gold))


def test_an_attempt_after_another_one_runs_no_test_again(
    base_model, sources, tmp_path, monkeypatch
):
    (tmp_path / "raw").mkdir()
    ingest(sources[:1], 0, tmp_path / "raw")
    jobs = list(plan(tmp_path / "raw", raw_files(tmp_path / "raw"), tmp_path / "shards"))
    for job in jobs:
        map_shard(job, Rules(SETTINGS, base_model, None))

    def attempt():
        shards = Shards([job.out for job in jobs], tmp_path)
        refused = RefusalTables(shards, tmp_path)
        counts = check_code_tests(shards, refused)
        found = [one["key"] for table in refused.tables() for one in table.to_pylist()]
        return counts, found, shards.alive.tolist(), [one.record for one in shards.items([0, 2])]

    first = attempt()
    monkeypatch.setattr(code_soundness, "RUNS", 0)  # no result at all

    assert first == attempt()
    assert (["mbpp/2"], [True, False, True]) == first[1:3]
