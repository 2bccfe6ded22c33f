"""Input and output records of a scorer."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from data_schemas.prompts import Problem
from data_schemas.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class Finished:
    """One response, submitted as soon as the rollout engine has finished it."""

    problem: Problem
    group: str
    """Samples with the same key are compared with each other; a prompt may be drawn twice."""
    sample: int
    group_size: int
    tokens: NDArray[np.int32]
    """Of the response, end token included; the scorer turns them into text."""


@dataclass(frozen=True, slots=True)
class Scored:
    """The result for one response."""

    text: str
    verdict: Verdict
    seconds: float
    """Verifier time of this response; its share if a group is scored as a whole."""
    judge_calls: int
