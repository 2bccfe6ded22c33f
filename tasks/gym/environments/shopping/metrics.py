"""EComAgentBench's metrics of finished purchases (arXiv 2606.17698).

Accuracy counts a purchase as right if the target was recommended, or a product that meets all
wishes. Satisfaction is the share of met wishes over all purchases, in all and by kind, source and
intent. Differs: a wish that no rule decides is in no share; where their judge is asked, it is.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

from tasks.gym.environments.shopping.purchase import Result


def metrics(results: Sequence[Result]) -> dict[str, Any]:
    """Compute the metrics of at least one purchase.

    Returns:
        Shares in [0, 1]; `undecided` is the number of purchases that are neither right nor wrong by
        rule, which are left out of `accuracy`.

    Raises:
        ValueError: there is no purchase.
    """
    if not results:
        raise ValueError("no purchase")
    right = [result.is_right for result in results]
    decided = [one for one in right if one is not None]
    wishes = [wish for result in results for wish in result.wishes if wish["met"] is not None]
    by_intent: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        by_intent[result.intent].append(result)
    return {
        "purchases": len(results),
        "undecided": len(results) - len(decided),
        "accuracy": _share(decided),
        "exact_match": _share(result.is_target for result in results),
        "satisfaction": _share(wish["met"] for wish in wishes),
        "by_type": _shares(wishes, "type"),
        "by_source": _shares(wishes, "info_source"),
        "by_intent": {
            intent: _share(one.is_right for one in some if one.is_right is not None)
            for intent, some in sorted(by_intent.items())
        },
        "finished": _share(result.finished for result in results),
        "profile_read": _share(result.profiles > 0 for result in results),
        "mean_calls": sum(result.calls for result in results) / len(results),
        "median_calls": median(result.calls for result in results),
        "mean_questions": sum(result.questions for result in results) / len(results),
    }


def _shares(wishes: Sequence[Any], name: str) -> dict[str, float]:
    return {
        value: _share(wish["met"] for wish in wishes if wish[name] == value)
        for value in sorted({wish[name] for wish in wishes})
    }


def _share(flags: Iterable[Any]) -> float:
    values = [bool(flag) for flag in flags]
    return sum(values) / len(values) if values else 0.0
