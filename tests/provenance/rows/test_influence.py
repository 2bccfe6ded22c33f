"""A row is followed to everything it touched, and a model back to every row."""

import json

import pytest

from data_schemas.arrow import read_table, write_table
from data_schemas.gold_decisions import AppliedDecision
from data_schemas.pass_rates import GradedProblem
from data_schemas.rows import (
    DECISIONS,
    DEMONSTRATIONS,
    GRADED,
    HELD_OUT,
    PROBLEMS,
    Demonstration,
    Problem,
)
from data_schemas.settings import MergeSettings
from tasks.provenance.rows.find import by_file, by_judge, by_row, by_source, by_verifier
from tasks.provenance.rows.index import open_index
from tasks.provenance.rows.influence import trace_model, trace_rows
from tasks.store.files import sha256_bytes, sha256_file
from tests.provenance.rows.shop import EPOCHS, NEW, OLD, POISON, line_of

FIRST = "release of rl/one of merged"
SECOND = "release of rl/retrain of rl/one of merged"
OTHER = "release of rl/one of base"


def digest_of(row) -> str:
    return sha256_bytes(line_of(row).encode())


def table(shop, name, file, record):
    return read_table(shop.place / "objects" / shop.refs[name].digest[:16] / file, record)


def touched(original, trace) -> set[str]:
    names = {ref.statement: name for name, ref in original.refs.items()}
    return {names[made.statement] for made in trace.checkpoints}


def expected_advantage(original, rows: str) -> dict[str, float]:
    """What the made-up ledger gives every row: 10 per step, nothing in every third."""
    problems = table(original, f"{rows}/graded", GRADED, GradedProblem)
    return {row.source_row: 10.0 * step for step, row in enumerate(problems, 1) if step % 3}


def test_a_poisoned_row_is_followed_to_its_step_checkpoint_and_releases(original, index):
    problems = table(original, "old/graded", GRADED, GradedProblem)
    step = next(n for n, row in enumerate(problems, 1) if row.source_row == digest_of(POISON))

    trace = trace_rows(index, by_row(index, original.store, line_of(POISON)), show=5)

    (place,) = trace.places
    assert (str(original.outside / "old.jsonl"), OLD.index(POISON) + 1) == (place.uri, place.number)
    assert {("problem", ""), ("demonstration", "")} == {
        (one.kind, one.reason) for one in trace.outcomes
    }
    assert [
        ("sft/reasoning", "demonstration", (), EPOCHS, 0.0, True),
        ("rl/one", "non_zero_variance", (step,), 4, 10.0 * step, True),
    ] == [
        (use.stage, use.outcome, use.steps, use.times, use.advantage, use.trained)
        for use in trace.uses
    ]
    before = {"tuned", "merged", "rl/one of merged", "rl/retrain of rl/one of merged"}
    assert before | {FIRST, SECOND} == touched(original, trace)


@pytest.mark.parametrize(
    "way", ["end of line", "part of the prompt", "part of the response", "gold answer", "digest"]
)
def test_a_row_is_found_by_what_a_person_has_of_it(original, index, way):
    text = {
        "end of line": f"{line_of(POISON)}\n",
        "part of the prompt": "cashier skims 9 of 40",
        "part of the response": "<think>40-9=31",
        "gold answer": '"value":"31"',
        "digest": digest_of(POISON)[:10],
    }[way]

    asked = by_row(index, original.store, text)

    assert [digest_of(POISON)] == asked.rows.to_pylist()


def test_every_row_of_a_model_is_summed_over_the_stages_behind_it(original, index):
    trace, rows = trace_model(index, [original.refs[SECOND].statement], show=3)

    demonstrations = table(original, "old/curated", DEMONSTRATIONS, Demonstration)[1:]
    expected = expected_advantage(original, "old") | expected_advantage(original, "new")
    by_row_and_item = {
        (row["source_row"], row["item"]): row["advantage"] for row in rows.to_pylist()
    }
    assert expected == {key[0]: value for key, value in by_row_and_item.items() if value}
    assert {row.source_row for row in demonstrations} | expected.keys() == {
        row for row, _ in by_row_and_item
    }
    assert trace.rows == len({row for row, _ in by_row_and_item})
    assert sorted(expected.values(), reverse=True)[:3] == [row.advantage for row in trace.top]
    assert ["ingest/base", "sft/reasoning", "merge", "rl/one", "rl/retrain", "release"] == [
        made.stage for made in trace.made_of
    ]


def test_a_model_knows_what_was_made_from_it(original, index):
    trace, _ = trace_model(index, [original.refs["rl/one of merged"].statement], show=1)

    assert {original.refs[name].digest for name in (FIRST, SECOND)} < {
        made.checkpoint for made in trace.made_from
    }
    assert {"", "shop"} == {made.release for made in trace.made_from}


def test_a_row_that_only_chose_the_checkpoint_changed_no_weights(original, index):
    first = table(original, "old/curated", DEMONSTRATIONS, Demonstration)[0]

    trace = trace_rows(index, by_row(index, original.store, first.source_row), show=5)

    (validated,) = [use for use in trace.uses if use.stage == "sft/reasoning"]
    assert ("validation", False) == (validated.outcome, validated.trained)
    assert "tuned" not in touched(original, trace)


def test_a_surplus_prompt_touched_nothing_but_is_shown(original, index):
    surplus = table(original, "new/graded", GRADED, GradedProblem)[2]

    trace = trace_rows(index, by_row(index, original.store, surplus.source_row), show=5)

    assert {("surplus", False)} == {(use.outcome, use.trained) for use in trace.uses}
    assert () == trace.checkpoints


def test_a_held_out_row_trained_nothing_and_names_its_evaluations(original, index):
    held_out = table(original, "old/curated", HELD_OUT, Problem)[0]

    trace = trace_rows(index, by_row(index, original.store, held_out.source_row), show=5)

    evaluated = {index.graph.statements[digest].stage for digest in trace.evaluations}
    assert ((), {"evaluate/shop"}) == (trace.checkpoints, evaluated)


def test_a_file_is_followed_by_path_name_or_digest(original, index):
    path = original.outside / "new.jsonl"

    traces = [
        trace_rows(index, by_file(index, name), show=2)
        for name in (str(path), "new.jsonl", sha256_file(path)[:12])
    ]

    assert [len(NEW)] * 3 == [trace.rows for trace in traces]
    expected = {"rl/retrain of rl/one of merged", SECOND, "rl/one of base", OTHER}
    assert [expected] * 3 == [touched(original, trace) for trace in traces]


def test_a_source_and_a_verifier_reach_what_their_rows_reach(original, index):
    source = trace_rows(index, by_source(index, "gsm8k"), show=1)
    verifier = trace_rows(index, by_verifier(index, "final_answer"), show=1)
    version = trace_rows(index, by_verifier(index, "final_answer@rlretrain"), show=1)

    assert len(OLD) + len(NEW) == source.rows
    assert touched(original, source) == touched(original, verifier) | {"tuned", "merged"}
    assert {"rl/retrain of rl/one of merged", SECOND} == touched(original, version)


@pytest.mark.parametrize("name", ["http", "ternary", "http://judge.example/v1"])
def test_a_judge_reaches_the_phases_it_scored_and_what_follows(original, index, name):
    trace = trace_rows(index, by_judge(index, name), show=1)

    assert {"rl/retrain of rl/one of merged", SECOND} == touched(original, trace)


def test_a_trace_survives_json(original, index):
    trace = trace_rows(index, by_row(index, original.store, digest_of(POISON)), show=5)

    assert digest_of(POISON) in json.loads(trace.model_dump_json())["asked"]
    assert trace == type(trace).model_validate_json(trace.model_dump_json())


def test_a_row_about_which_people_decided_says_who_when_and_what(shop):
    problem, *_ = table(shop, "new/curated", PROBLEMS, Problem)
    decided = AppliedDecision(
        problem=problem.id,
        source="gsm8k",
        source_row=problem.source_row,
        decision="correct",
        gold='{"value":"1"}',
        correction='{"value":"48"}',
        by="Ana",
        at="2026-01-02T03:04:05+00:00",
    )
    with shop.stage("curate", MergeSettings()) as record, record.output("curated") as out:
        write_table(out / DECISIONS, AppliedDecision, [decided])
    index = open_index(shop.store, shop.place)

    trace = trace_rows(index, by_row(index, shop.store, problem.source_row), show=5)

    said = 'by Ana at 2026-01-02T03:04:05+00:00: {"value":"1"} became {"value":"48"}'
    (found,) = [one for one in trace.outcomes if one.kind == "decision"]
    assert (problem.id, "correct", said) == (found.item, found.reason, found.detail)
