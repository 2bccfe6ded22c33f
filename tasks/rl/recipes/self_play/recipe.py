"""SPELL (arXiv 2509.23863): a policy asks questions, answers them and compares the answers.

    questioner   two new documents of a cluster and its last three solvable questions -> a question
                 with an answer; one a draw, the tasks in turn
    closed book  the question without documents, once: who can answer it has guessed it
    responder    the question with all documents of the cluster, a whole group
    verifier     question, reference and an answer, a whole group: do they mean the same?

A step takes whole chains, so that all of a reward is known at its end (`rewards.py`).
Differs: equal answers to a question are one input of the verifier, so they share its votes. The
published loop draws up to ten times until 128 questions have contrast; here a step draws once.
"""

import hashlib
import random
from collections.abc import Mapping, Sequence

from data_schemas.agent_turns import Agent, AgentTurn, turn_key
from data_schemas.prompts import Message, Problem
from data_schemas.rollouts import ScoredRollout
from data_schemas.spell_settings import SpellRecipe
from tasks.curation.marketplace.offers import Task
from tasks.gym.agents.self_play import (
    Asked,
    new_documents,
    questioner_input,
    read_answer,
    read_question,
    responder_input,
    verifier_input,
)
from tasks.rl.recipes.self_play.audit import audit
from tasks.rl.recipes.self_play.chains import asked_in, chains_of
from tasks.rl.recipes.self_play.rewards import remember, reward
from tasks.rl.rollouts.agent_turns import Memory, Rewarded
from tasks.rl.rollouts.group_outcomes import CollectedGroup

VERIFIER = "self_play"
"""Scores the form of a response in every role."""


class Spell:
    """A `Recipe`."""

    def __init__(self, settings: SpellRecipe) -> None:
        self._settings = settings
        self.max_input_tokens = settings.max_input_tokens
        self.pipelined = False
        self.quotas: Mapping[Agent, int] = {}
        self.verifiers = frozenset({VERIFIER})
        self.agents = (Agent.QUESTIONER, Agent.CLOSED_BOOK, Agent.RESPONDER, Agent.VERIFIER)

    def first_turn(self, key: str, root: Problem, memory: Memory) -> AgentTurn:
        """Ask about documents that the memory does not have, as long as there are any."""
        known = memory.get(root.id, ())
        seen = {line for one in known for line in one.documents}
        lines = new_documents(root.messages)
        rng = random.Random(hashlib.sha256(f"{key}/{root.id}".encode()).digest())
        order = sorted(rng.sample(lines, len(lines)), key=lambda line: line in seen)
        chosen = order[: self._settings.new_documents]
        step, _, place = (int(part) for part in key.split("."))
        task = tuple(Task)[(step + place) % len(Task)]
        messages = questioner_input(task, known if self._settings.memory else (), chosen)
        return _turn(Agent.QUESTIONER, root, messages, key, size=1)

    def next_turns(self, key: str, root: Problem, entry: CollectedGroup) -> list[AgentTurn]:
        """Answer a question with and without documents; compare answers with its reference."""
        turn, items = entry.turn, entry.group.rollouts
        assert turn is not None
        if turn.agent is Agent.QUESTIONER and (asked := asked_in(entry)) and asked.usable:
            return _answers(key, root, items[0], asked)
        if turn.agent is Agent.RESPONDER:
            return _votes(key, root, items, turn)
        return []

    def reward(self, groups: Sequence[CollectedGroup], memory: Memory) -> Rewarded:
        """Reward votes, answers and questions; choose what trains; remember what is solvable."""
        chains = chains_of(groups)
        found = reward(chains, train_questioner=self._settings.train_questioner)
        return Rewarded(
            [found[entry.turn.key] if entry.turn else entry for entry in groups],
            remember(chains, memory),
            audit(chains, found, memory),
        )


def _answers(key: str, root: Problem, item: ScoredRollout, asked: Asked) -> list[AgentTurn]:
    documents = new_documents(root.messages)
    with_documents = responder_input(documents, asked.question)
    without = responder_input((), asked.question)
    return [
        _turn(Agent.CLOSED_BOOK, root, without, key, number=2, after=item, size=1),
        _turn(Agent.RESPONDER, root, with_documents, key, number=2, after=item),
    ]


def _votes(
    key: str, root: Problem, items: Sequence[ScoredRollout], turn: AgentTurn
) -> list[AgentTurn]:
    """Ask for votes on every answer once, in the order of the first response that gave it."""
    asked = read_question(turn.parent_response)
    assert asked is not None
    first: dict[str, ScoredRollout] = {}
    for item in items:
        given = read_answer(item.text)
        if given is not None and not item.verdict.abstained:
            first.setdefault(given, item)
    return [
        _turn(
            Agent.VERIFIER,
            root,
            verifier_input(asked.question, asked.answer, given),
            key,
            number=3,
            after=item,
        )
        for given, item in first.items()
    ]


def _turn(
    agent: Agent,
    root: Problem,
    messages: tuple[Message, ...],
    key: str,
    *,
    number: int = 1,
    after: ScoredRollout | None = None,
    size: int = 0,
) -> AgentTurn:
    """Make a turn; of the root it has what says where it comes from, and nothing of its gold."""
    sample = after.rollout.sample if after else 0
    return AgentTurn(
        agent=agent,
        number=number,
        root=root.id,
        parent=key,
        parent_sample=sample,
        parent_response=after.text if after else "",
        parent_solved=after.verdict.solved if after else False,
        parent_abstained=after.verdict.abstained if after else False,
        problem=Problem(
            id=f"{root.id}#{turn_key(key, agent, sample)}",
            domain=root.domain,
            language=root.language,
            messages=messages,
            verifier=VERIFIER,
            answer="{}",
            source=root.source,
            source_row=root.source_row,
        ),
        size=size,
    )
