"""Rewards of a step's chains, which of their groups train, what is remembered and measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import TypeAdapter

from data_schemas.rollouts import GroupOutcome, RolloutGroup, ScoredRollout
from data_schemas.rows import Verdict, abstain, scored
from tasks.lab.recipes.spell import formulas
from tasks.lab.recipes.spell.offers import OfferList, Question, Task, answer
from tasks.lab.recipes.spell.roles import (
    QuestionAnswer,
    covers,
    documents_of,
    new_documents,
    read_answer,
    read_question,
    read_vote,
    task_of,
)
from tasks.lab.recipes.spell.settings import Agent, Remembered
from tasks.rl.groups import CollectedGroup, scores_vary
from tasks.rl.recipe import Memory

# The groups of a step, by the question that they are about.


@dataclass(frozen=True, slots=True)
class Chain:
    """A question with everything that followed it."""

    key: str
    """Of the questioner's group."""
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
            answer_key, answers = by_parent.get((turn.key, Agent.RESPONDER), ("", None))
            task, pair = task_of(turn.problem.messages), pair_in(entry)
            ballots = votes.get(answer_key, {})
            chains.append(Chain(turn.key, entry, task, pair, guess, answers, ballots))
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


# Rewards of a step's chains, which of their groups train, and what is remembered.
#
# No reward reads `Problem.answer`: an answer is compared with what the questioner said.

_QUESTIONS = TypeAdapter(list[Remembered])
REMEMBERED = 3
"""Questions of a cluster, as published."""
Groups = dict[str, CollectedGroup]
"""By the key of their turn."""


def reward(chains: Sequence[Chain], *, train_questioner: bool) -> Groups:
    """Return every group of the chains with its rewards and its outcome."""
    answers = _answers(chains)
    quota = formulas.verifier_quota(sum(map(_is_trained, answers.values())))
    guesses = [chain.guess for chain in chains if chain.guess]
    idle = {_key(entry): replace(entry, outcome=GroupOutcome.SURPLUS) for entry in guesses}
    return idle | answers | _votes(chains, quota) | _questions(chains, answers, train_questioner)


def question_verdict(chain: Chain) -> tuple[Verdict, float]:
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


def remember(chains: Sequence[Chain], memory: Memory) -> Memory:
    """Add the solvable questions to their clusters, and forget the oldest ones."""
    results = {root: remembered(memory, root) for root in memory}
    for chain in chains:
        turn, mean = chain.question.turn, chain.mean
        solvable = mean is not None and formulas.is_remembered(mean) and not chain.ungrounded
        if solvable and chain.pair and turn:
            one = Remembered(
                documents=new_documents(turn.problem.messages),
                question=chain.pair.question,
                answer=chain.pair.answer,
            )
            results[turn.root] = (*results.get(turn.root, ()), one)[-REMEMBERED:]
    return {root: [one.model_dump(mode="json") for one in past] for root, past in results.items()}


def remembered(memory: Memory, root: str) -> tuple[Remembered, ...]:
    """Read the questions about a cluster, oldest first."""
    return tuple(_QUESTIONS.validate_python(memory.get(root, [])))


def _answers(chains: Sequence[Chain]) -> Groups:
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


def _votes(chains: Sequence[Chain], quota: int) -> Groups:
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


def _questions(chains: Sequence[Chain], answers: Groups, train: bool) -> Groups:
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


# Metrics of a step of self-play; the generator's truth is worked out for them alone.


def audit(
    chains: Sequence[Chain], rewarded: Mapping[str, CollectedGroup], memory: Memory
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


def truth_of(chain: Chain) -> Question | None:
    """Work a question out from the documents; None if the generator has no such question."""
    turn = chain.answers.turn if chain.answers else None
    if chain.pair is None or turn is None:
        return None
    lists = [OfferList.read(line) for line in documents_of(turn.problem.messages)]
    return answer(chain.pair.question, lists)


def _accepts(answered: Sequence[Chain], truths: Mapping[str, Question]) -> dict[str, float]:
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


def _distinct(chains: Sequence[Chain], memory: Memory) -> list[bool]:
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
    agents = (Agent.QUESTIONER, Agent.RESPONDER, Agent.VERIFIER)
    return {f"spell/{agent}_trained_groups": float(trained.count(agent)) for agent in agents}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / max(1, len(values))


def _share(values: Sequence[bool]) -> float:
    return _mean([float(value) for value in values])
