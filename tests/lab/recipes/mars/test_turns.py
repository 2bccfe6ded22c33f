"""MarsRL's chains, alone and in a phase that is stopped and resumed."""

import dataclasses
import json
from pathlib import Path

import pytest
from flytekit import FlyteContextManager
from flytekit.core.type_engine import TypeEngine

from data_schemas.ledgers import AgentLedgerRow, GroupOutcome
from data_schemas.reports import LEDGER_FILE
from data_schemas.rl_settings import AnyRecipe, EngineSettings
from data_schemas.rollouts import RolloutGroup, ScoredRollout
from data_schemas.verdicts import abstain, scored
from tasks.formats.ledgers import read_ledger
from tasks.gym.table import VERIFIERS
from tasks.lab.recipes.mars import correctness
from tasks.lab.recipes.mars.settings import Agent, MarsRecipe, ResponseChoice, Spread
from tasks.lab.recipes.mars.turns import Mars
from tasks.platform import literals
from tasks.rl import state, step_snapshot
from tasks.rl.groups import CollectedGroup
from tasks.rl.phase import Phase, finish, train, verifiers_in_use
from tasks.rl.recipe import open_recipe
from tasks.rl.replay.recompute import compare
from tasks.store.manifest import folder_manifest
from tests.records import problem_of

ROOT = problem_of("2 + 2?", '{"value":"4"}', id="sums/1", source="sums")
STEPS = 4
AGENTS = (Agent.SOLVER, Agent.VERIFIER, Agent.CORRECTOR)
VECTORS = Path(__file__).parent / "vectors.json"
PUBLISHED = json.loads(VECTORS.read_text())["groups_per_problem"]


@pytest.fixture
def group(make_rollout):
    """A settled group: the problem's own verifier scores the texts."""

    def make(texts, turn=None, lost=()):
        problem = turn.problem if turn else ROOT
        items = tuple(
            ScoredRollout(
                make_rollout(sample),
                text,
                abstain("timeout")
                if sample in lost
                else VERIFIERS[problem.verifier](problem, text),
                0.0,
            )
            for sample, text in enumerate(texts)
        )
        whole = RolloutGroup(problem, items)
        return CollectedGroup(whole, 0, GroupOutcome.NON_ZERO_VARIANCE, turn=turn)

    return make


SOLUTIONS = ("4", "5", "4", "6")
REPORTS = (
    "Correctness: Wrong",
    "Correctness: Correct",
    "no verdict",
    "It is 4.\nCorrectness: Wrong",
)


def chain(group, settings):
    """Play all turns behind one group of the solver; return the groups of every turn."""
    recipe, waiting, found = Mars(settings), [("1.0.0", group(SOLUTIONS))], []
    while waiting:
        key, entry = waiting.pop(0)
        for turn in recipe.next_turns(key, ROOT, entry):
            said = REPORTS if turn.agent == Agent.VERIFIER else SOLUTIONS
            waiting.append((turn.key, group(said, turn)))
            found.append(waiting[-1][1])
    return found


@pytest.mark.parametrize(
    ("spread", "groups"), [("per_problem", [2, 2, 2, 2]), ("per_group", [2, 4, 8, 16])]
)
def test_a_problem_has_as_many_groups_as_published(group, spread, groups):
    found = chain(group, MarsRecipe(spread=Spread(spread)))

    assert groups == [sum(e.turn.number == n for e in found) for n in (1, 2, 3, 4)]
    assert [Agent.VERIFIER, Agent.CORRECTOR] * 2 == [
        next(e.turn.agent for e in found if e.turn.number == n) for n in (1, 2, 3, 4)
    ]
    assert len(found) == len({e.turn.key for e in found}) == len({e.turn.problem.id for e in found})


@pytest.mark.parametrize("spread", Spread)
def test_every_agent_is_paid_for_its_own_answer(group, spread):
    """A reward for the whole chain would pay one of solution and report for the other's work."""
    for entry in chain(group, MarsRecipe(spread=spread)):
        scores = [item.verdict.score for item in entry.group.rollouts]
        if entry.turn.agent == Agent.CORRECTOR:
            assert [1.0, 0.0, 1.0, 0.0] == scores
            # Its report was of an error: right if, and only if, the solution was wrong.
            (solution,) = [
                line.removeprefix("Solution: ")
                for line in entry.turn.problem.messages[-1].content.splitlines()[:1]
            ]
            assert entry.turn.parent_solved is (solution != "4")
        else:
            right = float(entry.turn.parent_solved)
            assert [1.0 - right, right, 0.0, 1.0 - right] == scores


def test_the_verifier_sees_a_solution_and_the_corrector_its_findings(group):
    first, second = (
        next(e.turn for e in chain(group, MarsRecipe()) if e.turn.number == n) for n in (1, 2)
    )

    assert "Solution: 4" == first.problem.messages[-1].content
    assert {"correct": True} == {"correct": '"correct":true' in first.problem.answer}
    assert ("1.0.0", 0, "4") == (first.parent, first.parent_sample, first.parent_response)
    assert second.problem.messages[-1].content.startswith("Solution: ")
    assert ROOT.answer == second.problem.answer
    assert ROOT.id == first.root == second.root


def test_without_a_report_of_an_error_a_chain_ends(group):
    recipe = Mars(MarsRecipe())
    (turn, *_) = recipe.next_turns("1.0.0", ROOT, group(SOLUTIONS))

    assert [] == recipe.next_turns(turn.key, ROOT, group(["Correctness: Correct", "?"], turn))


def test_a_turn_knows_that_its_parent_abstained(group):
    recipe = Mars(MarsRecipe(choice=ResponseChoice.RANDOM))

    turns = recipe.next_turns("1.0.0", ROOT, group(SOLUTIONS, lost=range(4)))

    assert [True, True] == [turn.parent_abstained for turn in turns]


def test_separation_is_measured_on_the_same_problem(group):
    """A verifier that rejects whatever is said about a hard problem has none."""
    recipe = Mars(MarsRecipe())
    turns = recipe.next_turns("1.0.0", ROOT, group(SOLUTIONS))
    assert [True, False] == [turn.parent_solved for turn in turns]
    rejects = [group(["Correctness: Wrong"] * 4, turn) for turn in turns]
    sees = [
        group([f"Correctness: {'Correct' if turn.parent_solved else 'Wrong'}"] * 4, turn)
        for turn in turns
    ]

    assert 0.0 == recipe.metrics(rejects)["mars/separation"]
    assert 1.0 == recipe.metrics(sees)["mars/separation"]
    assert 0.0 == recipe.metrics(sees[:1])["mars/separation_problems"]


def test_harm_and_repair_are_measured_apart(group):
    found = chain(group, MarsRecipe())

    metrics = Mars(MarsRecipe()).metrics([group(SOLUTIONS), *found])

    names = ("solver_error_share", "wrong_input_share", "repaired_share", "harmed_share")
    assert [0.5] * 4 == [metrics[f"mars/{name}"] for name in names]


@pytest.mark.parametrize(
    "quotas", [{"solver": 1}, {"verifier": 0}], ids=["of the solver", "of nothing"]
)
def test_quotas_that_make_no_sense_are_refused(quotas):
    with pytest.raises(ValueError, match="quotas takes verifier and corrector"):
        MarsRecipe.model_validate({"quotas": quotas})


def judged(problem, response):
    """Half of all verdicts are right, half of all solutions; the tiny model writes noise."""
    return scored(float((len(response) + len(problem.id)) % 2 == 0), "rule")


@pytest.fixture
def phase(phase_in, scorer):
    """The tiny model says nothing that is a verdict, so every V reports an error here."""

    class Reporting(Mars):
        def next_turns(self, key, root, entry):
            if entry.turn and entry.turn.agent == Agent.VERIFIER:
                said = tuple(
                    dataclasses.replace(item, text="Correctness: Wrong")
                    for item in entry.group.rollouts
                )
                entry = dataclasses.replace(
                    entry, group=dataclasses.replace(entry.group, rollouts=said)
                )
            return super().next_turns(key, root, entry)

    def run(folder, steps=None, **changes):
        plain = phase_in(folder, prompts_per_step=2, **changes)
        recipe = open_recipe(MarsRecipe(), plain.settings)
        recipe = dataclasses.replace(recipe, turns=Reporting(MarsRecipe()))
        asked = dataclasses.replace(plain, recipe=recipe)
        records = train(asked, scorer(judged))
        for _ in zip(range(steps or STEPS), records, strict=False):
            pass
        return asked

    return run


MODES = {"synchronous": {}, "one step off": {"engines": EngineSettings(staleness=1)}}


def left_behind(phase, out):
    (out / "m").mkdir(parents=True)
    (out / "r").mkdir()
    facts = finish(phase, out / "m", out / "r")
    kept = [folder_manifest(phase.state / step_snapshot.FOLDER), folder_manifest(out / "m")]
    reports = [r.report for r in state.read_steps(phase.state, STEPS)]
    return kept, reports, facts, (out / "r" / LEDGER_FILE).read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("changes", MODES.values(), ids=MODES)
def test_a_phase_stopped_with_waiting_turns_ends_in_the_same_bytes(phase, tmp_path, changes):
    whole = left_behind(phase(tmp_path / "whole", **changes), tmp_path / "one")
    phase(tmp_path / "half", steps=2, **changes)

    resumed = left_behind(phase(tmp_path / "half", **changes), tmp_path / "two")

    assert whole == resumed
    metrics = whole[1][-1].metrics
    assert all(metrics[f"agent/{agent}_groups"] > 0 for agent in AGENTS)
    assert whole[2]["engine_tokens"] == whole[2]["generated_tokens"]
    rows = read_ledger(tmp_path / "one" / "r" / LEDGER_FILE)
    assert {*AGENTS} == {row.agent for row in rows if isinstance(row, AgentLedgerRow)}


@pytest.mark.slow
def test_a_step_of_several_agents_is_recomputed_from_its_snapshot(phase, tmp_path):
    done = phase(tmp_path)
    last = step_snapshot.find_snapshots(done.state, STEPS)[-1]

    back = step_snapshot.decode(last.read_bytes())

    assert last.read_bytes() == step_snapshot.encode(back)
    roles = {item.rollout.role for entry in back.groups for item in entry.group.rollouts}
    assert {*AGENTS} == roles
    assert [] == [row for row in compare(back) if row.difference]


def test_the_canaries_of_the_recipe_are_checked_too(phase_in, tmp_path):
    plain: Phase = phase_in(tmp_path)

    with_agents = dataclasses.replace(plain, recipe=open_recipe(MarsRecipe(), plain.settings))

    assert {"final_answer"} == verifiers_in_use(plain)
    assert {"final_answer", correctness.NAME} == verifiers_in_use(with_agents)


def test_its_settings_reach_the_loop_as_those_of_any_recipe():
    asked = MarsRecipe(choice=ResponseChoice.RANDOM, quotas={Agent.VERIFIER: 2})
    literals.register()
    context = FlyteContextManager.current_context()
    literal = TypeEngine.to_literal(
        context, asked, MarsRecipe, TypeEngine.to_literal_type(MarsRecipe)
    )
    found = TypeEngine.to_python_value(context, literal, AnyRecipe)

    assert asked == MarsRecipe.model_validate(found.model_dump())
    assert asked.implementation == found.implementation
