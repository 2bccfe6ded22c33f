"""Reward functions for other trainers: verl, TRL and slime ask the HTTP endpoint.

Imports the standard library only, so that a trainer can load this file by its path, without this
project. EACHPROMPT_REWARDS is the address of the endpoint, EACHPROMPT_REWARDS_TOKEN its token.
"""

import asyncio
import json
import os
import urllib.request
from collections.abc import Sequence
from typing import Any

ADDRESS = "EACHPROMPT_REWARDS"
TOKEN = "EACHPROMPT_REWARDS_TOKEN"
TIMEOUT_S = 1800.0
"""For a request that waits while others are scored."""


def score(rows: Sequence[dict[str, Any]]) -> list[float | None]:
    """Return the score of every row, in order; None is an abstention.

    Raises:
        OSError: the endpoint cannot be reached, or does not accept the rows.
    """
    headers = {"Content-Type": "application/json"}
    if token := os.environ.get(TOKEN):
        headers["Authorization"] = f"Bearer {token}"
    address = os.environ.get(ADDRESS, "http://127.0.0.1:8787")
    body = json.dumps({"rows": list(rows)}).encode()
    request = urllib.request.Request(f"{address}/v1/score", body, headers)
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as reply:
        return [verdict["score"] for verdict in json.load(reply)["verdicts"]]


async def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: Any,
    extra_info: dict[str, Any] | None = None,
    **kwargs: Any,
) -> dict[str, float]:
    """Score one response for verl; the verifier is `extra_info["verifier"]`, or the data source.

    verl has no abstention: it becomes a reward of 0, and `abstained` is 1 among the extra rewards.
    """
    del kwargs
    info = extra_info or {}
    row = {
        "verifier": info.get("verifier", data_source),
        "answer": ground_truth,
        "response": solution_str,
        "language": info.get("language", "en"),
    }
    (reward,) = await asyncio.to_thread(score, [row])
    return {"score": reward or 0.0, "abstained": float(reward is None)}


def reward(
    completions: Sequence[Any],
    verifier: Sequence[str],
    answer: Sequence[Any],
    **kwargs: Any,
) -> list[float | None]:
    """Score a batch for TRL; the data set has columns `verifier` and `answer`.

    TRL leaves a completion out of its group's mean and spread if its reward is None.
    """
    languages = kwargs.get("language") or ["en"] * len(completions)
    texts = [c if isinstance(c, str) else c[-1]["content"] for c in completions]
    return score(
        [
            {"verifier": name, "answer": gold, "response": text, "language": language}
            for name, gold, text, language in zip(verifier, answer, texts, languages, strict=True)
        ]
    )


async def custom_rm(args: Any, samples: Any, **kwargs: Any) -> Any:
    """Score one sample for slime, or with --group-rm a group; metadata names the verifier.

    slime removes a sample from the loss if `remove_sample` is set; its reward of 0 remains in its
    group's mean.
    """
    del args, kwargs
    group = samples if isinstance(samples, list) else [samples]
    rows = [
        {
            "verifier": sample.metadata["verifier"],
            "answer": sample.label,
            "response": sample.response,
            "language": sample.metadata.get("language", "en"),
        }
        for sample in group
    ]
    result = await asyncio.to_thread(score, rows)
    for sample, value in zip(group, result, strict=True):
        sample.remove_sample = sample.remove_sample or value is None
    rewards = [value or 0.0 for value in result]
    return rewards if isinstance(samples, list) else rewards[0]
