"""A small phase on the tiny model: rewards come from a rule on the text, so it learns fast."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from data_schemas.reports import GateRecord, StepReport, StepTiming
from data_schemas.rl_settings import RLSettings
from data_schemas.rollouts import ResponseScore, Rollout, RouterTrace, ScoringRequest, StopReason
from data_schemas.rows import Domain, Problem
from data_schemas.verdicts import Verdict, scored
from tasks.engines.chat import load_tokenizer, response_text
from tasks.rl import state
from tasks.rl.phase import Phase
from tasks.rl.step_snapshot import StepSnapshot
from tests.records import filled, problem_of

Rule = Callable[[Problem, str], Verdict]


def even(_: Problem, response: str) -> Verdict:
    """Full marks for an even number of characters; about half of random text."""
    return scored(float(len(response) % 2 == 0), "rule")


@dataclass
class RuleScorer:
    """A scorer without processes: a rule on the text."""

    tokenizer: object
    rule: Rule = even
    waiting: list[ScoringRequest] = field(default_factory=list)
    canaries: int = 0

    def submit(self, item: ScoringRequest) -> None:
        self.waiting.append(item)

    def gather(self) -> dict[tuple[str, int], ResponseScore]:
        items, self.waiting = self.waiting, []
        texts = [response_text(self.tokenizer, item.tokens.tolist()) for item in items]
        return {
            (item.group, item.sample): ResponseScore(text, self.rule(item.problem, text), 0.001, 0)
            for item, text in zip(items, texts, strict=True)
        }

    def check_canaries(self, verifiers) -> None:
        self.canaries += 1


def problem(number: int, domain: Domain = Domain.MATHS) -> Problem:
    return problem_of(
        f"say {number}",
        '{"value":"1"}',
        id=f"rule/{domain.value}/{number}",
        domain=domain,
        source="rule",
    )


def rollout(sample: int = 0, length: int = 4, **changes: object) -> Rollout:
    """A response of `length` tokens to a prompt of two, with routes of one layer."""
    values = {
        "problem_id": "p",
        "sample": sample,
        "prompt_tokens": np.array([1, 2], dtype=np.int32),
        "response_tokens": np.arange(length, dtype=np.int32),
        "logprobs": np.full(length, -1.0 - sample, dtype=np.float32),
        "trace": RouterTrace(np.tile(np.array([[0, 1]], dtype=np.uint8), (length + 1, 1, 1))),
        "stop_reason": StopReason.END,
        "policy_version": 3,
    }
    return Rollout(**(values | changes))


def content_of(snapshot: StepSnapshot) -> tuple[object, ...]:
    """All that a step was computed from and became, but for what its rollouts cost."""
    rollouts = [
        (
            rollout.sample,
            rollout.response_tokens.tobytes(),
            rollout.logprobs.tobytes(),
            rollout.trace.experts_TLK.tobytes(),
            None if rollout.sampled is None else rollout.sampled.tobytes(),
            rollout.stop_reason,
            rollout.policy_version,
            item.verdict,
        )
        for entry in snapshot.groups
        for item in entry.group.rollouts
        for rollout in (item.rollout,)
    ]
    arrays = {**snapshot.inputs, **snapshot.outputs}
    weights = snapshot.weights_before, snapshot.weights_after
    return rollouts, {name: array.tobytes() for name, array in arrays.items()}, weights


@pytest.fixture
def problems():
    return tuple(problem(number) for number in range(12))


RULES = (
    ("Lowercase.", "change_case:english_lowercase"),
    ("In quotes.", "startend:quotation"),
    ("No commas.", "punctuation:no_comma"),
)


@pytest.fixture
def rubrics(problems):
    """Problems with three criteria, which programs check."""
    criteria = [
        {
            "criterion": text,
            "points": 1.0,
            "verifier": "instruction_rules",
            "answer": {"instruction_id_list": [rule], "kwargs": [{}]},
        }
        for text, rule in RULES
    ]
    gold = json.dumps({"criteria": criteria, "aggregation": "ruscarl"})
    change = {"verifier": "rule_rubric", "answer": gold}
    return tuple(one.model_copy(update=change) for one in problems)


@pytest.fixture
def make_rollout():
    return rollout


@pytest.fixture
def scorer(tiny_moe):
    def build(rule: Rule = even) -> RuleScorer:
        return RuleScorer(load_tokenizer(tiny_moe), rule)

    return build


@pytest.fixture
def settings():
    return RLSettings(
        domains={Domain.MATHS: 1.0},
        steps=4,
        prompts_per_step=3,
        group_size=4,
        max_new_tokens=6,
        learning_rate=1e-3,
    )


@pytest.fixture
def phase_in(tiny_moe, problems, settings):
    def build(folder, **changes):
        return Phase(settings.model_copy(update=changes), tiny_moe, problems, folder, "code-a")

    return build


class Number:
    """A trainer whose weights are one number."""

    def __init__(self, value: int = 0) -> None:
        self.value = value

    def save(self, folder: Path) -> None:
        (folder / "trainer.pt").write_text(str(self.value))

    def restore(self, folder: Path) -> None:
        self.value = int((folder / "trainer.pt").read_text())


def step_record(step: int) -> state.StepRecord:
    return state.StepRecord(
        report=StepReport(step=step, policy_version=step, metrics={"reward/mean": 0.1 * step}),
        timing=StepTiming(step=step, seconds={}),
        ledger=(),
        costs=(),
        gate=filled(GateRecord, step=step),
    )


@pytest.fixture
def number():
    return Number()


@pytest.fixture
def small_phase():
    """Do steps whose trainer is their number, and commit each."""

    def run(folder: Path, first: int, last: int) -> None:
        for step in range(first, last + 1):
            state.write_step(folder, step_record(step))
            now = state.RunState(step=step, updates=2 * step, code=("code-a",))
            state.commit(folder, now, Number(step), {"state.npz": b"%d" % step})

    return run
