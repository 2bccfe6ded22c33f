"""An answer in a JSON object is read by every verifier as if it stood on a marked line."""

import json
import random

from tasks.gym.json_answer import without_container
from tasks.gym.table import score_batch
from tests.tables import for_each

MATHS = ("final_answer", "rule_answer")
WORKING = 'We add "3" and 4: 3 + 4 = 7, not 8.\nThe answer is 8? No.'


def fenced(text: str) -> str:
    return f"Here it is:\n```json\n{text}\n```\n"


def solved(problem, verifier: str, gold: str, response: str) -> bool:
    (verdict,) = score_batch([problem(verifier, {"value": gold})], [response])
    return verdict.solved


@for_each("verifier", MATHS)
@for_each("layout", [str, fenced, lambda text: f"``` json\n{text}"])
@for_each("key", ["answer", "final_answer", "Final Answer", "jawaban", "答案"])
def test_the_answer_of_an_object_is_stated_and_its_other_values_are_not(
    problem, verifier, layout, key
):
    right = {"reasoning": WORKING, key: "7", "confidence": 0.9}
    wrong = {key: "8", "reasoning": "It is \\boxed{7}.", "answer_check": 7}
    texts = [layout(json.dumps(one, indent=4, ensure_ascii=False)) for one in (right, wrong)]

    assert [True, False] == [solved(problem, verifier, "7", text) for text in texts]


@for_each(
    ("gold", "response"),
    [
        ("7", '{"answer": 7}'),
        ("7", "{'reasoning': 'so', 'answer': '7'}"),
        ("7", '{"answer": {"value": "$7"}}'),
        ("7", '{"response": {"steps": ["8"], "answer": "7"}}'),
        ("1,2", '{"answer": [1, 2]}'),
        ("0.10", '{"answer": 0.10}'),
        (r"\frac{1}{2}", r'{"reasoning": "a \sqrt{4}", "answer": "\\frac{1}{2}"}'),
        (r"\frac{1}{2}", r'{"reasoning": "a \sqrt{4} \theta", "answer": "\frac{1}{2}"}'),
        ("7", '{"reasoning": "two\nlines", "answer": "\\\\boxed{7}"}'),
        ("54", '{\n"reasoning": So, Ray takes 54 minutes.\n\n"answer": "54"\n}\n```'),
        ("-3", '{"reasoning": "He said "no".",\n  "answer": -3\n}'),
    ],
)
def test_values_are_read_as_models_write_them(problem, gold: str, response: str):
    for verifier in MATHS:
        assert solved(problem, verifier, gold, response), verifier


@for_each(
    "response",
    [
        '{"answer": 7, "answer": 8}',
        '{"answer": 7, "final_answer": 8}',
        '{"answer": 7}\n{"answer": 8}',
        '{"answer": 7}\nAnswer: 8',
        '\\boxed{8} {"answer": 7}',
        '{"answer": "7 or 8"}',
        '{"answer": [7, 8]}',
        '{"answer": null}',
        '{"answer": 7, "alternatives": [8]}',
        '{"answer": 7, "alternative_answer": "8"}',
        '{"answer": 8, "other_possible_answers": [7]}',
        '{"answer": 7, "backup": 8}',
        '{"jawaban": 7, "jawaban_lain": 8}',
    ],
)
def test_a_second_answer_or_none_earns_nothing(problem, response: str):
    for verifier in MATHS:
        assert not solved(problem, verifier, "7", response), verifier
    for sentence in ("The answer is 8.", "So the answer is 8."):
        assert not solved(problem, "final_answer", "7", f'{sentence}\n{{"answer": 7}}')


def test_an_option_in_an_object_is_chosen_whatever_its_explanation_names(problem):
    gold = {"correct": ["B", "green"], "others": [["A", "red"]]}
    responses = {
        fenced('{"reasoning": "A is red, the answer is A? Wait, no.", "answer": "B"}'): True,
        '{"answer": "B) green", "explanation": "A is the colour of blood"}': True,
        '{"answer": ["A", "B"]}': False,
        '{"answer": "A", "explanation": "the answer is B"}': False,
        '{"answer": "B", "answer": "A"}': False,
        '{"answer": "B", "alternatives": ["A"]}': False,
        '{"answer": "A", "alternatives": ["B"]}': False,
        '{"answer": "B", "second_choice": "A"}': False,
        '{"answer": "B", "final": "A"}': False,
        '{"answer": "B", "final": "B"}': True,
        '{"answer": "B", "final": true}': True,
        '{"answer": "B", "alternatives": []}': True,
        '{"answer": "B", "distractors": ["A"]}': True,
        '{"answer": "B", "choices": {"A": "red", "B": "green"}}': True,
        '{"answer": "B", "other_choices": ["A"]}': True,
    }

    verdicts = score_batch([problem("choice", gold)] * len(responses), list(responses))

    assert list(responses.values()) == [verdict.solved for verdict in verdicts]


def test_any_text_beside_an_answer_is_dropped_and_any_answer_is_kept():
    rng = random.Random(0)
    for _ in range(300):
        working, answer = (
            "".join(rng.choice("ab 7{}[]\":,'\\\n$ก") for _ in range(rng.randrange(12)))
            for _ in range(2)
        )
        text = json.dumps(
            {"reasoning": working, "answer": f"x{answer}"}, indent=rng.choice([None, 2])
        )

        line = " ".join(f"x{answer}".split())
        assert f"#### {line}" == without_container(text), text


def test_what_holds_no_answer_stays_as_it_is():
    for text in ("7", '{"value": 7}', 'a "answer" b', '{"answer": ', r"\boxed{\{7\}}"):
        assert text == without_container(text)
