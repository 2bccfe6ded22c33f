"""When a retraining is worth its cost."""

import pytest

from data_schemas.intake import Intake, Outcome, TakenFile
from data_schemas.settings import RetrainSettings
from tasks.retraining.worth import decide_grading, decide_learning

SETTINGS = RetrainSettings(min_rows=10, min_unsolved_share=0.2)


def _intake(rows, valid, fresh, quarantined=None):
    file = TakenFile(
        uri="u", copy_name="c", sha256="s", bytes=1, rows=rows, valid=valid, fresh=fresh
    )
    return Intake(
        inbox="s3://drop/in",
        files=(file,) if rows else (),
        rows=rows,
        valid=valid,
        fresh=fresh,
        quarantined=quarantined or {},
    )


@pytest.mark.parametrize(
    ("intake", "outcome", "reason"),
    [
        (_intake(0, 0, 0), Outcome.WAIT, "nothing new in s3://drop/in since the watermark"),
        (
            _intake(12, 9, 9, {"not_json": 2, "schema": 1}),
            Outcome.WAIT,
            "12 new rows in 1 files, 9 of them valid (not_json 2, schema 1); min_rows asks for 10",
        ),
        (
            _intake(12, 12, 0),
            Outcome.SKIP,
            "12 new rows in 1 files: all 12 valid ones are duplicates of what the released model "
            "was trained or evaluated on",
        ),
        (
            _intake(12, 12, 9),
            Outcome.WAIT,
            "12 new rows in 1 files: 9 are not known to the released model yet; "
            "min_rows asks for 10",
        ),
        (_intake(12, 12, 10), Outcome.LEARN, "12 new rows in 1 files, 10 of them fresh"),
    ],
)
def test_counts_alone_can_stop_it(intake, outcome, reason):
    decision = decide_grading(SETTINGS, intake)

    assert (outcome, reason) == (decision.outcome, decision.reason)


@pytest.mark.parametrize(
    ("pass_rates", "outcome", "reason"),
    [
        ([1.0] * 9 + [0.5], Outcome.SKIP, "already solves 9 of 10 new problems every time"),
        ([1.0] * 10, Outcome.SKIP, "already solves 10 of 10"),
        ([0.0] * 10, Outcome.SKIP, "never solves any of 10 new problems"),
        ([None, None], Outcome.WAIT, "no answer to any of 2 new problems could be judged"),
        ([], Outcome.WAIT, "any of 0 new problems"),
        (
            [1.0] * 8 + [0.5, 0.0, None],
            Outcome.LEARN,
            "of 10 new problems the released model solves 8 always, 1 sometimes, 1 never",
        ),
    ],
)
def test_what_the_model_already_solves_can_stop_it(pass_rates, outcome, reason):
    decision = decide_learning(SETTINGS, pass_rates)

    assert outcome is decision.outcome
    assert reason in decision.reason


def test_a_share_of_zero_still_needs_one_unsolved_problem():
    settings = SETTINGS.model_copy(update={"min_unsolved_share": 0.0})

    assert Outcome.SKIP is decide_learning(settings, [1.0, 1.0]).outcome
    assert Outcome.LEARN is decide_learning(settings, [1.0] * 99 + [0.5]).outcome
