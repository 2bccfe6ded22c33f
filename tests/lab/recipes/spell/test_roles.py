import pytest

from data_schemas.rows import Domain, Problem
from tasks.lab.recipes.spell import roles
from tasks.lab.recipes.spell.offers import Task
from tasks.lab.recipes.spell.roles import QuestionAnswer
from tasks.lab.recipes.spell.settings import PastQuestion

LINES = ("A: Nara7, Kibo4", "B: Zeta9, Tovi2")


class Sealed(Problem):
    """Its gold cannot be read."""

    def __getattribute__(self, name):
        if name == "answer":
            raise AssertionError("a reward reads Problem.answer")
        return super().__getattribute__(name)


def sealed(messages):
    return Sealed(
        id="p",
        domain=Domain.GENERAL,
        language="en",
        messages=messages,
        verifier=roles.NAME,
        answer="{}",
        source="s",
        source_row="0",
    )


@pytest.mark.parametrize(
    ("task", "response", "fits"),
    [
        (Task.NUMERIC, '<think>t</think>{"q":"Nara","a":"12"}', True),
        (Task.NUMERIC, '{"a":"12","q":"Nara"}', True),
        (Task.NUMERIC, '{"q":"Cheapest of A","a":"Nara"}', False),
        (Task.FREE, '{"q":"Cheapest of A","a":"Nara"}', True),
        (Task.FREE, '{"q":"Nara","a":"12"}', False),
        (Task.CHOICE, '{"q":"Dearest: Nara, Kibo, Zeta","a":"Zeta"}', True),
        (Task.CHOICE, '{"q":"Dearest: Nara","a":"Nara"}', False),
        (Task.CHOICE, '{"q":"Dearest: Nara, Nara","a":"Nara"}', False),
        (Task.CHOICE, '{"q":"Dearest: Nara, Kibo","a":"Zeta"}', False),
        (Task.NUMERIC, '{"q":"Nara","a":12}', False),
        (Task.NUMERIC, '{"q":"Nara","a":"12","b":"1"}', False),
        (Task.NUMERIC, '{"q":"","a":"12"}', False),
        (Task.NUMERIC, '<think>{"q":"Nara","a":"12"}', False),
        (Task.NUMERIC, '["q","a"]', False),
        (Task.NUMERIC, "", False),
    ],
)
def test_a_question_is_json_in_the_form_of_its_task(task, response, fits):
    problem = sealed(roles.questioner_input(task, (), LINES))

    assert fits is roles.verify(problem, response).solved


@pytest.mark.parametrize(
    ("response", "vote"),
    [
        ("<think>a</think>[[YES]]", True),
        ("[[YES]]\n[[NO]]", False),
        ("[[NO]] or [[YES]]", None),
        ("YES", None),
        ("<think>[[YES]]", None),
    ],
)
def test_a_vote_is_the_last_line_of_two(response, vote):
    problem = sealed(roles.verifier_input("Nara", "12", "It is 12"))

    assert vote is roles.read_vote(response)
    assert (vote is not None) is roles.verify(problem, response).solved


@pytest.mark.parametrize(
    ("reference", "given", "covered"),
    [
        ("12", "It is 12", True),
        ("12", "112", False),
        ("12", "12 or 13", False),
        ("12", "12.5", False),
        ("Nara", "it is nara.", True),
        ("Nara", "Naras", False),
        ("Red Nara", "Nara Red", False),
        ("?", "anything", False),
    ],
)
def test_an_answer_covers_the_reference_word_by_word(reference, given, covered):
    assert covered is roles.covers(reference, given)


def test_an_answer_is_one_line_and_short():
    assert "It is 12" == roles.read_answer("<think>x</think>It is\n12")
    assert roles.read_answer("<think>12") is None
    assert roles.read_answer("12 " * 21) is None
    assert roles.verify(sealed(roles.responder_input((), "Nara")), "12").solved


def test_an_answer_of_zero_is_passed_over_as_in_the_published_code():
    assert not QuestionAnswer("Nara", "0").usable
    assert QuestionAnswer("Nara", "10").usable


def test_the_questioner_is_shown_its_memory_and_then_the_new_documents():
    old = PastQuestion(documents=LINES[:1], question="Nara", answer="12")

    messages = roles.questioner_input(Task.FREE, [old], LINES[1:])

    assert f"{LINES[0]}\nQ: Nara = 12\nNew:\n{LINES[1]}" == messages[-1].content
    assert LINES[1:] == roles.new_documents(messages)
    assert Task.FREE is roles.task_of(messages)


def test_the_documents_of_the_responder_are_all_but_its_question():
    assert LINES == roles.documents_of(roles.responder_input(LINES, "Nara"))
    assert () == roles.documents_of(roles.responder_input((), "Nara"))
