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
from collections.abc import Sequence

from data_schemas.rl_settings import AnyRecipe, RLSettings
from data_schemas.rollouts import AgentTurn, ScoredRollout, turn_key
from data_schemas.rows import Message, Problem
from tasks.errors import SettingsError
from tasks.lab.recipes.spell import roles
from tasks.lab.recipes.spell.chains import chains_of, pair_in
from tasks.lab.recipes.spell.metrics import audit
from tasks.lab.recipes.spell.offers import Task
from tasks.lab.recipes.spell.rewards import remember, remembered, reward
from tasks.lab.recipes.spell.roles import (
    QuestionAnswer,
    new_documents,
    questioner_input,
    read_answer,
    read_question,
    responder_input,
    verifier_input,
)
from tasks.lab.recipes.spell.settings import SpellRecipe, SpellRole
from tasks.rl.groups import CollectedGroup
from tasks.rl.recipe import Memory, Recipe, TurnLimits, TurnRewards

VERIFIER = roles.NAME
"""Scores the form of a response in every role."""


PLOTS = (
    *(
        (f"agent/{agent}_reward_mean", f"Reward of the {agent}", "mean score of its responses", 1.0)
        for agent in SpellRole
    ),
    ("spell/bad_format_share", "Bad questions", "% without the form of their task", 100.0),
    ("spell/operations_mean", "Operations", "of a question", 1.0),
)


class Spell:
    """`AgentTurns` of questioner, responder and verifier."""

    def __init__(self, settings: SpellRecipe) -> None:
        self._settings = settings
        self.limits = TurnLimits(
            agents=tuple(SpellRole), max_input_tokens=settings.max_input_tokens
        )

    def first_turn(self, key: str, root: Problem, memory: Memory) -> AgentTurn:
        """Ask about documents that the memory does not have, as long as there are any."""
        questions = remembered(memory, root.id)
        old_lines = {line for one in questions for line in one.documents}
        lines = new_documents(root.messages)
        rng = random.Random(hashlib.sha256(f"{key}/{root.id}".encode()).digest())
        order = sorted(rng.sample(lines, len(lines)), key=lambda line: line in old_lines)
        documents = order[: self._settings.new_documents]
        step, _, place = (int(part) for part in key.split("."))
        task = tuple(Task)[(step + place) % len(Task)]
        messages = questioner_input(task, questions if self._settings.memory else (), documents)
        return _turn(SpellRole.QUESTIONER, root, messages, key, size=1)

    def next_turns(self, key: str, root: Problem, entry: CollectedGroup) -> list[AgentTurn]:
        """Answer a question with and without documents; compare answers with its reference."""
        turn, items = entry.turn, entry.group.rollouts
        assert turn is not None
        if turn.agent == SpellRole.QUESTIONER and (pair := pair_in(entry)) and pair.usable:
            return _answers(key, root, items[0], pair)
        if turn.agent == SpellRole.RESPONDER:
            return _votes(key, root, items, turn)
        return []

    def reward(self, groups: Sequence[CollectedGroup], memory: Memory) -> TurnRewards:
        """Reward votes, answers and questions; choose what trains; remember what is solvable."""
        chains = chains_of(groups)
        result = reward(chains, train_questioner=self._settings.train_questioner)
        return TurnRewards(
            [result[entry.turn.key] if entry.turn else entry for entry in groups],
            remember(chains, memory),
            audit(chains, result, memory),
        )


def open_spell(settings: AnyRecipe, phase: RLSettings) -> Recipe:
    """Open the recipe (an `OpenRecipe`).

    A question is rewarded by the answers to it, an answer by the votes on it.

    Raises:
        SettingsError: a step of the phase would not take whole chains.
    """
    needs = {
        "engines.segment_tokens": (phase.engines.segment_tokens, 0),
        "zero_variance.refill_rounds": (phase.zero_variance.refill_rounds, 0),
    }
    for name, (value, needed) in needs.items():
        if value != needed:
            raise SettingsError(
                f"{name} is {value!r}: self-play takes each chain of question, answers and "
                f"votes in one step, with inputs that are new; set it to {needed!r}"
            )
    recipe = SpellRecipe.model_validate(settings.model_dump())
    return Recipe(turns=Spell(recipe), verifiers=frozenset({VERIFIER}), plots=PLOTS)


def _answers(key: str, root: Problem, item: ScoredRollout, pair: QuestionAnswer) -> list[AgentTurn]:
    documents = new_documents(root.messages)
    with_documents = responder_input(documents, pair.question)
    without = responder_input((), pair.question)
    return [
        _turn(SpellRole.CLOSED_BOOK, root, without, key, number=2, after=item, size=1),
        _turn(SpellRole.RESPONDER, root, with_documents, key, number=2, after=item),
    ]


def _votes(
    key: str, root: Problem, items: Sequence[ScoredRollout], turn: AgentTurn
) -> list[AgentTurn]:
    """Ask for votes on every answer once, in the order of the first response that gave it."""
    question = read_question(turn.parent_response)
    assert question is not None
    first: dict[str, ScoredRollout] = {}
    for item in items:
        answer = read_answer(item.text)
        if answer is not None and not item.verdict.abstained:
            first.setdefault(answer, item)
    return [
        _turn(
            SpellRole.VERIFIER,
            root,
            verifier_input(question.question, question.answer, answer),
            key,
            number=3,
            after=item,
        )
        for answer, item in first.items()
    ]


def _turn(
    agent: str,
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
