"""Position and length bias of a judge, from the verdicts that it gave in a run.

    judge/comparisons          pairs of answers that were judged in both orders
    judge/swap_consistency     share of these with the same verdict in both orders
    judge/first_preference     of the labels that are no tie, share for the answer shown first
    minus
                               share for the one shown second; 0 without position bias
    judge/length_correlation   of a response's reward and its characters, within problems
    (Pearson)
    judge/tied_groups          share of the problems whose judged responses all have one reward
    judge/over_reference       of the comparisons with a reference, those won minus those lost

Ties and lengths are of comparisons and of rubrics, the others of comparisons alone.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from data_schemas.verdicts import SCORE_TOLERANCE, Verdict
from tasks.gym.judging.comparison_prompt import Label, swap_label

_LABELS = re.compile(r"as A: (A|B|TIE), as B: (A|B|TIE)")
MOSTLY_TIED = 0.9
"""Share of tied groups from which a phase warns."""
MOST_OVER = 0.1
"""Wins over references minus losses, as a share, above which a phase warns [no paper's]."""
Judged = tuple[str, Verdict]
"""A response with its verdict."""


def judge_bias(groups: Sequence[Sequence[Judged]]) -> dict[str, float]:
    """Measure the bias of a judge.

    Args:
        groups: judged responses, problem by problem.

    Returns:
        By name; {} if nothing was judged. A share or correlation of nothing is 0.
    """
    scored_groups = [[one for one in group if one[1].score is not None] for group in groups]
    scored_groups = [group for group in scored_groups if group]
    if not scored_groups:
        return {}
    labels = [
        (Label(as_a), Label(as_b))
        for group in scored_groups
        for _, verdict in group
        for as_a, as_b in _LABELS.findall(verdict.detail)
    ]
    agreed = sum(as_a is swap_label(as_b) for as_a, as_b in labels)
    preferences = [label for pair in labels for label in pair if label is not Label.TIE]
    first = preferences.count(Label.A)
    several = [group for group in scored_groups if len(group) > 1]
    tied = [group for group in several if np.ptp(_rewards(group)) <= SCORE_TOLERANCE]
    # In the other modes a detail says what else was compared.
    reasons = Counter(
        verdict.reason
        for group in scored_groups
        for _, verdict in group
        if _LABELS.fullmatch(verdict.detail)
    )
    return {
        "judge/comparisons": float(len(labels)),
        "judge/swap_consistency": agreed / max(1, len(labels)),
        "judge/first_preference": (2 * first - len(preferences)) / max(1, len(preferences)),
        "judge/length_correlation": _length_correlation(several),
        "judge/tied_groups": len(tied) / max(1, len(several)),
        "judge/over_reference": (reasons["wins"] - reasons["loses"]) / max(1, reasons.total()),
    }


def complaints(bias: Mapping[str, float], last: Mapping[str, float]) -> Iterator[str]:
    """Say that a judge trained little or nothing, and that it taught what references are not.

    Where the label follows the place, the orders disagree, and a wrong answer gets the half that a
    right one gets for being like the reference: every group is tied.

    Args:
        bias: of all steps.
        last: of the last ones, as `judge_bias` names them; {} if nothing was judged.
    """
    tied, over = bias.get("judge/tied_groups", 0.0), last.get("judge/over_reference", 0.0)
    if tied >= MOSTLY_TIED:
        yield (
            f"the judge gave {100 * tied:.0f} % of the groups one reward, which trains nothing; it "
            f"says the same in both orders in {100 * bias['judge/swap_consistency']:.0f} % of its "
            "comparisons and prefers the first answer by "
            f"{100 * bias['judge/first_preference']:+.0f} points. Teach it more comparisons, or "
            "use another one"
        )
    if over > MOST_OVER:
        yield (
            "at the end the judge prefers answers to their references: "
            f"{100 * over:+.0f} points of its comparisons. Either the references are poor, or the "
            "policy has learned what the judge does not see: read such answers on the live page, "
            "and trust a score that the judge does not give"
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
