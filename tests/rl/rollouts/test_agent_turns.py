import dataclasses

import numpy as np
import pytest

from data_schemas.ledgers import AgentLedgerRow, GroupOutcome
from data_schemas.rl_settings import EngineSettings, RewardSettings, RouterReplay
from data_schemas.rollouts import SOLVER, AgentTurn
from data_schemas.rows import Message, Role
from data_schemas.verdicts import abstain, scored
from tasks.engines.chat import load_tokenizer
from tasks.engines.embedded.rollout import HFRolloutEngine
from tasks.engines.scripted import ScriptedRolloutEngine
from tasks.provenance.ledger.accounts import settle
from tasks.rl import state
from tasks.rl.batch import build
from tasks.rl.collector import Collector
from tasks.rl.ledger import ledger_rows, prompt_costs
from tasks.rl.recipe import Recipe, TurnLimits, TurnRewards

VERIFIER, CORRECTOR = "verifier", "corrector"
NEXT = {SOLVER: VERIFIER, VERIFIER: CORRECTOR}


@dataclasses.dataclass(frozen=True)
class Chain:
    """A solver's first response is verified, the verifier's first one corrected."""

    pipelined: bool = True
    quotas: dict = dataclasses.field(default_factory=dict)
    max_input_tokens: int = 10_000
    agents = (SOLVER, VERIFIER, CORRECTOR)

    @property
    def limits(self):
        return TurnLimits(self.agents, self.max_input_tokens, self.pipelined, self.quotas)

    def first_turn(self, key, root, memory):
        return None

    def next_turns(self, key, root, entry):
        agent = NEXT.get(entry.turn.agent if entry.turn else SOLVER)
        if agent is None:
            return []
        first = entry.group.rollouts[0]
        asked = Message(role=Role.USER, content=f"{agent} of {first.text}")
        turn = AgentTurn(
            agent=agent,
            number=1 + (entry.turn.number if entry.turn else 0),
            root=root.id,
            parent=key,
            parent_sample=0,
            parent_response=first.text,
            parent_solved=first.verdict.solved,
            parent_abstained=first.verdict.abstained,
            problem=root.model_copy(update={"messages": (asked,)}),
        )
        named = turn.problem.model_copy(update={"id": f"{root.id}#{turn.key}"})
        return [turn.model_copy(update={"problem": named})]

    def reward(self, groups, memory):
        return TurnRewards(groups, metrics={"chain/groups": float(len(groups))})


def says(prompt, sample):
    return str(sample) * (1 + (len(prompt) + sample * sample) % 5)


@pytest.fixture
def collector(settings, problems, tiny_moe, scorer):
    """A collector of scripted responses, or of the tiny model's with `engine`."""

    def build_one(recipe, rule=None, start=None, engine=None, **changes):
        tokenizer = load_tokenizer(tiny_moe)
        if engine is None:
            engine = ScriptedRolloutEngine(tokenizer, says)
            changes |= {"router_replay": RouterReplay.OFF}
        judge = scorer(rule) if rule else scorer()
        asked = settings.model_copy(update=changes)
        return Collector(asked, engine, tokenizer, judge, problems, start, Recipe(turns=recipe))

    return build_one


def agents(collected):
    return [entry.turn.agent if entry.turn else SOLVER for entry in collected.groups]


def tree(steps):
    """Every group's tokens and verdicts, by its key."""
    return {
        entry.turn.key: [
            (i.rollout.response_tokens.tolist(), i.verdict) for i in entry.group.rollouts
        ]
        for collected in steps
        for entry in collected.groups
        if entry.turn
    }


def test_a_turn_waits_for_the_next_step_which_mixes_it_with_fresh_prompts(collector):
    mixed = collector(Chain())

    first, second, third = (mixed.collect(step) for step in (1, 2, 3))

    assert {SOLVER} == {*agents(first)}
    assert {SOLVER, VERIFIER} == {*agents(second)}
    assert {*Chain.agents} == {*agents(third)}
    begun = sum(entry.turn is None for entry in first.groups)
    assert begun == agents(second).count(VERIFIER)
    assert {"verifier"} == {
        item.rollout.role for entry in second.groups if entry.turn for item in entry.group.rollouts
    }


def test_without_pipelining_a_step_takes_the_whole_chain(collector):
    found = collector(Chain(pipelined=False)).collect(1)

    counts = [agents(found).count(agent) for agent in Chain.agents]
    assert counts[0] > 0
    assert [counts[0]] * 3 == counts


def test_a_turn_has_the_same_responses_whenever_it_is_taken(collector, tiny_moe):
    """The weights are frozen here: they would be newer in a later step."""

    def steps(pipelined, number):
        engine = HFRolloutEngine(tiny_moe)
        one = collector(Chain(pipelined=pipelined), engine=engine)
        return [one.collect(step) for step in range(1, number + 1)]

    at_once, later = tree(steps(pipelined=False, number=2)), tree(steps(pipelined=True, number=4))

    assert at_once
    assert at_once == {key: later[key] for key in at_once}


def test_quotas_bound_a_step_and_the_rest_waits(collector):
    scarce = collector(Chain(quotas={VERIFIER: 2}))

    steps = [scarce.collect(step) for step in range(1, 5)]

    taken = [agents(found).count(VERIFIER) for found in steps]
    assert [0, 2, 2, 2] == taken
    assert sum(entry.turn is None for found in steps for entry in found.groups) - 6 == len(
        [turn for turn in scarce.state().turns if turn.agent is VERIFIER]
    )
    assert float(len(scarce.state().turns)) == sum(
        steps[-1].metrics[f"agent/{agent}_waiting_turns"] for agent in Chain.agents
    )


def test_quotas_bound_a_step_of_whole_chains_too(collector):
    found = collector(Chain(pipelined=False, quotas={VERIFIER: 1})).collect(1)

    assert [1, 1] == [agents(found).count(agent) for agent in (VERIFIER, CORRECTOR)]


def test_records_curriculum_and_stream_see_solvers_only(collector, problems):
    plain, mixed = collector(None), collector(Chain())
    for step in (1, 2, 3):
        plain.collect(step)
        mixed.collect(step)

    ours, theirs = mixed.state(), plain.state()
    assert theirs.records == ours.records
    assert theirs.stage == ours.stage
    assert theirs.position == ours.position
    assert {problem.id for problem in problems} >= ours.records.keys()


def test_turns_take_no_place_of_a_prompt_in_the_batch(collector):
    mixed = collector(Chain())
    mixed.collect(1)

    found = mixed.collect(2)

    turns = [entry for entry in found.groups if entry.turn]
    assert turns
    assert GroupOutcome.SURPLUS not in {entry.outcome for entry in turns}
    assert 3 == sum(entry.turn is None for entry in found.trained)


def test_the_child_of_an_abstained_response_abstains_and_is_counted_once(collector):
    def first_is_lost(problem, response):
        if "#" not in problem.id and response.startswith("0"):
            return abstain("timeout")
        return scored(float(len(response) % 2 == 0), "rule")

    # A quarter of the solver's responses is allowed, and no more of the others'.
    rewards = RewardSettings(max_abstained_share=0.25)
    mixed = collector(Chain(), first_is_lost, rewards=rewards)
    found = [mixed.collect(step) for step in (1, 2, 3)][-1]

    for entry in found.groups:
        if entry.turn:
            verdicts = {item.verdict.reason for item in entry.group.rollouts}
            assert {"parent_abstained"} == verdicts
            assert GroupOutcome.UNSCORED is entry.outcome
    assert {*Chain.agents} == {*agents(found)}


def test_an_input_that_is_too_long_is_left_out_and_counted(collector):
    short = collector(Chain(max_input_tokens=5))
    found = short.collect(1)

    assert () == short.state().turns
    assert float(len(found.groups)) == found.metrics["agent/too_long_count"]


def test_waiting_turns_and_turns_in_segments_come_back_from_the_state(collector, problems):
    changes = {"engines": EngineSettings(segment_tokens=3)}
    whole = collector(Chain(), **changes)
    for step in (1, 2, 3):
        whole.collect(step)
    data = state.encode(state.PendingState(whole.state(), ()))
    back = state.decode(data, problems)
    half = collector(Chain(), start=back.collector, **changes)

    assert data == state.encode(back)
    assert any(group.turn for group in back.collector.open_groups)
    assert back.collector.turns
    for step in (4, 5, 6):
        ours, theirs = half.collect(step), whole.collect(step)
        assert tree([theirs]) == tree([ours])
        assert theirs.metrics == ours.metrics


def test_a_step_that_waits_for_the_trainer_comes_back_with_its_turns(collector, problems):
    mixed = collector(Chain())
    mixed.collect(1)
    found = mixed.collect(2)
    data = state.encode(state.PendingState(mixed.state(), (found,)))

    (back,) = state.decode(data, problems).waiting

    assert [entry.turn for entry in found.groups] == [entry.turn for entry in back.groups]
    assert tree([found]) == tree([back])


def test_every_turn_is_charged_to_its_agent_and_its_problem(collector, problems):
    mixed = collector(Chain())
    steps = [mixed.collect(step) for step in (1, 2, 3)]
    rows, costs, generated = [], [], 0.0
    for found in steps:
        batch = build(mixed._settings, found.trained)
        advantages_NT = batch.advantages_N[:, None] * batch.tokens.response_NT
        rows += ledger_rows(found, batch, advantages_NT, {})
        costs += prompt_costs(found)
        generated += found.metrics["rollout/engine_tokens"]

    ledger = settle(rows, costs)
    of_agents = [row for row in rows if isinstance(row, AgentLedgerRow)]
    assert {VERIFIER, CORRECTOR} == {row.agent for row in of_agents}
    assert {row.problem_id for row in rows} <= {problem.id for problem in problems}
    assert generated == sum(row.generated_tokens for row in rows)
    assert np.isclose(
        generated,
        sum(
            found.metrics[f"agent/{agent}_generated_tokens"]
            for found in steps
            for agent in Chain.agents
        ),
    )
    # A verifier's verdicts are not the pass rate of a prompt.
    accounts = {prompt.problem_id for prompt in ledger.prompts}
    assert any(name.endswith("#verifier") for name in accounts)
    prompts = [prompt for prompt in ledger.prompts if "#" not in prompt.problem_id]
    solved = sum(row.solved for row in rows if not isinstance(row, AgentLedgerRow))
    assert solved == sum(prompt.solved for prompt in prompts)
