"""What labels are worth, and comparisons asked in both orders (CompassMax A.7).

Differs: the paper does not publish its numbers. Here a win is 1, a tie 0.5, a loss 0, the mean of
both presentation orders, so that a judge that always prefers the first answer says nothing (0.5).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from data_schemas.verdicts import Verdict, abstain, scored
from tasks.rewards.judging.asking import NoReading, readings
from tasks.rewards.judging.form import Label, comparison_prompt, parse_label, swapped
from tasks.rewards.judging.protocol import Judge

WORTH = {Label.A: 1.0, Label.TIE: 0.5, Label.B: 0.0}
"""Of the answer that is presented as A."""
REASONS = {1.0: "wins", 0.5: "ties", 0.0: "loses"}


@dataclass(frozen=True, slots=True)
class Pair:
    """Two answers to one task; `first` is the one that is rewarded."""

    task: str
    first: str
    second: str
    reference: str = ""


def both_orders(as_a: Label, as_b: Label) -> float:
    """Reward of an answer that was presented as A, then as B, in [0, 1]."""
    return (WORTH[as_a] + WORTH[swapped(as_b)]) / 2


def compare(judge: Judge, pairs: Sequence[Pair]) -> list[Verdict]:
    """Judge `first` against `second` in both orders, all in one question to the judge.

    Equal texts tie without a question. Abstains if either order has no reading: one order alone
    carries the position bias.
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
    agreed = as_a is swapped(as_b)
    reason = REASONS[reward] if agreed else "orders_disagree"
    return scored(reward, reason, f"as A: {as_a.value}, as B: {as_b.value}")
