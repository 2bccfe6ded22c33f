"""Earlier responses of the prompts, as drafts of their next rollouts.

With `engines.reuse`, a token's random number is a function of problem, sample and position, not of
the step. A newer policy that has changed little draws many of the same tokens from it, so a
prompt's newest responses are good drafts: those of grading first, then those of each step. The
engine verifies them (embedded/verified.py); none of their log-probabilities or routes is used.

With 'shared_noise' the random numbers are the same and nothing is reused: the rollouts are equal
byte for byte, and cost more.

A prompt that is drawn twice in a step has another stream the second time, so that its second group
is not a copy of the first.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from data_schemas.arrow import read_table, write_table
from data_schemas.machine_settings import Reuse
from data_schemas.rollouts import Rollout
from data_schemas.rows import Problem
from data_schemas.samples import RESPONSES, ResponseTokens
from tasks.engines.protocols import Request

NOISE_SEED = 0
"""Seed of the shared random numbers, in every phase: a phase with another order of prompts can
reuse, too. It is the default of GradingSettings.seed, whose responses have the same numbers."""
Responses = tuple[NDArray[np.int32], ...]
"""Responses of one stream, by sample."""


class EarlierResponses:
    """The newest responses of every stream; plain data, committed with the state of a run."""

    def __init__(self, reuse: Reuse, responses: Mapping[str, Responses]) -> None:
        self._reuse = reuse
        self._responses = dict(responses)
        self._step = 0
        self._drawn: Counter[str] = Counter()

    def stream(self, step: int, problem: Problem) -> str:
        """Name the random stream of a prompt's next group in a step; '' without reuse."""
        if self._reuse is Reuse.OFF:
            return ""
        if step != self._step:
            self._step, self._drawn = step, Counter()
        self._drawn[problem.id] += 1
        again = self._drawn[problem.id] - 1
        return f"{problem.id}\0{again}" if again else problem.id

    def requests(self, stream: str, requests: Sequence[Request]) -> list[Request]:
        """Add a group's stream and drafts to its requests."""
        drafts = self._responses.get(stream, ())
        return [
            replace(request, stream=stream, drafts=drafts[request.first_sample :])
            for request in requests
        ]

    def with_drafts(
        self, requests: Sequence[Request], drafts: Sequence[NDArray[np.int32]]
    ) -> list[Request]:
        """Let the first sample reuse the draft that estimated its length, where there is one."""
        if self._reuse is not Reuse.PREFIX:
            return list(requests)
        return [
            replace(request, drafts=(draft,)) if len(draft) and not request.drafts else request
            for request, draft in zip(requests, drafts, strict=True)
        ]

    def remember(self, stream: str, rollouts: Sequence[Rollout]) -> None:
        """Keep a group's responses, ordered by sample, in place of older ones.

        Where an older group had more samples, such as that of grading, the others are kept.
        """
        if self._reuse is Reuse.PREFIX:
            new = tuple(rollout.response_tokens for rollout in rollouts)
            self._responses[stream] = new + self._responses.get(stream, ())[len(new) :]

    def responses(self) -> dict[str, Responses]:
        """All responses, to be committed."""
        return dict(self._responses)


def read_responses(reuse: Reuse, folders: Sequence[Path]) -> dict[str, Responses]:
    """Read the responses of grading and of earlier phases; a later folder's replace an earlier's.

    A folder without them, such as a graded set of another engine, adds none; without reuse none
    are read.
    """
    responses: dict[str, Responses] = {}
    if reuse is not Reuse.PREFIX:
        return responses
    for path in (folder / RESPONSES for folder in folders):
        rows = read_table(path, ResponseTokens) if path.exists() else []
        rows.sort(key=lambda row: (row.stream, row.sample))
        for stream, samples in groupby(rows, key=lambda row: row.stream):
            responses[stream] = tuple(np.array(row.tokens, np.int32) for row in samples)
    return responses


def write_responses(folder: Path, responses: Mapping[str, Responses]) -> None:
    """Write responses for a later phase."""
    rows = (
        ResponseTokens(stream=stream, sample=sample, tokens=tuple(tokens.tolist()))
        for stream in sorted(responses)
        for sample, tokens in enumerate(responses[stream])
    )
    write_table(folder / RESPONSES, ResponseTokens, rows)
