"""Similarity of free text to a reference: a deterministic substitute for a generative judge.

chrF (Popovic 2015): F-score with beta 2 over character n-grams of 1 to 6, on normalised text
without spaces. It rewards overlap, not quality; `generative_judge` can replace it.

Gold: {"reference": "..."}.
"""

from collections import Counter

from pydantic import Field

from data_schemas.rows import Problem
from data_schemas.verdicts import Verdict, abstain, scored
from tasks.algorithms.folding import folded
from tasks.gym.protocol import MAX_ANSWER_CHARACTERS, Gold, verify_answer

MAX_ORDER = 6
BETA = 2.0
BELOW_EQUAL = 0.99
"""Largest score of a text other than the reference: n-grams miss some reorderings."""


class Reference(Gold):
    """A good answer."""

    reference: str = Field(min_length=1)


def verify(problem: Problem, response: str) -> Verdict:
    """Score the n-gram overlap with the reference; 1 only if the normalised texts are equal."""
    return verify_answer(problem, response, Reference, _check)


def normalised(text: str) -> str:
    """Fold width, case and whitespace."""
    return folded(text)


def chrf(reference: str, text: str) -> float:
    """Return chrF in [0, 1]; orders longer than either text are left out; 0 if one is empty."""
    a, b = reference.replace(" ", ""), text.replace(" ", "")
    scores = [
        _f_score(_ngrams(a, n), _ngrams(b, n))
        for n in range(1, MAX_ORDER + 1)
        if n <= min(len(a), len(b))
    ]
    return sum(scores) / len(scores) if scores else 0.0


def _ngrams(text: str, order: int) -> Counter[str]:
    return Counter(text[i : i + order] for i in range(len(text) - order + 1))


def _f_score(reference: Counter[str], text: Counter[str]) -> float:
    overlap = (reference & text).total()
    if overlap == 0:
        return 0.0
    precision, recall = overlap / text.total(), overlap / reference.total()
    return (1 + BETA**2) * precision * recall / (BETA**2 * precision + recall)


def _check(gold: Reference, answer: str) -> Verdict:
    reference, text = normalised(gold.reference), normalised(answer)
    if not reference:
        return abstain("bad_gold", "reference is blank")
    if reference == text:
        return scored(1.0, "correct")
    if len(text) > MAX_ANSWER_CHARACTERS:  # NFKC makes 18 characters of one
        return scored(0.0, "too_long", f"{len(text)} characters")
    score = min(chrf(reference, text), BELOW_EQUAL)
    return scored(score, "partial" if score > 0 else "wrong", f"chrF {score:.3f}")
