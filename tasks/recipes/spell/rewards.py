"""Rewards of a step's chains, which of their groups train, and what is remembered.

No reward reads `Problem.answer`: an answer is compared with what the questioner said.
"""

from collections.abc import Sequence
from dataclasses import replace

from pydantic import TypeAdapter

from data_schemas.ledger import GroupOutcome
from data_schemas.rollouts import RolloutGroup
from data_schemas.verdicts import Verdict, abstain, scored
from tasks.recipes.spell import formulas as spell
from tasks.recipes.spell.chains import Chain, votes_of
from tasks.recipes.spell.roles import new_documents
from tasks.recipes.spell.settings import Remembered
from tasks.rl.groups import CollectedGroup, scores_vary
from tasks.rl.recipe import Memory

_QUESTIONS = TypeAdapter(list[Remembered])
REMEMBERED = 3
"""Questions of a cluster, as published."""
Groups = dict[str, CollectedGroup]
"""By the key of their turn."""


def reward(chains: Sequence[Chain], *, train_questioner: bool) -> Groups:
    """Return every group of the chains with its rewards and its outcome."""
    answers = _answers(chains)
    quota = spell.verifier_quota(sum(map(_is_trained, answers.values())))
    guesses = [chain.guess for chain in chains if chain.guess]
    idle = {_key(entry): replace(entry, outcome=GroupOutcome.SURPLUS) for entry in guesses}
    return idle | answers | _votes(chains, quota) | _questions(chains, answers, train_questioner)


def question_verdict(chain: Chain) -> tuple[Verdict, float]:
    """Return the verdict on a question and its penalty; their sum is its reward."""
    (item,) = chain.question.group.rollouts
    if item.verdict.abstained:
        return item.verdict, 0.0
    if chain.asked is None:
        return scored(0.0, "bad_format"), spell.BAD_FORMAT
    if not chain.asked.usable:
        return abstain("unusable_question", chain.asked.answer[:80]), 0.0
    if chain.ungrounded:
        return scored(0.0, "ungrounded", chain.asked.question), spell.UNGROUNDED
    if chain.mean is None:
        return abstain("not_answered", chain.asked.question), 0.0
    reason = {0.0: "unsolved", 1.0: "always_solved"}.get(chain.mean, "solvable")
    return scored(spell.question_reward(chain.mean), reason, chain.asked.question), 0.0


def remember(chains: Sequence[Chain], memory: Memory) -> Memory:
    """Add the solvable questions to their clusters, and forget the oldest ones."""
    found = {root: remembered(memory, root) for root in memory}
    for chain in chains:
        turn, mean = chain.question.turn, chain.mean
        solvable = mean is not None and spell.is_remembered(mean) and not chain.ungrounded
        if solvable and chain.asked and turn:
            one = Remembered(
                documents=new_documents(turn.problem.messages),
                question=chain.asked.question,
                answer=chain.asked.answer,
            )
            found[turn.root] = (*found.get(turn.root, ()), one)[-REMEMBERED:]
    return {root: [one.model_dump(mode="json") for one in kept] for root, kept in found.items()}


def remembered(memory: Memory, root: str) -> tuple[Remembered, ...]:
    """Read the questions about a cluster, oldest first."""
    return tuple(_QUESTIONS.validate_python(memory.get(root, [])))


def _answers(chains: Sequence[Chain]) -> Groups:
    """Groups with contrast train if their question is grounded."""
    found: Groups = {}
    for chain in chains:
        if chain.answers is None:
            continue
        verdicts = [
            item.verdict
            if item.verdict.abstained
            else scored(chain.reward(item), _reason(rule=chain.rule(item), paid=chain.reward(item)))
            for item in chain.answers.group.rollouts
        ]
        varies = scores_vary([one.score for one in verdicts if one.score is not None])
        found[_key(chain.answers)] = _settled(
            chain.answers, verdicts, trains=varies and not chain.ungrounded
        )
    return found


def _reason(*, rule: bool, paid: float) -> str:
    return "correct" if rule else "accepted" if paid else "wrong"


def _votes(chains: Sequence[Chain], quota: int) -> Groups:
    """Groups whose majority is the rule's score train, up to the quota, balanced over tasks."""
    found: Groups = {}
    eligible: list[tuple[str, str]] = []
    for chain in chains:
        items = chain.answers.group.rollouts if chain.answers else ()
        for item in items:
            entry = chain.votes.get(item.rollout.sample)
            if entry is None:
                continue
            votes = votes_of(entry)
            paid = zip(entry.group.rollouts, spell.vote_rewards(votes), strict=True)
            verdicts = [
                one.verdict
                if one.verdict.abstained
                else scored(score, "majority" if score else "minority")
                for one, score in paid
            ]
            found[_key(entry)] = _settled(entry, verdicts, trains=False)
            if spell.trains_verifier(votes, chain.rule(item)) and not chain.ungrounded:
                eligible.append((_key(entry), chain.task))
    for place in spell.balanced([task for _, task in eligible], quota):
        key = eligible[place][0]
        found[key] = replace(found[key], outcome=GroupOutcome.NON_ZERO_VARIANCE)
    return found


def _questions(chains: Sequence[Chain], answers: Groups, train: bool) -> Groups:
    """Questions whose answers train, and as many without reward; advantages by task."""
    told = [question_verdict(chain) for chain in chains]
    scores = [verdict.score for verdict, _ in told]
    known = [place for place, score in enumerate(scores) if score is not None]
    rewards = [(scores[place] or 0.0) + told[place][1] for place in known]
    tasks = [chains[place].task for place in known]
    contrast = [
        (entry := chains[place].answers) is not None and _is_trained(answers[_key(entry)])
        for place in known
    ]
    chosen = spell.choose_questions(rewards, tasks, contrast) if train else []
    advantages = spell.task_advantages(
        [rewards[place] for place in chosen], [tasks[place] for place in chosen]
    )
    given = {known[place]: one for place, one in zip(chosen, advantages, strict=True)}
    found: Groups = {}
    for place, (chain, (verdict, penalty)) in enumerate(zip(chains, told, strict=True)):
        entry = _settled(chain.question, [verdict], trains=place in given, penalty=penalty)
        found[chain.key] = replace(entry, advantages=(given.get(place, 0.0),))
    return found


def _settled(
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
