"""What is refused, and what is left out, before anything is trained."""

import logging

import pytest

from data_schemas.rl_settings import RLSettings
from data_schemas.rows import (
    Demonstration,
    Domain,
    ItemKind,
    Message,
    Outcome,
    Parent,
    Problem,
    QuarantinedItem,
    Role,
)
from tasks.errors import DataError, SettingsError
from tasks.formats.readiness import demonstrations_of, fit_phase, require_cause
from tests.records import filled, problem_of

SETTINGS = RLSettings(domains={Domain.MATHS: 2.0, Domain.CODE: 1.0, Domain.CHOICE: 1.0})
ASK = (Message(role=Role.USER, content="?"),)


def problem(domain: Domain) -> Problem:
    return problem_of(ASK, "{}", id=domain, domain=domain)


def demonstration(parent: Parent) -> Demonstration:
    return filled(Demonstration, parent=parent, messages=ASK, response="7")


def test_a_phase_keeps_the_domains_that_came_and_says_what_it_leaves_out(caplog):
    with caplog.at_level(logging.WARNING):
        phase = fit_phase(SETTINGS, [problem(Domain.MATHS), problem(Domain.CODE)], "rl_one")

    assert {Domain.MATHS: 2.0, Domain.CODE: 1.0} == phase.domains
    assert SETTINGS.steps == phase.steps
    assert "rl_one: no problems of choice" in caplog.text


def test_a_phase_that_has_everything_stays_as_it_is():
    assert SETTINGS == fit_phase(SETTINGS, [problem(domain) for domain in Domain], "rl_one")


def test_a_phase_without_any_of_its_domains_is_refused():
    with pytest.raises(
        SettingsError, match=r"rl_one\.domains names maths, code, choice, but .* of"
    ):
        fit_phase(SETTINGS, [problem(Domain.OPEN_TEXT)], "rl_one")


def test_a_choice_between_domains_of_which_the_data_leave_one_is_refused():
    robust = SETTINGS.model_copy(update={"group_dro": 2.0})

    with pytest.raises(SettingsError, match=r"rl_one\.group_dro .* maths alone; set it to 0, or"):
        fit_phase(robust, [problem(Domain.MATHS)], "rl_one")


def test_a_phase_without_any_problem_is_skipped_with_one_line(caplog):
    with caplog.at_level(logging.WARNING):
        phase = fit_phase(SETTINGS, [], "rl_one")

    assert 0 == phase.steps
    assert ["rl_one: no source has problems to train on; skipped"] == caplog.messages


def refusal(source: str, reason: str) -> QuarantinedItem:
    return QuarantinedItem(
        stage="quality",
        outcome=Outcome.DROPPED,
        kind=ItemKind.DEMONSTRATION,
        source=source,
        key=f"{source}/1",
        reason=reason,
        source_row="0" * 64,
    )


def test_a_fine_tuning_whose_demonstrations_were_all_left_out_is_no_skipped_one():
    kept = [demonstration(Parent.REASONING)]
    long = [refusal("dialogues", "response_too_long")] * 3 + [refusal("dialogues", "duplicate")]

    require_cause(Parent.COMMERCE, kept, [refusal(kept[0].source, "duplicate")], str.upper)
    with pytest.raises(DataError) as error:
        require_cause(Parent.COMMERCE, kept, long, str.upper)

    assert (
        "no demonstration for commerce fine-tuning is left, and of dialogues all 4 were left out, "
        "3 of them as response_too_long. RESPONSE_TOO_LONG" == str(error.value)
    )


def test_a_parent_gets_its_own_demonstrations():
    rows = [demonstration(parent) for parent in (Parent.REASONING, Parent.COMMERCE) * 2]

    assert rows[::2] == demonstrations_of(Parent.REASONING, rows)


def test_the_model_after_rl_learns_from_all_demonstrations_that_answer_somebody():
    rows = [demonstration(parent) for parent in Parent]

    taught = [row.parent for row in demonstrations_of(Parent.GENERAL, rows)]
    assert [Parent.REASONING, Parent.COMMERCE, Parent.GENERAL] == taught


def test_a_parent_that_nothing_teaches_is_named():
    rows = [demonstration(Parent.REASONING)] * 5

    with pytest.raises(DataError, match="0 demonstrations for commerce fine-tuning are left"):
        demonstrations_of(Parent.COMMERCE, rows)
