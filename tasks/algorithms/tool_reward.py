"""Correctness of tool calls with optimal assignment (CompassMax after ToolRL, arXiv 2504.13958).

Differs: ToolRL's released code assigns calls greedily in the order of the truth; here the
assignment is optimal.
Differs: values are compared as JSON: 1 equals 1.0, true does not equal 1.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

WORST = -3.0
BEST = 3.0


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool's name and its JSON arguments."""

    name: str
    parameters: Mapping[str, Any]


def tool_reward(
    truth: Sequence[ToolCall], predicted: Sequence[ToolCall] | None, *, well_formed: bool
) -> float:
    """Return R = R_format + R_correct in [-3, 4]; `well_formed` is R_format = 1."""
    return float(well_formed) + tool_correctness(truth, predicted)


def tool_correctness(truth: Sequence[ToolCall], predicted: Sequence[ToolCall] | None) -> float:
    """Return R_correct in [-3, 3].

    0 if the truth has no call (another verifier then scores the response); -3 if `predicted` is
    None, which means that the calls could not be parsed.
    """
    if not truth:
        return 0.0
    if predicted is None:
        return WORST
    best = 1.0 + sum(1 + len(call.parameters) for call in truth)
    return (BEST - WORST) * raw_match(truth, predicted) / best + WORST


def raw_match(truth: Sequence[ToolCall], predicted: Sequence[ToolCall]) -> float:
    """Overlap of names plus the best one-to-one sum of call similarities."""
    names = jaccard(Counter(c.name for c in truth), Counter(c.name for c in predicted))
    if not truth or not predicted:
        return names
    similarity = np.array([[call_similarity(g, p) for p in predicted] for g in truth])
    if 1 in similarity.shape:
        return names + float(similarity.max())
    from scipy.optimize import linear_sum_assignment  # takes a second to import

    rows, columns = linear_sum_assignment(similarity, maximize=True)
    return names + float(similarity[rows, columns].sum())


def call_similarity(truth: ToolCall, predicted: ToolCall) -> float:
    """Overlap of keys plus the number of right values; 0 if the names differ."""
    if truth.name != predicted.name:
        return 0.0
    keys = jaccard(Counter(truth.parameters.keys()), Counter(predicted.parameters.keys()))
    right = sum(
        key in predicted.parameters and same_json(value, predicted.parameters[key])
        for key, value in truth.parameters.items()
    )
    return keys + right


def jaccard(a: Counter[str], b: Counter[str]) -> float:
    """Multiset Jaccard; 1 if both are empty, 0 if one is."""
    if not a and not b:
        return 1.0
    overlap = (a & b).total()
    return overlap / (a.total() + b.total() - overlap)


def same_json(a: Any, b: Any) -> bool:
    """Compare JSON values with their types; the order of object keys does not matter."""
    match a, b:
        case (bool(), _) | (_, bool()):
            return a is b
        case (int() | float(), int() | float()):
            return a == b
        case list(), list():
            return len(a) == len(b) and all(same_json(x, y) for x, y in zip(a, b, strict=True))
        case dict(), dict():
            return a.keys() == b.keys() and all(same_json(a[key], b[key]) for key in a)
        case _:
            return type(a) is type(b) and a == b
