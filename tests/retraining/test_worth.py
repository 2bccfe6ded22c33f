"""When a retraining is worth its cost."""

import pytest

from data_schemas.intake import Counted, Decision, Intake, Outcome, TakenFile
from data_schemas.settings import RetrainSettings
from tasks.retraining.worth import decide_grading, decide_learning, decide_reading

SETTINGS = RetrainSettings(min_rows=10, min_unsolved_share=0.2)


def _taken(refusals=0):
    return TakenFile(
        uri="u", adapter="prompt_jsonl", copy_name="c", sha256="s", bytes=1, refusals=refusals
    )


def _intake(*files, left=None):
    return Intake(inbox="s3://drop/in", files=files, left=left or {})


@pytest.mark.parametrize(
    ("intake", "waiting", "outcome", "reason"),
    [
        (_intake(), 0, Outcome.WAIT, "nothing new in s3://drop/in"),
        (
            _intake(left={"a.part": "it has the name of a partial upload"}),
            2,
            Outcome.WAIT,
            "nothing new in s3://drop/in; 2 files of refused models are kept and used with the "
            "next new one; left for a later run: a.part it has the name of a partial upload",
        ),
        (_intake(_taken()), 0, Outcome.LEARN, "1 files"),
        (
            _intake(_taken(), _taken(1)),
            1,
            Outcome.LEARN,
            "2 files, 1 of them used again after a refused model",
        ),
    ],
)
def test_without_a_new_file_nothing_is_read(intake, waiting, outcome, reason):
    assert Decision(outcome=outcome, reason=reason) == decide_reading(intake, waiting)


@pytest.mark.parametrize(
    ("counts", "outcome", "reason"),
    [
        (
            (12, 9, 9, {"not_json": 2, "schema": 1}),
            Outcome.WAIT,
            "12 rows in 1 files; not usable: not_json 2, schema 1; 9 problems are left; "
            "min_rows asks for 10",
        ),
        (
            (12, 12, 0, {}),
            Outcome.SKIP,
            "12 rows in 1 files; all 12 problems are duplicates of what the released model "
            "was trained or evaluated on",
        ),
        (
            (12, 12, 9, {}),
            Outcome.WAIT,
            "12 rows in 1 files; 9 problems are not known to the released model yet; "
            "min_rows asks for 10",
        ),
        ((12, 12, 10, {}), Outcome.LEARN, "12 rows in 1 files; 10 fresh problems"),
    ],
)
def test_counts_alone_can_stop_it(counts, outcome, reason):
    rows, problems, fresh, refused = counts
    counted = Counted(rows=rows, problems=problems, fresh=fresh, refused=refused)

    decision = decide_grading(SETTINGS, "1 files", counted, "none")

    assert Decision(outcome=outcome, reason=f"{reason}. Drift: none") == decision


@pytest.mark.parametrize(
    ("pass_rates", "outcome", "reason"),
    [
        ([1.0] * 9 + [0.5], Outcome.SKIP, "already solves 9 of 10 new problems every time"),
        ([1.0] * 10, Outcome.SKIP, "already solves 10 of 10"),
        ([0.0] * 10, Outcome.SKIP, "never solves any of 10 new problems"),
        ([None, None], Outcome.WAIT, "no answer to any of 2 new problems could be scored"),
        ([], Outcome.WAIT, "any of 0 new problems"),
        (
            [1.0] * 8 + [0.5, 0.0, None],
            Outcome.LEARN,
            "of 10 new problems the released model solves 8 always, 1 sometimes, 1 never",
        ),
    ],
)
def test_what_the_model_already_solves_can_stop_it(pass_rates, outcome, reason):
    decision = decide_learning(SETTINGS, "40 fresh problems", pass_rates)

    assert outcome is decision.outcome
    assert decision.reason.startswith("40 fresh problems. Graded: ")
    assert reason in decision.reason


def test_a_share_of_zero_still_needs_one_unsolved_problem():
    settings = SETTINGS.model_copy(update={"min_unsolved_share": 0.0})

    assert Outcome.SKIP is decide_learning(settings, "rows", [1.0, 1.0]).outcome
    assert Outcome.LEARN is decide_learning(settings, "rows", [1.0] * 99 + [0.5]).outcome
