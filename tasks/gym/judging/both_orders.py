"""Rewards of labels, and comparisons in both presentation orders (CompassMax).

Differs: the paper does not publish its numbers. Here a win is 1, a tie 0.5 and a loss 0,
averaged over both presentation orders, so that a judge that always prefers the first answer
gives 0.5.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from data_schemas.verdicts import Verdict, abstain, scored
from tasks.gym.judging.comparison_prompt import Label, comparison_prompt, parse_label, swap_label
from tasks.gym.judging.protocol import Judge
from tasks.gym.judging.readings import NoReading, readings

WORTH = {Label.A: 1.0, Label.TIE: 0.5, Label.B: 0.0}
"""Reward of the answer that is presented as A."""
DETAIL = "as A: {}, as B: {}"
"""Detail of a comparison: the label with the answer as A, and with the answer as B; `judge_bias`
reads it, and takes a detail of nothing else for a comparison with a reference."""
REASONS = {1.0: "wins", 0.5: "ties", 0.0: "loses"}


@dataclass(frozen=True, slots=True)
class Pair:
    """Two answers to one task; the reward is that of `first`."""

    task: str
    first: str
    second: str
    reference: str = ""


def both_orders(as_a: Label, as_b: Label) -> float:
    """Return the reward in [0, 1] of an answer that was presented as A, then as B."""
    return (WORTH[as_a] + WORTH[swap_label(as_b)]) / 2


def compare(judge: Judge, pairs: Sequence[Pair]) -> list[Verdict]:
    """Compare `first` with `second` in both orders, all pairs in one call to the judge.

    Equal texts tie without a prompt. Abstains if either order has no label, because a single order
    has a position bias.
    """
    unequal = [pair for pair in pairs if pair.first != pair.second]
    prompts = [
        comparison_prompt(pair.task, *answers, reference=pair.reference)
        for pair in unequal
        for answers in ((pair.first, pair.second), (pair.second, pair.first))
    ]
    labels = iter(readings(judge, prompts, parse_label) if prompts else [])
    return [
        scored(WORTH[Label.TIE], "ties", "equal texts")
        if pair.first == pair.second
        else _verdict(next(labels), next(labels))
        for pair in pairs
    ]


def _verdict(as_a: Label | NoReading, as_b: Label | NoReading) -> Verdict:
    if isinstance(as_a, NoReading):
        return abstain(as_a.value, "with the answer as A")
    if isinstance(as_b, NoReading):
        return abstain(as_b.value, "with the answer as B")
    reward = both_orders(as_a, as_b)
    agreed = as_a is swap_label(as_b)
    reason = REASONS[reward] if agreed else "orders_disagree"
    return scored(reward, reason, DETAIL.format(as_a.value, as_b.value))
