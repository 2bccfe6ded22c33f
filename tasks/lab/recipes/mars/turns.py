"""MarsRL (arXiv 2511.11373): solver, verifier, corrector, each rewarded for its own answer.

A chain is S, V, C, V, C: two of the solver's responses are verified, reports of an error are
corrected, and so on. Solver and corrector are scored against the problem's reference, the verifier
by whether its verdict is the true state of its input. A reward for the whole chain instead would
pay a solver for its corrector's work: of a chain with a report of an error, one of solution and
report is right, the other is not.
Differs: with two turns per problem, each of its two chains goes on by one response of its last
group, so that no chain waits for the other.
"""

from collections.abc import Sequence

from data_schemas.rl_settings import AnyRecipe, RLSettings
from data_schemas.rollouts import AgentTurn, ScoredRollout, turn_key
from data_schemas.rows import Message, Problem
from tasks.lab.recipes.mars import correctness
from tasks.lab.recipes.mars.choices import choose_reports, choose_solutions
from tasks.lab.recipes.mars.correctness import says_correct
from tasks.lab.recipes.mars.inputs import corrector_input, verifier_input
from tasks.lab.recipes.mars.settings import Agent, MarsRecipe, Spread
from tasks.rl.groups import CollectedGroup
from tasks.rl.recipe import Memory, Recipe, TurnLimits, TurnRewards
from tasks.rl.turns import agent_of
from tasks.store.files import canonical_json

CHAIN = (Agent.VERIFIER, Agent.CORRECTOR, Agent.VERIFIER, Agent.CORRECTOR)
"""Behind the solver: two rounds, as published."""
PAIR = 2
"""Responses that the next agent takes of a solver's group, as published."""
VERIFIER = correctness.NAME
"""Scores the verifier; solver and corrector have the problem's own verifier of answers."""


PLOTS = (
    *(
        (f"agent/{agent}_reward_mean", f"Reward of the {agent}", "mean score of its responses", 1.0)
        for agent in Agent
    ),
    ("mars/separation", "Verifier's separation", "accepted: right minus wrong, same problem", 1.0),
    ("mars/harmed_share", "Harm", "% of the right solutions reported, corrected to wrong", 100.0),
)


class Mars:
    """`AgentTurns` of solver, verifier and corrector."""

    def __init__(self, settings: MarsRecipe) -> None:
        self._settings = settings
        self.limits = TurnLimits(
            agents=tuple(Agent),
            max_input_tokens=settings.max_input_tokens,
            pipelined=settings.pipelined,
            quotas={agent.value: quota for agent, quota in settings.quotas.items()},
        )

    def first_turn(self, key: str, root: Problem, memory: Memory) -> None:
        """A prompt of the stream is the solver's."""

    def reward(self, groups: Sequence[CollectedGroup], memory: Memory) -> TurnRewards:
        """Every agent is rewarded by the verdict on its own response."""
        return TurnRewards(groups, metrics=self.metrics(groups))

    def next_turns(self, key: str, root: Problem, entry: CollectedGroup) -> list[AgentTurn]:
        """Make the next turns of a chain: none behind its last group, or without a report."""
        number = entry.turn.number if entry.turn else 0
        if number == len(CHAIN):
            return []
        agent, items = CHAIN[number], entry.group.rollouts
        every = entry.turn is None or self._settings.spread is Spread.PER_GROUP
        count, choice = PAIR if every else 1, self._settings.choice
        right = [None if i.verdict.abstained else i.verdict.solved for i in items]
        if agent == Agent.VERIFIER:
            places = choose_solutions(right, count, choice, key)
        else:
            errors = [says_correct(item.text) is False for item in items]
            places = choose_reports(errors, right, count, choice, key)
        return [self._turn(agent, key, root, entry, items[place]) for place in places]

    def _turn(
        self, agent: str, key: str, root: Problem, entry: CollectedGroup, item: ScoredRollout
    ) -> AgentTurn:
        sample = item.rollout.sample
        messages: tuple[Message, ...]
        if agent == Agent.VERIFIER:
            messages = verifier_input(root.messages, item.text)
            answer = canonical_json({"correct": item.verdict.solved}).decode()
            gold = {"verifier": VERIFIER, "answer": answer}
        else:
            assert entry.turn is not None
            messages = corrector_input(root.messages, entry.turn.parent_response, item.text)
            gold = {}
        name = f"{root.id}#{turn_key(key, agent, sample)}"
        return AgentTurn(
            agent=agent,
            number=entry.turn.number + 1 if entry.turn else 1,
            root=root.id,
            parent=key,
            parent_sample=sample,
            parent_response=item.text,
            parent_solved=item.verdict.solved,
            parent_abstained=item.verdict.abstained,
            problem=Problem.model_validate(
                root.model_dump(include=set(Problem.model_fields))
                | gold
                | {"id": name, "messages": messages}
            ),
        )

    def metrics(self, groups: Sequence[CollectedGroup]) -> dict[str, float]:
        """Measure what the verifier is given and says, and what the corrector does to it."""
        solved = [
            item.verdict.solved
            for entry in groups
            if agent_of(entry) == Agent.SOLVER
            for item in entry.group.rollouts
            if not item.verdict.abstained
        ]
        turns = [e for e in groups if e.turn is not None and not e.turn.parent_abstained]
        inputs = [e.turn.parent_solved for e in turns if e.turn and e.turn.number == 1]
        gaps = _separations(turns)
        repairs, harms = _changes(turns)
        return {
            "mars/solver_error_share": _share([not one for one in solved]),
            "mars/wrong_input_share": _share([not one for one in inputs]),
            "mars/separation": sum(gaps) / max(1, len(gaps)),
            "mars/separation_problems": float(len(gaps)),
            "mars/repaired_share": _share(repairs),
            "mars/harmed_share": _share(harms),
        }


def open_mars(settings: AnyRecipe, phase: RLSettings) -> Recipe:
    """Open the recipe (an `OpenRecipe`)."""
    recipe = MarsRecipe.model_validate(settings.model_dump())
    return Recipe(turns=Mars(recipe), verifiers=frozenset({VERIFIER}), plots=PLOTS)


def _separations(groups: Sequence[CollectedGroup]) -> list[float]:
    """P(accepts | right) - P(accepts | wrong) of every problem with inputs of both kinds.

    Over problems, a verifier that calls every hard problem's solution wrong would look good.
    """
    accepts: dict[str, dict[bool, list[bool]]] = {}
    for entry in groups:
        if entry.turn and entry.turn.agent == Agent.VERIFIER:
            acceptances = [says_correct(item.text) is True for item in entry.group.rollouts]
            of_root = accepts.setdefault(entry.turn.root, {True: [], False: []})
            of_root[entry.turn.parent_solved] += acceptances
    return [
        _share(by_kind[True]) - _share(by_kind[False])
        for by_kind in accepts.values()
        if by_kind[True] and by_kind[False]
    ]


def _changes(groups: Sequence[CollectedGroup]) -> tuple[list[bool], list[bool]]:
    """Return whether wrong solutions were repaired, and whether right ones were harmed.

    A corrector's input is a report of an error: its solution is right if the report is not.
    """
    repairs: list[bool] = []
    harms: list[bool] = []
    for entry in groups:
        if entry.turn and entry.turn.agent == Agent.CORRECTOR:
            solved = [item.verdict.solved for item in entry.group.rollouts]
            if entry.turn.parent_solved:
                repairs += solved
            else:
                harms += [not one for one in solved]
    return repairs, harms


def _share(values: Sequence[bool]) -> float:
    return sum(values) / max(1, len(values))
