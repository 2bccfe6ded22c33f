"""Questions in words: which verifier each gets, and that its gold answer passes."""

import json
import os
from pathlib import Path

import pytest

from data_schemas.rows import Problem, QuarantinedItem
from tasks.curation.adapters.logic import bbh, gpqa, knights_knaves, zebra_logic
from tasks.curation.adapters.table import read_file
from tasks.curation.rows import BadRow, RawRow
from tasks.gym.table import VERIFIERS

GRID = {
    "id": "lgp-1",
    "puzzle": "There are 2 houses. Eric drinks tea.",
    "solution": {
        "header": ["House", "Name", "Drink"],
        "rows": [["1", "Eric", "tea"], ["2", "Arnold", "milk"]],
    },
}
KNIGHTS = {"quiz": "Zoey says ...", "names": ["Zoey", "Aria"], "solution": [True, False]}

GPQA = {
    "Record ID": "rec06",
    "Question": "Which boson is the heaviest?",
    "Correct Answer": "Higgs ",
    "Incorrect Answer 1": "W",
    "Incorrect Answer 2": "Z",
    "Incorrect Answer 3": "photon",
}


def row(fields: dict[str, object]) -> RawRow:
    return RawRow("rows-1", "0" * 64, fields)


def scores(problem: object, *responses: str) -> list[float | None]:
    assert isinstance(problem, Problem)
    return [VERIFIERS[problem.verifier](problem, one).score for one in responses]


@pytest.mark.parametrize(
    ("question", "target", "right", "wrong"),
    [
        ("Which?\nOptions:\n(A) a robin\n(B) an owl", "(B)", "(B)", "(A)"),
        ("Which?\nOptions:\n(A) a robin\n(B) an owl", "(B)", "an owl", "a robin"),
        ("Is it?\nOptions:\n- valid \n- invalid", "invalid", "invalid", "valid"),
        ("not ( True ) is", "False", "False", "True"),
        ("Is this plausible?", "no", "no", "yes"),
        ("How many?", "8", "8", "9"),
        ("Sort: b a", "a b", '{"answer": "a b"}', '{"answer": "b a"}'),
    ],
)
def test_a_bbh_row_is_a_choice_a_number_or_an_exact_text(question, target, right, wrong):
    (item,) = bbh(row({"id": "t-0", "input": question, "target": target}))

    assert ("bbh/t-0", question) == (item.record.id, item.content)
    assert [1.0, 0.0] == scores(item.record, right, wrong)


def test_a_bbh_target_that_is_no_option_is_refused():
    with pytest.raises(BadRow, match="bad_gold"):
        bbh(row({"input": "Which?\nOptions:\n(A) a\n(B) b", "target": "(C)"}))


def test_all_knights_have_to_be_named():
    (item,) = knights_knaves(row(KNIGHTS))

    right = '{"Zoey": "knight", "Aria": "knave"}'
    assert [1.0, 0.5] == scores(item.record, right, right.replace("knave", "knight"))
    words = {"knight_knave": {"knight": "sage", "knave": "fool"}}
    (item,) = knights_knaves(row(KNIGHTS | words))
    assert [1.0] == scores(item.record, '{"Zoey": "sage", "Aria": "fool"}')


def test_a_grid_is_scored_by_house_and_a_masked_one_is_refused():
    (item,) = zebra_logic(row(GRID))

    first = '{"House 1": {"Name": "Eric", "Drink": "tea"}, "House 2": %s}'
    right, wrong = '{"Name": "Arnold", "Drink": "milk"}', '{"Name": "Arnold", "Drink": "tea"}'
    assert [1.0, 0.5] == scores(item.record, first % right, first % wrong)
    masked = {"header": ["House", "Name"], "rows": [["___", "___"]]}
    with pytest.raises(BadRow, match="masked"):
        zebra_logic(row(GRID | {"solution": masked}))


def test_the_right_option_of_a_gpqa_row_is_anywhere_but_always_in_the_same_place():
    (item,) = gpqa(row(GPQA))

    asked = item.record.messages[0].content
    (right,) = (line[0] for line in asked.splitlines() if line.endswith(": Higgs"))
    others = sorted(set("ABCD") - {right})
    assert "gpqa/rec06" == item.record.id
    assert [1.0, 0.0, 0.0, 0.0] == scores(item.record, right, *others)
    assert item == gpqa(row(GPQA))[0]
    places = set()
    for number in range(40):
        (other,) = gpqa(row(GPQA | {"Question": f"Question {number}?"}))
        places.add(json.loads(other.record.answer)["correct"][0])
    assert set("ABCD") == places


def test_a_gpqa_row_with_two_equal_options_is_refused():
    with pytest.raises(BadRow, match="bad_gold"):
        gpqa(row(GPQA | {"Incorrect Answer 2": " W"}))


@pytest.mark.parametrize(
    ("adapter", "path", "problems", "refused"),
    [
        ("bbh", "bbh/dev.jsonl", 2519, ["bad_gold"]),
        ("knights_knaves", "knights_knaves/5ppl_train.parquet", 250, []),
        ("olympiadbench", "olympiadbench/test.jsonl", 675, []),
        ("humaneval", "humaneval/test.jsonl", 164, []),
        ("api_bank", "api_bank/level1.jsonl", 399, []),
        ("api_bank", "api_bank/level2.jsonl", 67, []),
        ("tau_bench_retail", "tau_bench_retail/tasks_dev.jsonl", 19, ["empty_field"]),
    ],
)
def test_every_row_of_the_public_set_is_read_and_its_gold_can_be_verified(
    adapter, path, problems, refused
):
    file = Path(os.environ.get("EACHPROMPT_DATA", "/nowhere")) / path
    if not file.exists():
        pytest.skip(f"EACHPROMPT_DATA names no folder with {path}")
    read = list(read_file(adapter, 0, file))

    records = [
        item.record for items in read if not isinstance(items, QuarantinedItem) for item in items
    ]
    assert refused == [one.reason for one in read if isinstance(one, QuarantinedItem)]
    assert problems == len(records) == len({record.id for record in records})
    for record in records:
        assert isinstance(record, Problem)
        assert "no_answer" == VERIFIERS[record.verifier](record, "<think>").reason, record.id
