"""The groups of a step, by the question that they are about."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from data_schemas.rollouts import ScoredRollout
from tasks.recipes.spell import formulas as spell
from tasks.recipes.spell.offers import Task
from tasks.recipes.spell.roles import (
    Asked,
    covers,
    read_answer,
    read_question,
    read_vote,
    task_of,
)
from tasks.recipes.spell.settings import Agent
from tasks.rl.groups import CollectedGroup


@dataclass(frozen=True, slots=True)
class Chain:
    """A question with everything that followed it."""

    key: str
    """Of the questioner's group."""
    question: CollectedGroup
    task: Task
    asked: Asked | None
    """None: it does not have the form of its task."""
    guess: CollectedGroup | None
    """The answer without documents."""
    answers: CollectedGroup | None
    """None: the question was not answered."""
    votes: Mapping[int, CollectedGroup]
    """By the first response that gave the answer."""

    @property
    def ungrounded(self) -> bool:
        """True if the question was answered without documents."""
        items = self.guess.group.rollouts if self.guess else ()
        return sum(map(self.rule, items)) / max(1, len(items)) >= spell.GUESSED

    @property
    def mean(self) -> float | None:
        """Mean reward of the answers; None if there is none."""
        rewards = [self.reward(item) for item in self.scored]
        return sum(rewards) / len(rewards) if rewards else None

    @property
    def scored(self) -> list[ScoredRollout]:
        """The answers that have a verdict."""
        items = self.answers.group.rollouts if self.answers else ()
        return [item for item in items if not item.verdict.abstained]

    def rule(self, item: ScoredRollout) -> bool:
        """Say whether an answer contains the reference."""
        given = read_answer(item.text)
        return self.asked is not None and given is not None and covers(self.asked.answer, given)

    def accepted(self, item: ScoredRollout) -> bool:
        """Say whether the majority of the votes on an answer accepts it."""
        given = read_answer(item.text)
        items = self.answers.group.rollouts if self.answers else ()
        for one in items:
            if read_answer(one.text) == given and (found := self.votes.get(one.rollout.sample)):
                return spell.majority(votes_of(found))
        return False

    def reward(self, item: ScoredRollout) -> float:
        """Reward an answer."""
        return spell.responder_reward(rule=self.rule(item), accepted=self.accepted(item))


def chains_of(groups: Sequence[CollectedGroup]) -> list[Chain]:
    """Put the groups of a step together, in the order of the questions."""
    turns = [(entry.turn, entry) for entry in groups if entry.turn]
    by_parent = {(turn.parent, turn.agent): (turn.key, entry) for turn, entry in turns}
    votes: dict[str, dict[int, CollectedGroup]] = {}
    for turn, entry in turns:
        if turn.agent == Agent.VERIFIER:
            votes.setdefault(turn.parent, {})[turn.parent_sample] = entry
    chains: list[Chain] = []
    for turn, entry in turns:
        if turn.agent == Agent.QUESTIONER:
            _, guess = by_parent.get((turn.key, Agent.CLOSED_BOOK), ("", None))
            answered, answers = by_parent.get((turn.key, Agent.RESPONDER), ("", None))
            task, asked = task_of(turn.problem.messages), asked_in(entry)
            voted = votes.get(answered, {})
            chains.append(Chain(turn.key, entry, task, asked, guess, answers, voted))
    return chains


def asked_in(entry: CollectedGroup) -> Asked | None:
    """Read the question of a questioner's group; None without the form of its task."""
    (item,) = entry.group.rollouts
    asked = read_question(item.text)
    return asked if asked and asked.fits(task_of(entry.group.problem.messages)) else None


def votes_of(entry: CollectedGroup) -> list[bool | None]:
    """Read the votes of a verifier's group; None for one that cannot be read."""
    return [
        None if item.verdict.abstained else read_vote(item.text) for item in entry.group.rollouts
    ]
