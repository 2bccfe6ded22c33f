import json

import pytest

from data_schemas.rows import QuarantinedItem
from tasks.curation.adapters.table import read_file
from tasks.curation.marketplace.shop import Order, ShopRequest

CASE = ShopRequest(1, "Customer 7 wants no mug.", (Order(412, 7, "red mug", "new"),), (412,))
ROW = {
    "id": "1",
    "domain": "tool_use",
    "language": "en",
    "messages": [
        {"role": "system", "content": "rules"},
        {"role": "user", "content": CASE.request},
    ],
    "verifier": "shop",
    "answer": CASE.answer,
}


@pytest.fixture
def read(tmp_path):
    def run(**changes):
        path = tmp_path / "rows.jsonl"
        path.write_text(json.dumps(ROW | changes) + "\n", encoding="utf-8")
        (found,) = read_file("episodes", 0, path)
        return found

    return run


def test_a_row_without_turns_is_a_problem_whose_rules_are_not_compared(read):
    (item,) = read()

    assert ("episodes/1", CASE.request) == (item.record.id, item.content)
    assert json.loads(item.record.answer) == CASE.answer


def test_a_demonstration_has_an_item_per_turn_with_what_was_said_before(read):
    turns = CASE.clerk(careful=True)

    items = read(turns=turns)

    assert turns == [item.record.response for item in items]
    assert [2, 4, 6] == [len(item.record.messages) for item in items]
    assert "412 red mug new" == items[1].record.messages[-1].content
    assert ["episodes/1/0", "episodes/1/1", "episodes/1/2"] == [i.record.id for i in items]
    assert "rules" not in items[2].content


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"turns": ["done"]}, "wrong_demonstration"),
        ({"turns": []}, "bad_turns"),
        ({"turns": [1]}, "bad_turns"),
        ({"turns": ["thinking", *CASE.clerk(careful=True)]}, "bad_turns"),
        ({"verifier": "choice"}, "no_environment"),
        ({"parent": "nobody", "turns": CASE.clerk(careful=True)}, "malformed"),
        ({"messages": []}, "schema"),
    ],
)
def test_a_row_that_cannot_be_played_is_refused_with_its_reason(read, changes, reason):
    found = read(**changes)

    assert isinstance(found, QuarantinedItem)
    assert reason == found.reason


def test_a_gold_that_is_no_record_of_a_shop_is_refused(read):
    found = read(answer={"orders": 1}, turns=["done"])

    assert ("wrong_demonstration", True) == (found.reason, "bad_gold" in found.detail)
