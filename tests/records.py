"""Records for tests: a test gives what it is about, the rest is filled in."""

from typing import Any, TypeVar

from pydantic import BaseModel

from data_schemas.ledgers import GroupOutcome, LedgerRow
from data_schemas.reports import EvaluationReport, GateRecord, MismatchDecision, SuiteScore
from data_schemas.rows import Demonstration, Domain, Message, Parent, Problem, Role
from data_schemas.samples import SampleResult
from data_schemas.sources import RawFile
from data_schemas.statements import ExecutionRecord, Statement


def problem_of(prompt: str | tuple[Message, ...], answer: str, **others: Any) -> Problem:
    """A problem in maths in English, verified by `final_answer`.

    Args:
        prompt: what the user asks, or all messages.
        answer: gold, as JSON.
        others: further fields, or other ones.
    """
    messages = (Message(role=Role.USER, content=prompt),) if isinstance(prompt, str) else prompt
    fields: dict[str, Any] = {
        "id": "test/1",
        "domain": Domain.MATHS,
        "language": "en",
        "verifier": "final_answer",
        "source": "test",
        "source_row": "0" * 64,
    }
    return Problem(messages=messages, answer=answer, **fields | others)


RecordT = TypeVar("RecordT", bound=BaseModel)
FILLED: dict[type[BaseModel], dict[str, Any]] = {
    Statement: {
        "settings": "{}",
        "code": ("c" * 64,),
        "environment": "e" * 64,
        "inputs": (),
        "outputs": (),
        "facts": {},
    },
    ExecutionRecord: {
        "statement": "s",
        "seconds": 1.0,
        "cpu_seconds": 1.0,
        "rows_in": 0,
        "rows_out": 0,
        "run_id": "",
    },
    EvaluationReport: {
        "checkpoint": "c" * 64,
        "truncated_share": 0.0,
        "mean_response_tokens": 1.0,
        "mean_entropy_nats": None,
    },
    SampleResult: {
        "problem_id": "p",
        "domain": Domain.MATHS,
        "language": "en",
        "source": "test",
        "sample": 0,
        "text": "",
        "reason": "scored",
        "tokens": 1,
        "truncated": False,
        "surprisal_nats": None,
    },
    GateRecord: {
        "step": 1,
        "decision": MismatchDecision.PROCEED,
        "reason": "",
        "k3": 0.0,
        "mean_abs_logprob": 0.0,
        "extreme_share": 0.0,
        "effective_share": 1.0,
        "route_disagreement": None,
        "probe_logprob": 0.0,
    },
    LedgerRow: {
        "step": 1,
        "round": 0,
        "problem_id": "p",
        "domain": Domain.MATHS,
        "outcome": GroupOutcome.NON_ZERO_VARIANCE,
        "rollouts": 2,
        "prompt_tokens": 5,
        "draft_tokens": 0,
        "saved_tokens": 0,
        "solved": 1,
        "abstained": 0,
        "mean_score": 0.5,
        "advantage_mass": 1.0,
        "pass_rate_change": 0.0,
    },
    Demonstration: {
        "id": "d",
        "parent": Parent.REASONING,
        "domain": Domain.MATHS,
        "language": "en",
        "source": "test",
        "source_row": "0" * 64,
    },
    RawFile: {"limit": 0, "source": 0},
}
"""Fields that most tests of a record have no interest in."""


def filled(record: type[RecordT], **fields: Any) -> RecordT:
    """A record with these fields, and the others as FILLED has them."""
    return record(**FILLED[record] | fields)


def suite_score(accuracy: float, **others: Any) -> SuiteScore:
    """The score of a suite of 100 problems, four samples each, 0.05 on both sides of it certain."""
    fields: dict[str, Any] = {
        "suite": "all",
        "problems": 100,
        "samples": 4,
        "low": accuracy - 0.05,
        "high": accuracy + 0.05,
        "score": accuracy,
        "pass_at_k": accuracy,
        "abstained": 0,
    }
    return SuiteScore(accuracy=accuracy, **fields | others)
