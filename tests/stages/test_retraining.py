"""What the assessment of new rows may say; the workflow around it is in test_retrain."""

import pytest
from pydantic import ValidationError

from data_schemas import presets
from data_schemas.artifacts import DatasetRef, GradedRef
from data_schemas.intake import Assessment, IntakeDecision, IntakeOutcome, Lesson
from tasks.stages.retraining import skip_grading

ROWS = DatasetRef(uri="store/objects/0", digest="0")
LESSON = Lesson(curated=ROWS, graded=GradedRef(**dict(ROWS)), phase=presets.NIGHTLY.rl)
NOTHING = Lesson(phase=presets.NIGHTLY.rl)


@pytest.mark.parametrize("outcome", [IntakeOutcome.WAIT, IntakeOutcome.SKIP])
def test_rows_that_are_not_graded_are_no_lesson(outcome):
    decision = IntakeDecision(outcome=outcome, reason="3 rows; min_rows asks for 10")

    assessed = skip_grading(settings=presets.NIGHTLY, decision=decision)

    assert Assessment(decision=decision, lesson=NOTHING) == assessed.assessment
    assert (False, False, False) == (assessed.is_worth, assessed.by_sft, assessed.by_merge)


@pytest.mark.parametrize(
    ("outcome", "lesson"),
    [(IntakeOutcome.LEARN, NOTHING), (IntakeOutcome.WAIT, LESSON), (IntakeOutcome.SKIP, LESSON)],
)
def test_an_assessment_has_a_lesson_exactly_if_it_is_to_be_learned(outcome, lesson):
    with pytest.raises(ValidationError, match=f"decision '{outcome}' with lesson"):
        Assessment(decision=IntakeDecision(outcome=outcome, reason="because"), lesson=lesson)
