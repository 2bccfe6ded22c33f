"""Customer service cases, and an engine that says what it is told."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from data_schemas.rollouts import Rollout, RouterTrace, StopReason
from data_schemas.rows import Domain, Message, Problem, Role
from tasks.algorithms.kept_sets import end_to_end
from tasks.curation.marketplace.items import call_block
from tasks.curation.marketplace.shop import POLICY, TOOLS, Order, ShopRequest
from tasks.engines.chat import load_tokenizer, render_response
from tasks.engines.protocols import Request, Sampling
from tasks.store.files import canonical_json
from tasks.training.foundation.base import shipped_base
from tests import records

RECORDS = (
    Order(412, 7, "red mug", "new"),
    Order(733, 7, "blue mug", "home"),
    Order(734, 7, "black kite", "sent"),
    Order(900, 8, "red mug", "new"),
)


def call(name: str, argument: str, value: object) -> str:
    return call_block(name, {argument: value})


LOOK_UP = call("orders", "customer", 7)


def problem_of(case: ShopRequest, name: str = "shop/1") -> Problem:
    return records.problem_of(
        (
            Message(role=Role.SYSTEM, content=POLICY),
            Message(role=Role.USER, content=f"{TOOLS}\n{case.request}"),
        ),
        canonical_json(case.answer).decode(),
        id=name,
        domain=Domain.TOOL_USE,
        verifier="shop",
        source="shop",
    )


@pytest.fixture
def case() -> Callable[..., ShopRequest]:
    """Return a case of customer 7, who no longer wants some orders."""
    return lambda *wishes: ShopRequest(1, "Customer 7 does not want it.", RECORDS, wishes)


@pytest.fixture(scope="session")
def tokenizer():
    return load_tokenizer(shipped_base())


@dataclass
class Speaker:
    """An engine whose samples say given turns; every token has log-probability -1, one route.

    Sets that are to be recorded have one token each.
    """

    tokenizer: object
    turns: Sequence[str]
    stop: StopReason = StopReason.END
    calls: list[list[Request]] = field(default_factory=list)
    said: dict[tuple[str, int], int] = field(default_factory=dict)

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> Iterator[Rollout]:
        self.calls.append(list(requests))
        for request in requests:
            for sample in range(request.first_sample, request.first_sample + request.num_samples):
                rollout = self._speak(request, sample)
                sets = end_to_end(list(rollout.response_tokens[:, None]))
                yield replace(rollout, kept=sets if sampling.record_kept else None)

    def _speak(self, request: Request, sample: int) -> Rollout:
        turn = self.said.get((request.problem_id, sample), 0)
        self.said[request.problem_id, sample] = turn + 1
        tokens = render_response(self.tokenizer, self.turns[turn])
        fed = len(request.prompt_tokens) + len(request.response_tokens) + len(tokens) - 1
        return Rollout(
            problem_id=request.problem_id,
            sample=sample,
            prompt_tokens=request.prompt_tokens,
            response_tokens=tokens,
            logprobs=np.full(len(tokens), -1.0, dtype=np.float32),
            trace=RouterTrace(np.full((fed, 1, 1), turn, dtype=np.uint8)),
            stop_reason=self.stop,
            policy_version=3,
        )
