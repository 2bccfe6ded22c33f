"""Name to verifier, and the boundary between verifiers and whoever asks.

Nothing that happens in a verifier turns into a score of 0: an unexpected error becomes an
abstention named after it.
"""

import logging
from collections import Counter
from collections.abc import Sequence

from data_schemas.prompts import Problem
from data_schemas.verdicts import Verdict, abstain
from tasks.errors import SettingsError
from tasks.rewards import (
    bfcl_calls,
    choice,
    code_tests,
    extraction,
    final_answer,
    instruction_rules,
    reference_text,
    tool_calls,
)
from tasks.rewards.protocol import Verifier

_LOG = logging.getLogger(__name__)

VERIFIERS: dict[str, Verifier] = {
    "final_answer": final_answer.verify,
    "choice": choice.verify,
    "extraction": extraction.verify,
    "tool_calls": tool_calls.verify,
    "bfcl_calls": bfcl_calls.verify,
    "instruction_rules": instruction_rules.verify,
    "code_tests": code_tests.verify,
    "reference_text": reference_text.verify,
}


def score_batch(problems: Sequence[Problem], responses: Sequence[str]) -> list[Verdict]:
    """Judge `responses[i]` as an answer to `problems[i]`, in order.

    Raises:
        SettingsError: a problem names a verifier that does not exist, or the user has to act
            before anything can be judged.
    """
    for problem in problems:
        if problem.verifier not in VERIFIERS:
            raise SettingsError(
                f"{problem.id}: verifier {problem.verifier!r} does not exist. "
                f"Use one of {', '.join(sorted(VERIFIERS))}."
            )
    return [
        _score(problem, response) for problem, response in zip(problems, responses, strict=True)
    ]


def counts(verdicts: Sequence[Verdict]) -> dict[str, int]:
    """Count verdicts per reason; abstentions carry the prefix `abstained:`."""
    reasons = Counter(f"abstained:{v.reason}" if v.abstained else v.reason for v in verdicts)
    return dict(sorted(reasons.items()))


def close() -> None:
    """End every process the verifiers have started; the next verdict that needs one starts it."""
    code_tests.close()
    final_answer.close()


def _score(problem: Problem, response: str) -> Verdict:
    try:
        return VERIFIERS[problem.verifier](problem, response)
    except SettingsError:
        raise
    except Exception as error:  # noqa: BLE001 - the one boundary: our failure is not the model's
        _LOG.warning("verifier %s failed on %s", problem.verifier, problem.id, exc_info=error)
        return abstain(f"verifier_error:{type(error).__name__}", str(error)[:200])
