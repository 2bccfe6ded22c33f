"""A demonstration is kept if its verifier solves it or cannot say; a wrong one is quarantined."""

import json

import pytest

from data_schemas.rows import Demonstration, Outcome
from data_schemas.settings import CurationSettings
from data_schemas.verdicts import abstain, scored
from tasks.curation.adapters.table import ADAPTERS
from tasks.curation.cleaning.quality import cleanse
from tasks.curation.cleaning.verification import WRONG, verify
from tasks.curation.rows import RawRow
from tasks.gym.table import VERIFIERS, score_batch


@pytest.fixture
def answered(make_problem, make_demonstration):
    def build(key, response, **changes):
        problem = make_problem(key, "What is 3+4?", **changes).record
        item = make_demonstration(key, "What is 3+4?", response)
        return type(item)(item.record, item.content, answers=problem)

    return build


def test_only_a_response_with_full_marks_is_imitated(answered):
    right = answered("right", "<think>3+4=7</think>7")
    wrong = answered("wrong", "<think>3+4=8</think>8")

    kept, refused = verify([wrong, right], score_batch)

    assert [right] == kept
    assert [("test/wrong", Outcome.QUARANTINED, WRONG, "verification")] == [
        (one.key, one.outcome, one.reason, one.stage) for one in refused
    ]
    assert refused[0].detail.startswith("wrong: ")


def test_half_right_is_wrong(answered):
    item = answered("half", "<think></think>7")

    _, refused = verify([item], lambda problems, _: [scored(0.5, "partial", "1 of 2")])

    assert ["partial: 1 of 2"] == [one.detail for one in refused]


def test_what_cannot_be_verified_is_kept_and_counted_as_such(
    answered, make_problem, make_demonstration
):
    items = [
        make_demonstration("chat", "Hello?", "<think></think>Hello."),
        answered("judged", "<think></think>7", verifier="generative_judge"),
        answered("rubric", "<think></think>7", verifier="rubric"),
        answered("late", "<think></think>8"),
        make_problem("problem", "What is 3+4?"),
    ]
    asked = []

    def late(problems, responses):
        asked.extend(problem.id for problem in problems)
        return [abstain("verifier_timeout:final_answer") for _ in responses]

    kept, refused = verify(items, late)

    assert [item.record for item in items] == [item.record for item in kept]
    assert [None] * 5 == [item.answers for item in kept]
    assert [] == refused
    assert ["test/late"] == asked


def test_a_demonstration_with_a_broken_answer_is_quarantined_like_its_problem(answered, tokenizer):
    items = [
        answered("gold", "<think></think>7", answer="7"),
        answered("name", "<think></think>7", verifier="oracle"),
    ]

    kept, refused = cleanse(items, tokenizer, CurationSettings(), VERIFIERS)

    assert [] == kept
    assert ["bad_answer", "unknown_verifier"] == [one.reason for one in refused]


ROWS = {
    "gsm8k": {"question": "3+4?", "answer": "3+4=7\n#### 7"},
    "ae110k": {"input": "Nara bag", "target_scores": {"Brand Name": {"Nara": 1}}},
    "prdect_id": {"id": "1", "Product Name": "Buku", "Category": "Books"},
    "toolrl_rlla": {
        "instruction": "Tools: f",
        "input": "call f",
        "output": '<think>f</think><tool_call>\n{"name": "f", "parameters": {}}\n</tool_call>',
    },
    "prompt_jsonl": {
        "domain": "maths",
        "language": "en",
        "prompt": "3+4?",
        "verifier": "final_answer",
        "answer": {"value": "7"},
        "response": "7",
    },
    "sample_world": {
        "id": "d1",
        "skill": "reasoning",
        "task": "maths",
        "language": "en",
        "question": "3+4?",
        "level": 1,
        "check": "final_answer",
        "answer": {"value": "7"},
        "response": "<think>3+4=7</think>7",
    },
}


@pytest.mark.parametrize("adapter", ROWS)
def test_an_adapter_that_knows_the_answer_has_the_response_verified(adapter):
    fields = json.loads(json.dumps(ROWS[adapter]))

    items = ADAPTERS[adapter].read(RawRow("1", "0" * 64, fields))
    shown = [item for item in items if isinstance(item.record, Demonstration)]

    assert 1 == len(shown)
    assert shown[0].answers is not None
    assert shown[0].answers.messages == shown[0].record.messages
    kept, refused = verify(shown, score_batch)
    assert (shown, []) == (kept, refused)
