"""Order of rollouts by expected response length.

Source: CompassMax (length-based load balancing): short drafts estimate the lengths, the longest
go first. Here a prompt's own record is used first, then its domain's; drafts are generated only
without a record and only if the order matters, that is if there are more requests than slots.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from data_schemas.rollouts import Rollout
from tasks.algorithms.scheduling import longest_first, makespan
from tasks.engines.protocols import Request, RolloutEngine, Sampling

DRAFT_TOKENS = 16
"""Tokens of a draft; CompassMax gives no number."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """Expected response length of every prompt, and the cost of its estimation."""

    tokens: list[float]
    draft_tokens: list[int]
    """0 where no draft was generated."""


def forecast(
    lengths: Sequence[float | None],
    requests: Sequence[Request],
    engine: RolloutEngine,
    sampling: Sampling,
) -> Forecast:
    """Use recorded lengths; draft the other prompts, if the order of the requests matters.

    A draft that ends gives the length. If it does not end, the response is only known to be longer,
    and the token limit is used, so that it starts early.
    """
    limit = float(sampling.max_new_tokens)
    sizes = [
        len(request.prompt_tokens) + (limit if tokens is None else min(tokens, limit))
        for request, tokens in zip(requests, lengths, strict=True)
    ]
    slots = engine.slots(float(np.mean(sizes)) if sizes else 1.0)
    waves = sum(request.num_samples for request in requests) / max(1, slots)
    guesses = {index: limit for index, tokens in enumerate(lengths) if tokens is None}
    # What has begun is longer than a draft.
    unknown = [index for index in guesses if not len(requests[index].response_tokens)]
    drafted = [0] * len(requests)
    if unknown and waves > 1.0:
        trials = [
            # Under the name of its place: the same prompt may be there twice.
            Request(str(index), requests[index].prompt_tokens, 1)
            for index in unknown
        ]
        short = Sampling(
            max_new_tokens=min(DRAFT_TOKENS, sampling.max_new_tokens),
            temperature=sampling.temperature,
            seed=sampling.seed,
            record_routes=False,
            top_p=sampling.top_p,
            top_k=sampling.top_k,
        )
        for draft in engine.generate(trials, short):
            index = int(draft.problem_id)
            drafted[index] = len(draft.response_tokens)
            if drafted[index] < short.max_new_tokens:
                guesses[index] = float(drafted[index])
    return Forecast(
        tokens=[
            min(tokens, limit) if tokens is not None else guesses[index]
            for index, tokens in enumerate(lengths)
        ],
        draft_tokens=drafted,
    )


def order_requests(
    requests: Sequence[Request], predicted: Sequence[float], segment_tokens: int = 0
) -> list[Request]:
    """Put the requests with the most tokens left first, and note these for the balance of replicas.

    Args:
        predicted: expected length of a whole response of every request, in tokens.
        segment_tokens: most tokens of a response in one call; 0 = no limit.
    """
    remaining = [
        max(1.0, tokens - len(request.response_tokens))
        for request, tokens in zip(requests, predicted, strict=True)
    ]
    remaining = [min(tokens, segment_tokens or tokens) for tokens in remaining]
    return [
        replace(requests[index], expected_tokens=remaining[index])
        for index in longest_first(remaining)
    ]


def oldest_first(requests: Sequence[Request], steps: Mapping[str, int], due: int) -> list[Request]:
    """Put what was drawn in earlier steps first; what was drawn by step `due` has to end."""
    ordered = sorted(requests, key=lambda request: steps[request.problem_id])
    return [replace(request, due=steps[request.problem_id] <= due) for request in ordered]


def schedule_metrics(
    predicted: Sequence[float], lengths: Sequence[float], slots: int
) -> dict[str, float]:
    """Makespan of the rollouts in the slots, and the bounds over all orders.

    Args:
        predicted: expected length of every response, in tokens.
        lengths: actual lengths.
        slots: sequences that decode at once.
    """
    if not lengths:
        return {}
    scheduled = makespan(lengths, longest_first(predicted), max(1, slots))
    as_drawn = makespan(lengths, range(len(lengths)), max(1, slots))
    error = float(np.mean(np.abs(np.asarray(predicted) - np.asarray(lengths))))
    return {
        "schedule/makespan_tokens": scheduled.tokens,
        "schedule/makespan_as_drawn_tokens": as_drawn.tokens,
        "schedule/lower_bound_tokens": scheduled.lower_bound,
        "schedule/graham_bound_tokens": scheduled.graham_bound,
        "schedule/prediction_error_tokens": error,
    }


def draw_metrics(
    requests: Sequence[Request],
    expected: Forecast,
    new: Mapping[str, Sequence[Rollout]],
    engine: RolloutEngine,
) -> dict[str, float]:
    """Compare the schedule of a draw with its bounds; the first draw represents the step."""
    length = {
        (key, rollout.sample): float(rollout.num_sampled)
        for key, rollouts in new.items()
        for rollout in rollouts
    }
    # With 'free', some have not begun.
    guess = {
        place: tokens
        for request, tokens in zip(requests, expected.tokens, strict=True)
        for index in range(request.num_samples)
        if (place := (request.problem_id, request.first_sample + index)) in length
    }
    sizes = [
        len(request.prompt_tokens)
        + len(request.response_tokens)
        + length[request.problem_id, request.first_sample + index]
        for request in requests
        for index in range(request.num_samples)
        if (request.problem_id, request.first_sample + index) in length
    ]
    slots = engine.slots(float(np.mean(sizes)) if sizes else 1.0)
    return schedule_metrics(list(guess.values()), [length[place] for place in guess], slots)
