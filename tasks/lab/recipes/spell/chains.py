"""The groups of a step, by the question that they are about."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from data_schemas.rollouts import ScoredRollout
from tasks.lab.recipes.spell import formulas
from tasks.lab.recipes.spell.offers import Task
from tasks.lab.recipes.spell.roles import (
    QuestionAnswer,
    covers,
    read_answer,
    read_question,
    read_vote,
    task_of,
)
from tasks.lab.recipes.spell.settings import SpellRole
from tasks.rl.groups import CollectedGroup


@dataclass(frozen=True, slots=True)
class QuestionChain:
    """A question with everything that followed it."""

    key: str
    """Key of the questioner's group."""
    question: CollectedGroup
    task: Task
    pair: QuestionAnswer | None
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
        return sum(map(self.rule, items)) / max(1, len(items)) >= formulas.GUESSED

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
        answer = read_answer(item.text)
        return self.pair is not None and answer is not None and covers(self.pair.answer, answer)

    def accepted(self, item: ScoredRollout) -> bool:
        """Say whether the majority of the votes on an answer accepts it."""
        answer = read_answer(item.text)
        items = self.answers.group.rollouts if self.answers else ()
        for one in items:
            if read_answer(one.text) == answer and (entry := self.votes.get(one.rollout.sample)):
                return formulas.majority(votes_of(entry))
        return False

    def reward(self, item: ScoredRollout) -> float:
        """Reward an answer."""
        return formulas.responder_reward(rule=self.rule(item), accepted=self.accepted(item))


def chains_of(groups: Sequence[CollectedGroup]) -> list[QuestionChain]:
    """Put the groups of a step together, in the order of the questions."""
    turns = [(entry.turn, entry) for entry in groups if entry.turn]
    by_parent = {(turn.parent, turn.agent): (turn.key, entry) for turn, entry in turns}
    votes: dict[str, dict[int, CollectedGroup]] = {}
    for turn, entry in turns:
        if turn.agent == SpellRole.VERIFIER:
            votes.setdefault(turn.parent, {})[turn.parent_sample] = entry
    chains: list[QuestionChain] = []
    for turn, entry in turns:
        if turn.agent == SpellRole.QUESTIONER:
            _, guess = by_parent.get((turn.key, SpellRole.CLOSED_BOOK), ("", None))
            answer_key, answers = by_parent.get((turn.key, SpellRole.RESPONDER), ("", None))
            task, pair = task_of(turn.problem.messages), pair_in(entry)
            ballots = votes.get(answer_key, {})
            chains.append(QuestionChain(turn.key, entry, task, pair, guess, answers, ballots))
    return chains


def pair_in(entry: CollectedGroup) -> QuestionAnswer | None:
    """Read the question of a questioner's group; None without the form of its task."""
    (item,) = entry.group.rollouts
    question = read_question(item.text)
    return question if question and question.fits(task_of(entry.group.problem.messages)) else None


def votes_of(entry: CollectedGroup) -> list[bool | None]:
    """Read the votes of a verifier's group; None for one that cannot be read."""
    return [
        None if item.verdict.abstained else read_vote(item.text) for item in entry.group.rollouts
    ]
