"""The generated purchases, as curation reads them."""

import json

import pytest

from tasks.curation import sample_purchases
from tasks.curation.adapters.episodes import sample_purchases as read
from tasks.curation.rows import BadRow, RawRow
from tasks.gym.environments.outside import play
from tasks.gym.protocol import join_turns


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    folder = tmp_path_factory.mktemp("purchases")
    sample_purchases.generate(0, folder)
    names = (sample_purchases.PROBLEMS, sample_purchases.DEMONSTRATIONS)
    yield [
        [json.loads(line) for line in (folder / name).read_text().splitlines()] for name in names
    ]
    play.close()


def items(row):
    return read(RawRow("purchases", "0" * 64, row))


def test_a_purchase_is_a_problem_whose_prompt_has_the_tools_and_no_hidden_wish(rows):
    row = rows[0][0]
    (item,) = items(row)
    system, request = item.record.messages
    assert "recommend_product" in system.content
    assert "series" in request.content
    assert item.record.verifier == "environment"


def test_a_careful_shopper_s_turns_are_demonstrations_and_others_are_refused(rows):
    row = rows[1][0]
    taught = [item.record for item in items(row)]
    assert len(row["turns"]) == len(taught) == 9
    assert "material_need" in taught[1].messages[-1].content
    with pytest.raises(BadRow, match="wrong_demonstration"):
        items({**row, "turns": row["turns"][-1:] * 2})


def test_a_row_of_another_library_is_refused(rows):
    with pytest.raises(BadRow, match="no purchase"):
        items({**rows[0][0], "answer": {**rows[0][0]["answer"], "library": "verifiers"}})


def test_problems_and_demonstrations_share_no_product(rows):
    ids = [
        {
            json.loads(turn.split("</think>")[1])["parameters"]["product_id"]
            for turn in row["turns"][-1:]
        }
        for row in rows[1]
    ]
    assert len(rows[0]) == sample_purchases.NUM_PROBLEMS
    assert len(set().union(*ids)) == len(rows[1]) == 2 * sample_purchases.DEMONSTRATIONS_PER_PARENT
    assert not {row["id"] for row in rows[0]} & {row["id"] for row in rows[1]}


def test_a_wrong_product_scores_zero_and_silence_is_unfinished(rows):
    (item,) = items(rows[0][0])
    call = {"name": "recommend_product", "parameters": {"product_id": "P1", "reasoning": ""}}
    verdict = play.verify(item.record, join_turns([json.dumps(call)]))
    assert (verdict.score, verdict.reason) == (0.0, "wrong")
    assert play.verify(item.record, join_turns(["I think it is P1."])).reason == "unfinished"
