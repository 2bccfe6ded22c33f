"""How a retraining ends: what becomes of its files, in a sentence."""

import pytest

from data_schemas.intake import FileStatus, InboxFile, IntakeDecision, IntakeOutcome
from data_schemas.reports import GateDecision
from data_schemas.settings import RetrainSettings
from tasks.retraining.outcome import conclude, with_inputs, without_training
from tasks.retraining.processed import MAX_REFUSALS


def file(key, refusals=0):
    return InboxFile(key=key, uri=f"/in/{key}", bytes=1, fingerprint="f", refusals=refusals)


def facts(released, stale=0):
    return {"released": released, "stale": stale, "version": "abc"}


def test_a_released_model_uses_its_files_up():
    end = conclude(facts(1), [file("a"), file("b")])

    assert FileStatus.TRAINED is end.status
    assert "Promoted: version abc, trained on 2 files (a, b)." == end.message


def test_a_refusal_keeps_the_rows_and_says_so():
    end = conclude(facts(0), [file("a")])

    assert FileStatus.REFUSED is end.status
    assert "Its rows are used again with the next new file." in end.message


def test_a_file_that_is_refused_again_and_again_is_set_aside_with_the_way_back():
    end = conclude(facts(0), [file("a"), file("b", MAX_REFUSALS - 1)])

    assert FileStatus.REFUSED is end.status
    assert f"Set aside after {MAX_REFUSALS} refused models: b; to use one again" in end.message
    assert "used again with the next new file" in end.message
    alone = conclude(facts(0), [file("b", MAX_REFUSALS - 1)])
    assert "used again with the next new file" not in alone.message


def test_a_start_that_is_no_longer_released_uses_nothing_up():
    end = conclude(facts(0, stale=1), [file("a")])

    assert end.status is None
    assert "another model was released while this one was trained" in end.message


@pytest.mark.parametrize(
    ("inbox", "model", "expected"),
    [
        ("", "", ("inbox", "eachprompt-tiny")),
        ("s3://b/in", "", ("s3://b/in", "eachprompt-tiny")),
        ("", "shop", ("inbox", "shop")),
    ],
)
def test_inputs_replace_the_settings_unless_they_are_empty(inbox, model, expected):
    settings = with_inputs(RetrainSettings(), inbox, model)

    assert expected == (settings.inbox, settings.release.name)


@pytest.mark.parametrize(
    ("decided", "held", "expected"),
    [
        (IntakeOutcome.WAIT, (), {}),
        (IntakeOutcome.WAIT, ("b",), {FileStatus.HELD: ["b"]}),
        (IntakeOutcome.SKIP, (), {FileStatus.SKIPPED: ["a", "b"]}),
        (IntakeOutcome.SKIP, ("b",), {FileStatus.HELD: ["b"], FileStatus.SKIPPED: ["a"]}),
        (IntakeOutcome.PEOPLE, ("b",), {FileStatus.HELD: ["b"]}),
        (IntakeOutcome.PEOPLE, ("a", "b"), {FileStatus.HELD: ["a", "b"]}),
    ],
)
def test_only_what_people_must_look_at_is_held(decided, held, expected):
    files = [InboxFile(key=key, uri=key, bytes=1, fingerprint=key) for key in ("a", "b")]
    decision = IntakeDecision(outcome=decided, reason="because", held=held)

    settled = without_training(decision, files)

    assert expected == {status: [one.key for one in some] for status, some in settled.items()}


def test_a_refused_night_says_which_rule_failed():
    rule = "accuracy 0.31 is not above 0.35 of models:/shop/3"
    gate = GateDecision(
        released=False, reasons=("passed: enough rows", f"FAILED: {rule}"), comparisons=()
    )

    end = conclude(facts(0), [file("a")], gate.failed)

    assert end.message.startswith("Refused by the release gate: ")
    assert f", because {rule}." in end.message
    assert "enough rows" not in end.message
