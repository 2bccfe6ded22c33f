"""Position and length bias of a judge, from the verdicts that it gave in a run.

    judge/comparisons          pairs of answers that were judged in both orders
    judge/swap_consistency     share of these with the same verdict in both orders
    judge/first_preference     of the labels that are no tie, share for the answer shown first minus
                               share for the one shown second; 0 without position bias
    judge/length_correlation   of a response's reward and its characters, within problems (Pearson)
    judge/tied_groups          share of the problems whose judged responses all have one reward

The last two are of comparisons and of rubrics, the others of comparisons alone.
"""

import re
from collections.abc import Mapping, Sequence

import numpy as np

from data_schemas.verdicts import SCORE_TOLERANCE, Verdict
from tasks.gym.judging.form import Label, swap_label

_LABELS = re.compile(r"as A: (A|B|TIE), as B: (A|B|TIE)")
MOSTLY_TIED = 0.9
Judged = tuple[str, Verdict]
"""A response with its verdict."""


def judge_bias(groups: Sequence[Sequence[Judged]]) -> dict[str, float]:
    """Measure the bias of a judge.

    Args:
        groups: judged responses, problem by problem.

    Returns:
        By name; {} if nothing was judged. A share or correlation of nothing is 0.
    """
    given = [[one for one in group if one[1].score is not None] for group in groups]
    given = [group for group in given if group]
    if not given:
        return {}
    labels = [
        (Label(as_a), Label(as_b))
        for group in given
        for _, verdict in group
        for as_a, as_b in _LABELS.findall(verdict.detail)
    ]
    agreed = sum(as_a is swap_label(as_b) for as_a, as_b in labels)
    shown = [label for pair in labels for label in pair if label is not Label.TIE]
    first = shown.count(Label.A)
    several = [group for group in given if len(group) > 1]
    tied = [group for group in several if np.ptp(_rewards(group)) <= SCORE_TOLERANCE]
    return {
        "judge/comparisons": float(len(labels)),
        "judge/swap_consistency": agreed / max(1, len(labels)),
        "judge/first_preference": (2 * first - len(shown)) / max(1, len(shown)),
        "judge/length_correlation": _length_correlation(several),
        "judge/tied_groups": len(tied) / max(1, len(several)),
    }


def complaint(bias: Mapping[str, float]) -> str:
    """Say that a judge trained little or nothing, and why; '' if it did.

    Where the label follows the place, the orders disagree, and a wrong answer gets the half that a
    right one gets for being like the reference: every group is tied.
    """
    tied = bias.get("judge/tied_groups", 0.0)
    if tied < MOSTLY_TIED:
        return ""
    return (
        f"the judge gave {100 * tied:.0f} % of the groups one reward, which trains nothing; it "
        f"says the same in both orders in {100 * bias['judge/swap_consistency']:.0f} % of its "
        f"comparisons and prefers the first answer by {100 * bias['judge/first_preference']:+.0f} "
        "points. Teach it more comparisons, or use another one"
    )


def _rewards(group: Sequence[Judged]) -> list[float]:
    return [verdict.score or 0.0 for _, verdict in group]


def _length_correlation(groups: Sequence[Sequence[Judged]]) -> float:
    rewards = [one - np.mean(_rewards(group)) for group in groups for one in _rewards(group)]
    lengths = [
        len(text) - np.mean([len(one) for one, _ in group]) for group in groups for text, _ in group
    ]
    scale = float(np.linalg.norm(rewards) * np.linalg.norm(lengths))
    return float(np.dot(rewards, lengths)) / scale if scale > 0.0 else 0.0
