"""Rewards of a step's chains, which of their groups train, and what is remembered.

No reward reads `Problem.answer`: an answer is compared with what the questioner said.
"""

from collections.abc import Sequence
from dataclasses import replace

from pydantic import TypeAdapter

from data_schemas.ledgers import GroupOutcome
from data_schemas.rollouts import RolloutGroup
from data_schemas.verdicts import Verdict, abstain, scored
from tasks.lab.recipes.spell import formulas
from tasks.lab.recipes.spell.chains import QuestionChain, votes_of
from tasks.lab.recipes.spell.roles import (
    new_documents,
)
from tasks.lab.recipes.spell.settings import PastQuestion
from tasks.rl.groups import CollectedGroup, scores_vary
from tasks.rl.recipe import Memory

_QUESTIONS = TypeAdapter(list[PastQuestion])
REMEMBERED = 3
"""Questions of a cluster, as published."""
Groups = dict[str, CollectedGroup]
"""By the key of their turn."""


def reward(chains: Sequence[QuestionChain], *, train_questioner: bool) -> Groups:
    """Return every group of the chains with its rewards and its outcome."""
    answers = _answers(chains)
    quota = formulas.verifier_quota(sum(map(_is_trained, answers.values())))
    guesses = [chain.guess for chain in chains if chain.guess]
    idle = {_key(entry): replace(entry, outcome=GroupOutcome.SURPLUS) for entry in guesses}
    return idle | answers | _votes(chains, quota) | _questions(chains, answers, train_questioner)


def question_verdict(chain: QuestionChain) -> tuple[Verdict, float]:
    """Return the verdict on a question and its penalty; their sum is its reward."""
    (item,) = chain.question.group.rollouts
    if item.verdict.abstained:
        return item.verdict, 0.0
    if chain.pair is None:
        return scored(0.0, "bad_format"), formulas.BAD_FORMAT
    if not chain.pair.usable:
        return abstain("unusable_question", chain.pair.answer[:80]), 0.0
    if chain.ungrounded:
        return scored(0.0, "ungrounded", chain.pair.question), formulas.UNGROUNDED
    if chain.mean is None:
        return abstain("not_answered", chain.pair.question), 0.0
    reason = {0.0: "unsolved", 1.0: "always_solved"}.get(chain.mean, "solvable")
    return scored(formulas.question_reward(chain.mean), reason, chain.pair.question), 0.0


def remember(chains: Sequence[QuestionChain], memory: Memory) -> Memory:
    """Add the solvable questions to their clusters, and forget the oldest ones."""
    results = {root: remembered(memory, root) for root in memory}
    for chain in chains:
        turn, mean = chain.question.turn, chain.mean
        solvable = mean is not None and formulas.is_remembered(mean) and not chain.ungrounded
        if solvable and chain.pair and turn:
            one = PastQuestion(
                documents=new_documents(turn.problem.messages),
                question=chain.pair.question,
                answer=chain.pair.answer,
            )
            results[turn.root] = (*results.get(turn.root, ()), one)[-REMEMBERED:]
    return {root: [one.model_dump(mode="json") for one in past] for root, past in results.items()}


def remembered(memory: Memory, root: str) -> tuple[PastQuestion, ...]:
    """Read the questions about a cluster, oldest first."""
    return tuple(_QUESTIONS.validate_python(memory.get(root, [])))


def _answers(chains: Sequence[QuestionChain]) -> Groups:
    """Groups with contrast train if their question is grounded."""
    results: Groups = {}
    for chain in chains:
        if chain.answers is None:
            continue
        verdicts = [
            item.verdict
            if item.verdict.abstained
            else scored(chain.reward(item), _reason(chain.rule(item), chain.reward(item)))
            for item in chain.answers.group.rollouts
        ]
        varies = scores_vary([one.score for one in verdicts if one.score is not None])
        results[_key(chain.answers)] = _settle(
            chain.answers, verdicts, trains=varies and not chain.ungrounded
        )
    return results


def _reason(rule: bool, reward: float) -> str:
    return "correct" if rule else "accepted" if reward else "wrong"


def _votes(chains: Sequence[QuestionChain], quota: int) -> Groups:
    """Groups whose majority is the rule's score train, up to the quota, balanced over tasks."""
    results: Groups = {}
    eligible: list[tuple[str, str]] = []
    for chain in chains:
        items = chain.answers.group.rollouts if chain.answers else ()
        for item in items:
            entry = chain.votes.get(item.rollout.sample)
            if entry is None:
                continue
            votes = votes_of(entry)
            pairs = zip(entry.group.rollouts, formulas.vote_rewards(votes), strict=True)
            verdicts = [
                one.verdict
                if one.verdict.abstained
                else scored(score, "majority" if score else "minority")
                for one, score in pairs
            ]
            results[_key(entry)] = _settle(entry, verdicts, trains=False)
            if formulas.trains_verifier(votes, chain.rule(item)) and not chain.ungrounded:
                eligible.append((_key(entry), chain.task))
    for place in formulas.balanced([task for _, task in eligible], quota):
        key = eligible[place][0]
        results[key] = replace(results[key], outcome=GroupOutcome.NON_ZERO_VARIANCE)
    return results


def _questions(chains: Sequence[QuestionChain], answers: Groups, train: bool) -> Groups:
    """Questions whose answers train, and as many without reward; advantages by task."""
    verdicts = [question_verdict(chain) for chain in chains]
    scores = [verdict.score for verdict, _ in verdicts]
    places = [place for place, score in enumerate(scores) if score is not None]
    rewards = [(scores[place] or 0.0) + verdicts[place][1] for place in places]
    tasks = [chains[place].task for place in places]
    contrast = [
        (entry := chains[place].answers) is not None and _is_trained(answers[_key(entry)])
        for place in places
    ]
    picks = formulas.choose_questions(rewards, tasks, contrast) if train else []
    advantages = formulas.task_advantages(
        [rewards[place] for place in picks], [tasks[place] for place in picks]
    )
    advantage_of = {places[place]: one for place, one in zip(picks, advantages, strict=True)}
    results: Groups = {}
    for place, (chain, (verdict, penalty)) in enumerate(zip(chains, verdicts, strict=True)):
        entry = _settle(chain.question, [verdict], trains=place in advantage_of, penalty=penalty)
        results[chain.key] = replace(entry, advantages=(advantage_of.get(place, 0.0),))
    return results


def _settle(
    entry: CollectedGroup, verdicts: Sequence[Verdict], *, trains: bool, penalty: float = 0.0
) -> CollectedGroup:
    items = tuple(
        replace(item, verdict=verdict, penalty=item.penalty + penalty)
        for item, verdict in zip(entry.group.rollouts, verdicts, strict=True)
    )
    outcome = GroupOutcome.NON_ZERO_VARIANCE if trains else GroupOutcome.SURPLUS
    return replace(entry, group=RolloutGroup(entry.group.problem, items), outcome=outcome)


def _is_trained(entry: CollectedGroup) -> bool:
    return entry.outcome is not GroupOutcome.SURPLUS


def _key(entry: CollectedGroup) -> str:
    assert entry.turn is not None
    return entry.turn.key
