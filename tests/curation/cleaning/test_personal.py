"""What tells of a person is masked alike in a row, and never without being counted."""

import json

import pytest

from data_schemas.rows import Demonstration, Domain, Parent, Problem
from data_schemas.settings import PersonalData
from tasks.curation.cleaning.personal import IN_GOLD, ITEMS, apply_policy
from tasks.curation.items import Item
from tests.records import filled, problem_of

PHONE = "0812-3456-7890"
KTP = 3171015708890001  # Jakarta, a woman born on 17 August 1989


def problem(prompt: str, answer: str, verifier: str = "reference_text") -> Problem:
    return problem_of(
        prompt, answer, id="tickets/1", domain=Domain.OPEN_TEXT, verifier=verifier, source="tickets"
    )


def masked(record: Problem) -> tuple[Problem, dict[str, int]]:
    (item,), refused, counts = apply_policy([Item(record, record.prompt_text)], PersonalData.MASK)
    assert [] == refused
    assert isinstance(item.record, Problem)
    return item.record, counts.get("tickets", {})


@pytest.mark.parametrize(
    ("gold", "expected"),
    [
        (f"Call {PHONE} or wait", "Call [phone] or wait"),
        (f'{{"value": "{PHONE}"', '{"value": "[phone]"'),
        (f"'{PHONE}'", "'[phone]'"),
        (json.dumps(PHONE), '"[phone]"'),
        (f'{{"a":[["{PHONE}",1.5,null,true]]}}', '{"a":[["[phone]",1.5,null,true]]}'),
        (json.dumps({"value": json.dumps({"tel": PHONE})}), None),
        (str(KTP), '"[identity]"'),
        (f'{{"value":{KTP}}}', '{"value":"[identity]"}'),
        ("", ""),
        ("1.50", "1.50"),
        ("NaN", "NaN"),
        ("[Infinity]", "[Infinity]"),
        ("7" * 5000, "7" * 5000),
        ('{"b":1,"a":2}', '{"b":1,"a":2}'),
    ],
)
def test_a_gold_of_any_form_is_masked_where_it_tells_of_a_person_and_else_untouched(
    gold: str, expected: str | None
) -> None:
    record, counts = masked(problem("Whom do I call?", gold))

    if expected is None:
        assert "0812" not in record.answer
        assert {"tel": "[phone]"} == json.loads(json.loads(record.answer)["value"])
    else:
        assert expected == record.answer
    assert (record.answer != gold) == (1 == counts.get(IN_GOLD) == counts.get(ITEMS))


@pytest.mark.attack
@pytest.mark.parametrize(
    ("prompt", "answer", "new_prompt", "new_answer"),
    [
        # The word that names the number stands in the prompt alone.
        ("Order 0912345678 is late. Its number?", "0912345678", None, None),
        ("call 9171234567. Which number?", "9171234567", "call [phone]. Which number?", "[phone]"),
        ("No. resi 081234567890", "081234567890", None, None),
        # A number in a longer one is another number.
        ("call 9171234567", "99171234567", "call [phone]", None),
    ],
)
def test_the_prompt_says_whose_number_a_gold_is(
    prompt: str, answer: str, new_prompt: str | None, new_answer: str | None
) -> None:
    record, counts = masked(problem(prompt, json.dumps(answer)))

    assert (new_prompt or prompt) == record.prompt_text
    assert (new_answer or answer) == json.loads(record.answer)
    assert (new_prompt is not None) == (ITEMS in counts)
    assert (new_answer is not None) == (IN_GOLD in counts)


@pytest.mark.attack
@pytest.mark.parametrize("verifier", ["code_tests", "shop", "environment"])
def test_a_gold_that_runs_is_left_out_rather_than_changed(verifier: str) -> None:
    tests = '{"mode":"asserts","setup":"","tests":["assert is_phone(\'0812-3456-7890\')"]}'
    item = Item(problem("Write is_phone.", tests, verifier), "Write is_phone.")

    kept, refused, counts = apply_policy([item], PersonalData.MASK)

    assert [] == kept
    assert ["personal_data"] == [one.reason for one in refused]
    assert refused[0].detail.startswith("phone: in a gold answer that runs")
    assert {"tickets": {"items": 1, "phone": 1, "in_gold": 1}} == counts
    assert [item] == apply_policy([item], PersonalData.COUNT)[0]


def test_what_a_demonstration_answers_is_counted_and_masked_with_it() -> None:
    gold = problem("Whom do I call?", f'{{"reference":"{PHONE}"}}')
    record = filled(
        Demonstration,
        **gold.model_dump(exclude={"verifier", "answer", "level"}),
        parent=Parent.GENERAL,
        response="Us.",
    )
    item = Item(record, "Whom do I call?", answers=gold, facets={"seller": "a@shop.example.com"})

    (kept,), _, counts = apply_policy([item], PersonalData.MASK)

    assert kept.answers is not None
    assert '{"reference":"[phone]"}' == kept.answers.answer
    assert {"seller": "[email]"} == kept.facets
    assert {"tickets": {"items": 1, "phone": 1, "email": 1, "in_gold": 1}} == counts


@pytest.mark.parametrize("policy", [PersonalData.MASK, PersonalData.QUARANTINE])
def test_an_id_that_names_a_person_is_masked_and_still_the_id_of_one_row(policy: PersonalData):
    ids = ["tickets/ann@shop.example.com", "tickets/ben@shop.example.com"]
    records = [problem("Where is it?", '"x"').model_copy(update={"id": one}) for one in ids]
    items = [Item(one, one.prompt_text) for one in records]

    kept, refused, counts = apply_policy(items, policy)

    names = [one.record.id for one in kept] + [one.key for one in refused]
    assert 2 == len(set(names))
    assert all(name.startswith("tickets/[email]-") for name in names)
    assert {"tickets": {"items": 2, "email": 2}} == counts
