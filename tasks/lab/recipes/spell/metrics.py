"""Metrics of a step of self-play; the generator's truth is worked out for them alone."""

from collections.abc import Mapping, Sequence

from data_schemas.ledgers import GroupOutcome
from tasks.lab.recipes.spell.chains import QuestionChain
from tasks.lab.recipes.spell.offers import OfferList, Question, answer
from tasks.lab.recipes.spell.rewards import question_verdict, remembered
from tasks.lab.recipes.spell.roles import (
    covers,
    documents_of,
    read_answer,
    read_vote,
)
from tasks.lab.recipes.spell.settings import SpellRole
from tasks.rl.groups import CollectedGroup
from tasks.rl.recipe import Memory


def audit(
    chains: Sequence[QuestionChain], rewarded: Mapping[str, CollectedGroup], memory: Memory
) -> dict[str, float]:
    """Measure questions, answers and votes.

    Args:
        chains: of the step.
        rewarded: their groups by key.
        memory: before the step.
    """
    reasons = [question_verdict(chain)[0].reason for chain in chains]
    answered = [chain for chain in chains if chain.answers and not chain.ungrounded]
    means = [chain.mean for chain in answered if chain.mean is not None]
    truths = {chain.key: truth for chain in answered if (truth := truth_of(chain))}
    wrong = [
        not covers(truths[chain.key].answer, chain.pair.answer)
        for chain in answered
        if chain.pair and chain.key in truths
    ]
    votes = [
        read_vote(item.text) is None
        for chain in chains
        for entry in chain.votes.values()
        for item in entry.group.rollouts
    ]
    return {
        "spell/bad_format_share": _share([reason == "bad_format" for reason in reasons]),
        "spell/ungrounded_share": _share([reason == "ungrounded" for reason in reasons]),
        "spell/answer_reward_mean": sum(means) / max(1, len(means)),
        "spell/operations_mean": _mean([float(truth.operations) for truth in truths.values()]),
        "spell/distinct_share": _share(_distinct(chains, memory)),
        "spell/no_truth_share": 1.0 - len(truths) / max(1, len(answered)),
        "spell/wrong_reference_share": _share(wrong),
        "spell/unreadable_vote_share": _share(votes),
        **_accepts(answered, truths),
        **_trained(rewarded),
    }


def truth_of(chain: QuestionChain) -> Question | None:
    """Work a question out from the documents; None if the generator has no such question."""
    turn = chain.answers.turn if chain.answers else None
    if chain.pair is None or turn is None:
        return None
    lists = [OfferList.read(line) for line in documents_of(turn.problem.messages)]
    return answer(chain.pair.question, lists)


def _accepts(answered: Sequence[QuestionChain], truths: Mapping[str, Question]) -> dict[str, float]:
    """Count answers that only the verifier accepts though they are wrong, and all wrong ones paid.

    A wrong one may also be paid because the reference itself is wrong.
    """
    false, unearned = [], []
    for chain in answered:
        if chain.key not in truths:
            continue
        for item in chain.scored:
            answer = read_answer(item.text)
            right = answer is not None and covers(truths[chain.key].answer, answer)
            false.append(chain.accepted(item) and not chain.rule(item) and not right)
            if chain.reward(item):
                unearned.append(not right)
    return {
        "spell/false_accept_share": _share(false),
        "spell/paid_wrong_share": _share(unearned),
    }


def _distinct(chains: Sequence[QuestionChain], memory: Memory) -> list[bool]:
    """Say of every question whether its cluster neither remembers it nor had it in this step."""
    questions = {root: {one.question for one in remembered(memory, root)} for root in memory}
    results = []
    for chain in chains:
        if chain.pair and chain.question.turn:
            of_root = questions.setdefault(chain.question.turn.root, set())
            results.append(chain.pair.question not in of_root)
            of_root.add(chain.pair.question)
    return results


def _trained(rewarded: Mapping[str, CollectedGroup]) -> dict[str, float]:
    trained = [
        entry.turn.agent
        for entry in rewarded.values()
        if entry.turn and entry.outcome is not GroupOutcome.SURPLUS
    ]
    agents = (SpellRole.QUESTIONER, SpellRole.RESPONDER, SpellRole.VERIFIER)
    return {f"spell/{agent}_trained_groups": float(trained.count(agent)) for agent in agents}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / max(1, len(values))


def _share(values: Sequence[bool]) -> float:
    return _mean([float(value) for value in values])
