"""When a retraining is worth its cost."""

import pytest

from data_schemas.drift import Drift
from data_schemas.intake import (
    CurationCounts,
    Intake,
    IntakeDecision,
    IntakeOutcome,
    TakenFile,
    Teaching,
)
from data_schemas.rows import MixReport
from data_schemas.settings import RetrainSettings
from tasks.retraining.worth import decide_grading, decide_learning, decide_reading

SETTINGS = RetrainSettings(min_rows=10, min_unsolved_share=0.2)

STABLE = Drift(known=100, new=60, fields=(), unknown_words=0.0)
MIXED = MixReport(
    fresh=36,
    replayed=12,
    held_out=6,
    added=4,
    slice="slice=2026-11",
    demonstrations=0,
    practised=0,
    parents={},
    refused={},
)
SHOWN = MIXED.model_copy(
    update={"demonstrations": 12, "practised": 5, "parents": {"commerce": 9, "reasoning": 8}}
)


def _taken(refusals=0):
    return TakenFile(
        uri="u", adapter="prompt_jsonl", copy_name="c", sha256="s", bytes=1, refusals=refusals
    )


def _intake(*files, left=None):
    return Intake(inbox="s3://drop/in", files=files, left=left or {})


def rows(reason="rows"):
    return IntakeDecision(outcome=IntakeOutcome.LEARN, reason=reason)


@pytest.mark.parametrize(
    ("intake", "waiting", "outcome", "reason"),
    [
        (_intake(), 0, IntakeOutcome.WAIT, "nothing new in s3://drop/in"),
        (
            _intake(left={"a.part": "it has the name of a partial upload"}),
            2,
            IntakeOutcome.WAIT,
            "nothing new in s3://drop/in; 2 files of refused models are kept and used with the "
            "next new one; left for a later run: a.part it has the name of a partial upload",
        ),
        (_intake(_taken()), 0, IntakeOutcome.LEARN, "1 file"),
        (
            _intake(_taken(), _taken(1)),
            1,
            IntakeOutcome.LEARN,
            "2 files, 1 of them used again after a refused model",
        ),
    ],
)
def test_without_a_new_file_nothing_is_read(intake, waiting, outcome, reason):
    assert IntakeDecision(outcome=outcome, reason=reason) == decide_reading(intake, waiting)


@pytest.mark.parametrize(
    ("counts", "outcome", "reason"),
    [
        (
            (12, 9, 9, {"not_json": 2, "schema": 1}),
            IntakeOutcome.WAIT,
            "12 rows in 1 file; not usable: not_json 2, schema 1; 9 problems are left; "
            "min_rows asks for 10",
        ),
        (
            (12, 12, 0, {}),
            IntakeOutcome.SKIP,
            "12 rows in 1 file; all 12 problems are duplicates of what the released model "
            "was trained or evaluated on",
        ),
        (
            (12, 12, 9, {}),
            IntakeOutcome.WAIT,
            "12 rows in 1 file; 9 problems are not known to the released model yet; "
            "min_rows asks for 10",
        ),
        ((12, 12, 10, {}), IntakeOutcome.LEARN, "12 rows in 1 file; 10 fresh problems"),
    ],
)
def test_counts_alone_can_stop_it(counts, outcome, reason):
    rows, problems, fresh, refused = counts
    counted = CurationCounts(rows=rows, problems=problems, fresh=fresh, refused=refused)

    decision = decide_grading(SETTINGS, "1 file", counted, STABLE)

    assert (
        IntakeDecision(outcome=outcome, reason=f"{reason}. Drift: {STABLE.explain()}") == decision
    )


@pytest.mark.parametrize(
    ("fresh", "outcome", "rest"),
    [
        (60, IntakeOutcome.LEARN, "the night goes on without them: 60 fresh problems"),
        (0, IntakeOutcome.SKIP, "of the others: all 60 problems are duplicates"),
        (3, IntakeOutcome.PEOPLE, "of the others: 3 problems are not known"),
    ],
)
def test_a_suspect_file_is_set_aside_and_the_night_goes_on_with_the_others(fresh, outcome, rest):
    counted = CurationCounts(rows=61, problems=60, fresh=fresh, refused={})

    decision = decide_grading(SETTINGS, "2 files", counted, STABLE, {"b.csv": "it contradicts"})

    assert (outcome, ("b.csv",)) == (decision.outcome, decision.held)
    told = f"needs people: b.csv: it contradicts. These files are set aside; {rest}"
    assert told in decision.reason


def test_files_that_are_set_aside_stay_so_whatever_is_learned_from_the_others():
    before = rows().model_copy(update={"held": ("b.csv",)})

    for rates in ([0.5], [1.0], [None]):
        decision, _ = decide_learning(SETTINGS, before, rates, 0, MIXED, Teaching.SFT)
        assert ("b.csv",) == decision.held


def test_files_that_are_held_for_the_same_reason_are_named_together():
    counted = CurationCounts(rows=60, problems=0, fresh=0, refused={})
    suspects = {"c.csv": "language (100%)", "a.csv": "language (100%)", "b.csv": "it contradicts"}

    decision = decide_grading(SETTINGS, "3 files", counted, STABLE, suspects)

    assert (IntakeOutcome.PEOPLE, ("a.csv", "b.csv", "c.csv")) == (decision.outcome, decision.held)
    assert "a.csv, c.csv: language (100%); b.csv: it contradicts. These files" in decision.reason


@pytest.mark.parametrize(
    ("pass_rates", "outcome", "reason"),
    [
        ([1.0] * 9 + [0.5], IntakeOutcome.SKIP, "already solves 9 of 10 new problems every time"),
        ([1.0] * 10, IntakeOutcome.SKIP, "already solves 10 of 10"),
        ([0.0] * 10, IntakeOutcome.SKIP, "never solves any of 10 new problems"),
        ([None, None], IntakeOutcome.WAIT, "no answer to any of 2 new problems could be scored"),
        ([], IntakeOutcome.WAIT, "any of 0 new problems"),
        (
            [1.0] * 8 + [0.5, 0.0, None],
            IntakeOutcome.LEARN,
            "of 10 new problems the released model solves 8 always, 1 sometimes, 1 never",
        ),
    ],
)
def test_what_the_model_already_solves_can_stop_it(pass_rates, outcome, reason):
    decision, teaching = decide_learning(
        SETTINGS, rows("40 fresh problems"), pass_rates, 12, MIXED, Teaching.SFT
    )

    assert outcome is decision.outcome
    assert decision.reason.startswith("40 fresh problems. Graded: ")
    assert reason in decision.reason
    assert teaching is Teaching.OFF


def test_a_share_of_zero_still_needs_one_unsolved_problem():
    settings = SETTINGS.model_copy(update={"min_unsolved_share": 0.0})

    for rates, outcome in (
        ([1.0, 1.0], IntakeOutcome.SKIP),
        ([1.0] * 99 + [0.5], IntakeOutcome.LEARN),
    ):
        assert (
            outcome is decide_learning(settings, rows(), rates, 12, MIXED, Teaching.SFT)[0].outcome
        )


@pytest.mark.parametrize(
    ("wanted", "epochs", "changes", "teaching", "told"),
    [
        ("sft", 3, {}, "sft", "SFT + RL: 12 new demonstrations; with 5 old ones they"),
        ("merge", 3, {}, "merge", "they fine-tune two merged models first"),
        (
            "off",
            3,
            {},
            "off",
            "RL only: 12 new demonstrations, and demonstrations is off",
        ),
        ("sft", 0, {}, "off", "RL only: 12 new demonstrations, and sft.epochs is 0"),
        (
            "sft",
            3,
            {"demonstrations": 9},
            "off",
            "RL only: 9 new demonstrations; min_rows",
        ),
        ("merge", 3, {"parents": {"commerce": 17}}, "off", "a merge needs some of both parents"),
    ],
)
def test_verified_demonstrations_decide_on_fine_tuning(wanted, epochs, changes, teaching, told):
    sft = SETTINGS.sft.model_copy(update={"epochs": epochs})
    settings = SETTINGS.model_copy(update={"sft": sft})
    mixed = SHOWN.model_copy(update=changes)

    decision, chosen = decide_learning(settings, rows(), [0.5], 9, mixed, Teaching(wanted))

    assert Teaching(teaching) is chosen
    assert told in decision.reason
    assert (
        "RL may draw from 1 new and 9 old problems, of 36 and 12 that were offered"
        in decision.reason
    )
    assert "4 new ones are held out as slice=2026-11" in decision.reason


def test_what_the_model_never_solves_it_may_still_be_shown():
    never = [0.0] * 10

    assert (
        IntakeOutcome.LEARN
        is decide_learning(SETTINGS, rows(), never, 0, SHOWN, Teaching.SFT)[0].outcome
    )
    assert (
        IntakeOutcome.SKIP
        is decide_learning(SETTINGS, rows(), never, 0, MIXED, Teaching.SFT)[0].outcome
    )


def test_a_skipped_night_fine_tunes_nothing_and_names_what_was_left_out():
    mixed = SHOWN.model_copy(update={"refused": {"wrong_answer": 3}})
    decision, teaching = decide_learning(SETTINGS, rows(), [1.0], 0, mixed, Teaching.SFT)

    assert (IntakeOutcome.SKIP, Teaching.OFF) == (decision.outcome, teaching)
    assert decision.reason.endswith("Left out: wrong_answer 3")
