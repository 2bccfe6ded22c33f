"""Verdicts that are wrong on purpose, at known rates: a verifier by path, for studies alone.

Whether a verdict is replaced depends on the problem and the whole response, so that the same
response gets the same verdict, as the contract of verifiers says; another one with the same answer
may get another. Abstentions and the verdicts of partly right responses that are not replaced stay.
"""

import json
from collections.abc import Sequence

from pydantic import Field

from data_schemas.pass_rates import GradedProblem
from data_schemas.rows import Problem
from data_schemas.study import InjectedNoise
from data_schemas.verdicts import Verdict, scored
from tasks.gym.protocol import Gold, check_against_gold
from tasks.gym.table import PLAIN
from tasks.plugins import pin, reference_to
from tasks.store.files import canonical_json, sha256_bytes


class NoisyGold(Gold):
    """The gold of another verifier, and how often its verdicts are replaced."""

    verifier: str
    answer: str
    noise: InjectedNoise = Field(strict=False)


def verify(problem: Problem, response: str) -> Verdict:
    """Score a response with the verifier of the gold, and replace the verdict at its rates."""

    def check(gold: NoisyGold, response: str) -> Verdict:
        inner = problem.model_copy(update={"verifier": gold.verifier, "answer": gold.answer})
        verdict = PLAIN[gold.verifier](inner, response)
        if verdict.score is None:
            return verdict
        noise = gold.noise
        rate = noise.false_negative if verdict.solved else noise.false_positive
        if _draw(noise.seed, problem.id, response) >= rate:
            return verdict
        return scored(1.0 - verdict.solved, "injected_error", f"was {verdict.reason}")

    return check_against_gold(problem, response, NoisyGold, check)


def with_noise(problems: Sequence[GradedProblem], noise: InjectedNoise) -> list[GradedProblem]:
    """Let the problems of the noisy verifiers be scored with errors; the others stay."""
    return [
        problem.model_copy(
            update={
                "verifier": pin(reference_to(verify)),
                "answer": canonical_json(
                    NoisyGold(verifier=problem.verifier, answer=problem.answer, noise=noise)
                ).decode(),
            }
        )
        if problem.verifier in noise.verifiers
        else problem
        for problem in problems
    ]


def _draw(seed: int, problem: str, response: str) -> float:
    """Return a number in [0, 1) that is uniform over responses."""
    digest = sha256_bytes(json.dumps([seed, problem, response]).encode())
    return int(digest[:13], 16) / 16**13
