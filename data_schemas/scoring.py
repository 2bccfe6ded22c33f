"""What goes into a scorer and what comes back."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from data_schemas.prompts import Problem
from data_schemas.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class Finished:
    """One response, as soon as the rollout engine has finished it."""

    problem: Problem
    group: str
    """Samples with the same key are judged relative to each other; a prompt may be drawn twice."""
    sample: int
    group_size: int
    tokens: NDArray[np.int32]
    """Of the response, end token included; the scorer turns them into text."""


@dataclass(frozen=True, slots=True)
class Scored:
    """What became of it."""

    text: str
    verdict: Verdict
    seconds: float
    """Verifier time of this response; its share where a group is judged as a whole."""
    judge_calls: int
