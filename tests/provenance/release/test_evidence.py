"""Training rows that repeat held-out problems, and generated tokens that trained nothing."""

from pathlib import Path

import pytest

from data_schemas.arrow import write_table
from data_schemas.ledgers import GroupOutcome, LedgerRow, TokenUse
from data_schemas.rows import (
    OUTSIDE,
    TRAINED_TOKENS,
    Demonstration,
    Message,
    MixReport,
    Problem,
    Role,
)
from data_schemas.statements import Input, Output, Statement
from tasks.provenance.release.evidence import contamination, practised, verifiers, waste
from tasks.store.files import canonical_json, write_bytes
from tasks.store.local import new_object
from tests.records import filled, problem_of


def problem(name: str, text: str, row: str) -> Problem:
    return problem_of(text, '{"value":"7"}', id=name, source_row=row)


def demonstration(text: str, row: str) -> Demonstration:
    return filled(
        Demonstration,
        id=row,
        messages=(Message(role=Role.USER, content=text),),
        response="7",
        source_row=row,
    )


def ledger_row(
    step: int,
    generated: int,
    trained: int,
    problem: str = "a",
    outcome: GroupOutcome = GroupOutcome.NON_ZERO_VARIANCE,
) -> LedgerRow:
    return filled(
        LedgerRow,
        step=step,
        problem_id=problem,
        outcome=outcome,
        prompt_tokens=3,
        generated_tokens=generated,
        trained_tokens=trained,
    )


def statement(store: Path, stage: str, tables: dict, role: str = "curated") -> Statement:
    with new_object(store) as (folder, committed):
        for name, rows in tables.items():
            if name.endswith(".json"):
                write_bytes(folder / name, canonical_json(rows))
            else:
                write_table(folder / name, type(rows[0]), rows)
    output = Output(role=role, uri=committed.uri, digest=committed.digest)
    return filled(Statement, stage=stage, outputs=(output,))


@pytest.mark.parametrize(
    ("text", "row", "repeated"),
    [
        ("another question", "r9", ()),
        ("what is 3 + 4?", "r9", ("h",)),  # the same prompt
        ("another question", "r1", ("h",)),  # the same raw row
    ],
)
@pytest.mark.parametrize("table", ["problems.parquet", "demonstrations.parquet"])
def test_a_training_row_repeats_a_held_out_problem_by_row_or_prompt(
    tmp_path, text, row, repeated, table
):
    held_out = [problem("h", "what is 3 + 4?", "r1"), problem("i", "what is 5?", "r2")]
    rows = [demonstration(text, row)] if "demo" in table else [problem("p", text, row)]
    # The training rows may come from a later curation than the held-out problems.
    chain = {
        "1": statement(tmp_path, "curate", {"held_out.parquet": held_out}),
        "2": statement(tmp_path, "curate", {table: rows}),
    }
    found = contamination(chain, tmp_path)

    assert found is not None
    assert (2, 1, repeated) == (found.held_out, found.training_rows, found.repeated)


def test_what_a_night_holds_out_of_its_rows_is_no_training_row_of_the_next(tmp_path):
    new, kept = problem("new", "what is 3 + 4?", "r1"), problem("kept", "what is 5?", "r2")
    slice_ = new.model_copy(update={"id": "slice=2026-11/new"})
    first = statement(tmp_path, "curate", {"problems.parquet": [new, kept]})
    (curated,) = first.outputs
    read = Input(role="curated", uri=curated.uri, digest=curated.digest, statement="1")
    tables = {"held_out.parquet": [slice_], "problems.parquet": [kept]}
    mixed = statement(tmp_path, "mix", tables).model_copy(update={"inputs": (read,)})
    second = statement(tmp_path, "curate", {"held_out.parquet": [slice_]})

    found = contamination({"1": first, "2": mixed, "3": second}, tmp_path)
    assert found is not None
    assert (1, 1, ()) == (found.held_out, found.training_rows, found.repeated)

    careless = statement(tmp_path, "mix", tables | {"problems.parquet": [new, kept]})
    careless = careless.model_copy(update={"inputs": (read,)})
    found = contamination({"1": first, "2": careless, "3": second}, tmp_path)
    assert found is not None
    assert ("slice=2026-11/new",) == found.repeated

    # The set itself was trained on beside its mixture.
    past = statement(tmp_path, "sft/commerce", {}).model_copy(update={"inputs": (read,)})
    found = contamination({"1": first, "2": mixed, "3": second, "4": past}, tmp_path)
    assert found is not None
    assert ("slice=2026-11/new",) == found.repeated


def test_tasks_of_an_environment_repeat_each_other_only_if_they_are_the_same(tmp_path):
    first, second, again = (
        problem(name, "guess", "r1").model_copy(update={"verifier": OUTSIDE, "answer": answer})
        for name, answer in (("h", "1"), ("p", "2"), ("q", "1"))
    )
    for trained, repeated in ((second, ()), (again, ("h",))):
        tables = {"held_out.parquet": [first], "problems.parquet": [trained]}
        found = contamination({"1": statement(tmp_path / trained.id, "curate", tables)}, tmp_path)

        assert found is not None
        assert repeated == found.repeated


def test_the_tokens_of_all_phases_are_added_up(tmp_path):
    phases = {
        name: statement(tmp_path, name, {"ledger.parquet": [ledger_row(1, *tokens)]}, "report")
        for name, tokens in {"rl/one": (300, 100), "rl/two": (100, 50)}.items()
    }
    found = waste(phases, tmp_path)

    assert found is not None
    assert (400, 150, 0.375) == (found.generated, found.trained, found.trained_share)
    assert found.token_efficiency is None
    assert {TokenUse.TRAINED: 150, TokenUse.NO_ADVANTAGE: 250} == {
        use: count for use, count in found.uses.items() if count
    }


def test_tokens_of_grading_are_in_the_account_of_waste(tmp_path):
    rows = {"ledger.parquet": [ledger_row(1, 300, 100)]}
    chain = {"1": statement(tmp_path, "rl/one", rows, "report")}
    chain["2"] = chain["1"].model_copy(
        update={"stage": "grade", "outputs": (), "facts": {"generated_tokens": 100}}
    )
    found = waste(chain, tmp_path)

    assert found is not None
    assert (400, 100, 0.25) == (found.generated, found.trained, found.trained_share)
    assert 100 == found.uses[TokenUse.GRADING]


def test_tokens_of_rl_are_compared_with_those_of_fine_tuning_before_it(tmp_path):
    rows = {"ledger.parquet": [ledger_row(1, 300, 100)]}
    chain = {"1": statement(tmp_path, "rl/one", rows, "report")}
    for name in ("sft/reasoning", "sft/commerce", "sft/general"):
        chain[name] = chain["1"].model_copy(
            update={"stage": name, "outputs": (), "facts": {TRAINED_TOKENS: 25}}
        )
    found = waste(chain, tmp_path)

    assert found is not None
    assert (50, 2.0) == (found.fine_tuned, found.token_efficiency)


def reading(made: Statement, *sources: Statement) -> Statement:
    inputs = tuple(
        Input(role="read", uri=output.uri, digest=output.digest, statement="")
        for source in sources
        for output in source.outputs
    )
    return made.model_copy(update={"inputs": inputs})


def test_what_rl_of_the_last_night_never_drew_it_did_not_train_on(tmp_path):
    offered = ["n1", "n2", "n3", "n4", "o1", "o2"]
    counts = MixReport(
        fresh=4, replayed=2, held_out=0, added=0, slice="", demonstrations=5, practised=0,
        parents={}, refused={},
    )  # fmt: skip
    tables = {"replayed.json": ["o1", "o2"], "mix.json": counts}
    graded = {"graded.parquet": [problem(name, name, name) for name in offered]}
    idle, skipped, taught = (
        GroupOutcome.ZERO_VARIANCE_IDLE,
        GroupOutcome.SKIPPED_ZERO_VARIANCE,
        GroupOutcome.ZERO_VARIANCE_TRAINED,
    )
    drawn = [
        ledger_row(1, 8, 8, "n1"),
        ledger_row(1, 8, 0, "n2", idle),
        ledger_row(2, 8, 0, "n3", taught),
        ledger_row(3, 8, 0, "n3", skipped),
        ledger_row(3, 8, 8, "o1"),
    ]
    night = statement(tmp_path, "mix", tables)
    grade = reading(statement(tmp_path, "grade", graded), night)
    phase = reading(statement(tmp_path, "rl/retrain", {"ledger.parquet": drawn}, "report"), grade)
    before = statement(tmp_path, "mix", tables | {"replayed.json": offered})

    found = practised({"0": before, "1": night, "2": grade, "3": phase}, tmp_path)

    assert found is not None
    assert "RL trained on 2 of 4 new and 1 of 2 old problems" == found.explain()

    tuned = reading(statement(tmp_path, "sft/commerce", {}), night)
    tuned = tuned.model_copy(update={"facts": {TRAINED_TOKENS: 25}})
    found = practised({"1": night, "2": tuned}, tmp_path)

    assert found is not None
    assert (0, 5) == (found.new, found.demonstrations)


def test_what_a_chain_does_not_have_is_unknown(tmp_path):
    assert contamination({}, tmp_path) is None
    assert practised({}, tmp_path) is None
    assert waste({}, tmp_path) is None


def test_the_verifiers_of_a_release_are_those_of_all_its_problems(tmp_path):
    one, other, own = (
        problem(name, f"what is {name}?", name).model_copy(update={"verifier": verifier})
        for name, verifier in (("1", "choice"), ("2", "final_answer"), ("3", "my.py:mine"))
    )
    chain = {
        "1": statement(tmp_path, "curate", {"problems.parquet": [one], "held_out.parquet": [own]}),
        "2": statement(tmp_path, "mix", {"problems.parquet": [other, one]}),
        "3": statement(tmp_path, "grade", {"graded.parquet": [one]}),
    }

    assert {"choice", "final_answer", "my.py:mine"} == verifiers(chain, tmp_path)
    assert frozenset() == verifiers({}, tmp_path)
