"""Why a stage ran or came from the cache."""

import json

import pytest

from data_schemas.statements import ExecutionRecord, Input, Statement
from tasks.pages.explanation import StatementExecution, explain
from tests.records import filled


def _statement(**changes):
    settings = changes.pop("settings", {"learning_rate": 0.001, "loss": {"kind": "espo"}})
    inputs = changes.pop("inputs", {"problems": "p1", "start": "s1"})
    fields = {
        "stage": "rl/one",
        "settings": json.dumps(settings),
        "code": ("c1", "c2"),
        "environment": "e1",
        "inputs": tuple(
            Input(role=role, uri=f"/objects/{digest}", digest=digest, statement=f"made-{digest}")
            for role, digest in inputs.items()
        ),
        "outputs": (),
        "facts": {},
    }
    return Statement(**{**fields, **changes})


def _made(statement, execution="x1", started=1_700_000_000.0):
    return StatementExecution(
        statement,
        filled(ExecutionRecord, execution=execution, stage=statement.stage, started=started),
    )


def test_a_stage_without_an_earlier_run_is_reported_as_such():
    other_stage = _made(_statement(stage="rl/two"))

    assert "first time in this store" == explain(_statement(), True, [other_stage])


def test_a_cached_stage_names_the_execution_that_made_it():
    current = _statement()
    history = [
        _made(current, "x1", 1_700_000_000.0),
        _made(_statement(code=("c9",)), "x2", 1_700_100_000.0),
    ]

    assert "same code, settings and inputs as execution x1 on 2023-11-14" == explain(
        current, False, history
    )


def test_a_cached_stage_without_a_record_is_reported_as_such():
    assert "same code, settings and inputs as an execution not recorded in this store" == explain(
        _statement(), False, []
    )


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"code": ("c1", "c3")}, "code changed"),
        ({"environment": "e2"}, "installed packages changed"),
        (
            {"settings": {"learning_rate": 0.0005, "loss": {"kind": "espo"}}},
            "settings changed: learning_rate 0.001 -> 0.0005",
        ),
        (
            {"settings": {"learning_rate": 0.001, "loss": {"kind": "grpo"}, "seed": 1}},
            'settings changed: loss.kind "espo" -> "grpo", seed (none) -> 1',
        ),
        ({"inputs": {"problems": "p2", "start": "s1"}}, "input 'problems' changed"),
        ({"inputs": {"problems": "p1"}}, "input 'start' is no longer read"),
        (
            {"inputs": {"problems": "p1", "start": "s1"} | dict.fromkeys("abcde", "x")},
            "input 'a' is new; input 'b' is new; input 'c' is new; 2 more inputs changed",
        ),
        ({"inputs": {"problems": "p1", "start": "s1", "x": "x1"}}, "input 'x' is new"),
        (
            {"code": ("c3",), "inputs": {"problems": "p2", "start": "s2"}},
            "code changed; input 'problems' changed; input 'start' changed",
        ),
    ],
)
def test_a_stage_that_ran_says_what_changed(change, reason):
    assert reason == explain(_statement(**change), True, [_made(_statement())])


def test_the_same_bytes_from_another_producer_are_distinguished():
    same_bytes = Input(role="problems", uri="/objects/p1", digest="p1", statement="another")
    start = _statement().inputs[1]

    assert "input 'problems' was made anew, with the same bytes" == explain(
        _statement(inputs={}).model_copy(update={"inputs": (same_bytes, start)}),
        True,
        [_made(_statement())],
    )


def test_the_most_recent_earlier_statement_is_compared_whatever_the_order():
    older = _made(_statement(settings={"seed": 1}), "x1", 1_700_000_000.0)
    newer = _made(_statement(settings={"seed": 2}), "x2", 1_700_100_000.0)
    current = _statement(settings={"seed": 3})

    assert "settings changed: seed 2 -> 3" == explain(current, True, [newer, older])


def test_a_stage_that_ran_although_nothing_changed_is_reported_as_such():
    current = _statement()

    assert "ran again; nothing changed since execution x1 on 2023-11-14" == explain(
        current, True, [_made(current)]
    )


def test_many_changed_settings_are_counted_and_long_values_cut():
    before = _statement(settings={f"s{index}": 0 for index in range(6)})
    after = _statement(settings={"s0": "x" * 100, **{f"s{index}": 1 for index in range(1, 6)}})

    reason = explain(after, True, [_made(before)])

    assert f'settings changed: s0 0 -> "{"x" * 36}..., s1 0 -> 1, s2 0 -> 1 and 3 more' == reason
