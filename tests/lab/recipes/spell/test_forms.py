import pytest

from data_schemas.rows import Demonstration, Domain
from tasks.errors import DataError, SettingsError
from tasks.gym.table import VERIFIERS
from tasks.lab.recipes.spell import forms
from tasks.lab.recipes.spell.offers import Task
from tasks.lab.recipes.spell.roles import questioner_input, responder_input, verifier_input
from tests.records import filled

FORMS = ["questioner/choice", "questioner/free", "questioner/numeric", "responder", "verifier"]


def shown(number, messages):
    return filled(
        Demonstration, id=f"d/{number}", domain=Domain.GENERAL, messages=messages, response="?"
    )


def taught(count=60):
    inputs = [
        *(questioner_input(task, (), ["A: Nara7, Kibo4"]) for task in Task),
        responder_input(["A: Nara7, Kibo4"], "Nara"),
        verifier_input("Nara", "7", "7"),
    ]
    return [shown(number, inputs[number % len(inputs)]) for number in range(count * len(inputs))]


class Says:
    """A model of one answer per role."""

    def __init__(self, **said):
        self.said = said

    def texts(self, problems, samples):
        assert samples == 1
        return {
            name: [self.said[one.messages[0].content.split(":")[0].split("?")[0]]]
            for name, one in problems.items()
        }

    def right(self, problem, texts):
        return [VERIFIERS[problem.verifier](problem, text).solved for text in texts]


def test_shares_are_of_roles_and_of_every_form():
    model = Says(Ask='{"q":"Nara","a":"7"}', Answer="7", Same="[[YES]] or [[NO]]")

    prompts = forms.taught_prompts(taught())
    shares = forms.valid_shares(model, prompts)

    assert FORMS == [*prompts]
    assert {forms.PER_FORM} == {len(found) for found in prompts.values()}
    # A number is an answer of the numeric task alone, and the verifier's line has two votes.
    assert [0.0, 0.0, 1.0, 1.0, 0.0] == [shares[form] for form in FORMS]
    assert [1 / 3, 1.0, 0.0] == [shares[role] for role in forms.ROLES]


@pytest.mark.parametrize("weak", forms.ROLES)
def test_a_model_below_half_is_refused_by_role_with_what_to_do(weak):
    shares = {role.value: 0.5 for role in forms.ROLES}
    forms.require_forms(shares)

    with pytest.raises(SettingsError, match=f"{weak} 49 %.*sft.epochs.*wider_moe"):
        forms.require_forms(shares | {weak.value: 0.49})


def test_a_role_that_was_not_taught_is_named():
    without = [one for one in taught(3) if one.messages[0].content != "Answer"]

    with pytest.raises(DataError, match="no demonstration teaches the responder"):
        forms.taught_prompts(without)
