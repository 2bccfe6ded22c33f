import random

import pytest

from data_schemas.ledgers import SKIPPED, GroupOutcome, LedgerRow, PromptCost, TokenUse
from data_schemas.rows import Domain
from tasks.errors import DataError
from tasks.provenance.ledger.accounts import STAGES, check_conservation, settle, to_csv


def row(problem_id="a", outcome=GroupOutcome.NON_ZERO_VARIANCE, **changes):
    values = {
        "step": 1,
        "round": 0,
        "problem_id": problem_id,
        "domain": Domain.MATHS,
        "outcome": outcome,
        "rollouts": 4,
        "prompt_tokens": 10,
        "generated_tokens": 100,
        "draft_tokens": 0,
        "saved_tokens": 0,
        "trained_tokens": 80,
        "solved": 1,
        "abstained": 0,
        "mean_score": 0.25,
        "advantage_mass": 50.0,
        "pass_rate_change": 0.25,
    }
    return LedgerRow(**(values | changes))


def skipped(problem_id="a", step=2):
    nothing = dict.fromkeys(
        ("rollouts", "prompt_tokens", "generated_tokens", "trained_tokens", "solved"), 0
    )
    gone = {"advantage_mass": 0.0, "pass_rate_change": 0.0, "saved_tokens": 40}
    return row(problem_id, GroupOutcome.SKIPPED_ZERO_VARIANCE, step=step, **nothing, **gone)


def cost(problem_id="a", step=1):
    return PromptCost(
        step=step,
        round=0,
        problem_id=problem_id,
        engine_seconds=2.0,
        verifier_seconds=0.5,
        judge_calls=3,
    )


ROWS = [
    row("a"),
    skipped("a"),
    row("a", step=3, solved=3, pass_rate_change=0.5),
    row(
        "b",
        GroupOutcome.SURPLUS,
        solved=4,
        trained_tokens=0,
        advantage_mass=0.0,
        pass_rate_change=0.0,
    ),
]
COSTS = [cost("a"), cost("a", 3), cost("b")]


def test_a_prompts_account_adds_up_all_its_draws():
    first, last = settle(ROWS, COSTS).prompts

    assert ("a", 3, 1, 8, 4) == (
        first.problem_id,
        first.draws,
        first.skips,
        first.rollouts,
        first.solved,
    )
    assert (200, 40, 160) == (first.generated_tokens, first.saved_tokens, first.trained_tokens)
    assert (4.0, 1.0, 6) == (first.engine_seconds, first.verifier_seconds, first.judge_calls)
    assert (500.0, 0.75) == (first.earned_per_kilotoken, first.pass_rate_change)
    assert ("b", 0.0) == (last.problem_id, last.earned_per_kilotoken)


def test_the_stages_add_up_to_all_draws():
    account = settle(ROWS, COSTS)
    draws = {outcome.outcome: outcome.draws for outcome in account.outcomes}

    assert len(ROWS) == sum(draws.values())
    assert account.totals["generated_tokens"] == sum(f.generated_tokens for f in account.outcomes)
    assert 40 == account.totals["saved_tokens"] == sum(f.saved_tokens for f in account.outcomes)
    assert (2, 0) == (draws[GroupOutcome.NON_ZERO_VARIANCE], draws[GroupOutcome.UNSCORED])


def test_the_uses_add_up_to_the_generated_tokens():
    account = settle(ROWS, COSTS)

    assert {TokenUse.TRAINED: 160, TokenUse.NO_ADVANTAGE: 40, TokenUse.SURPLUS: 100} == {
        use: tokens for use, tokens in account.uses.items() if tokens
    }
    assert [*TokenUse] == [*account.uses]


def test_every_sum_is_what_adding_the_rows_one_by_one_gives():
    draw = random.Random(0)
    rows = [
        row(
            f"p{draw.randrange(20)}",
            draw.choice([*GroupOutcome]),
            generated_tokens=draw.randrange(10**6),
            abstained=draw.randrange(3),
            advantage_mass=1e3 * draw.random(),
            pass_rate_change=draw.uniform(-1, 1),
        )
        for _ in range(500)
    ]
    costs = [
        cost(f"p{draw.randrange(19)}").model_copy(update={"engine_seconds": draw.random()})
        for _ in range(500)
    ]

    account = settle([*rows, skipped("without a cost")], costs)

    assert 21 == len(account.prompts)
    for prompt in account.prompts[:-1]:
        mine = [row for row in rows if row.problem_id == prompt.problem_id]
        spent = [cost for cost in costs if cost.problem_id == prompt.problem_id]
        assert prompt.domain is Domain.MATHS
        assert (len(mine), sum(row.outcome in SKIPPED for row in mine)) == (
            prompt.draws,
            prompt.skips,
        )
        assert sum(row.generated_tokens for row in mine) == prompt.generated_tokens
        assert sum(row.rollouts - row.abstained for row in mine) == prompt.scored
        assert sum(row.advantage_mass for row in mine) == prompt.advantage_mass
        assert sum(row.pass_rate_change for row in mine) == prompt.pass_rate_change
        assert sum(cost.engine_seconds for cost in spent) == prompt.engine_seconds
        assert sum(cost.judge_calls for cost in spent) == prompt.judge_calls
    assert (0, 0, 40) == (
        account.prompts[-1].engine_seconds,
        account.prompts[-1].judge_calls,
        account.prompts[-1].saved_tokens,
    )
    ended = {outcome: [row for row in rows if row.outcome is outcome] for outcome in GroupOutcome}
    for one in account.outcomes:
        assert sum(row.advantage_mass for row in ended[one.outcome]) == one.advantage_mass
        assert sum(row.generated_tokens for row in ended[one.outcome]) == one.generated_tokens
    earned = sum(prompt.advantage_mass for prompt in account.prompts)
    assert earned == account.totals["advantage_mass"]
    assert float(sum(row.generated_tokens for row in rows)) == account.totals["generated_tokens"]


def test_the_file_has_a_line_per_prompt():
    lines = to_csv(settle(ROWS, COSTS).prompts).decode().splitlines()

    assert lines[0].startswith("problem_id,domain,draws")
    assert ["a,maths", "b,maths"] == [",".join(line.split(",")[:2]) for line in lines[1:]]


def test_every_group_outcome_belongs_to_exactly_one_stage():
    listed = [outcome for outcomes in STAGES.values() for outcome in outcomes]

    assert sorted(GroupOutcome) == sorted(listed)


def test_the_table_of_group_sizes_uses_what_was_recorded():
    sizes = settle(ROWS, COSTS).sizes

    assert [4, 8, 16, 32] == [size.size for size in sizes]
    assert sizes[0].zero_variance > sizes[-1].zero_variance
    assert [] == settle([skipped("z")], []).sizes


def test_an_empty_ledger_and_a_stray_cost_are_refused():
    with pytest.raises(DataError, match="no prompt was drawn"):
        settle([], [])
    with pytest.raises(DataError, match="1 prompts have costs but no ledger row: c"):
        settle(ROWS, [cost("c")])


def test_a_token_nobody_was_charged_for_is_found():
    check_conservation(ROWS, 300)
    with pytest.raises(DataError, match="charges its prompts 300 tokens, the engine generated 301"):
        check_conservation(ROWS, 301)
