"""A step under several policies: which layout each needs, whether that fits, and what it takes."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from data_schemas.machine_settings import Precision
from tasks.capacity.budget_table import HEADROOM, describe_fit
from tasks.capacity.plan import Plan
from tasks.errors import SettingsError
from tasks.lab.simulator.lengths import Draw
from tasks.lab.simulator.rates import NODE_GPUS, Efficiency, rates_of
from tasks.lab.simulator.steps import Policy, SimulatedBatch, Simulation, SimulationResult

GPU_HOUR_USD = 2.5
"""Assumed: price of an H100 for an hour."""
CLAIMS = tuple(share / 100 for share in range(90, 25, -5))
"""Shares of a GPU that a rollout engine may claim, largest first."""
SIMULATED_STEPS = 2
FREE_STEPS = 8
"""The same where a step may train more or fewer tokens than it generates."""
RUNS = "shared queue"
"""What colocated engines do; prompts are dealt to dedicated ones, the longest first."""
BOUND = 4
"""Updates that a response of the free-running policy may span."""


@dataclass(frozen=True, slots=True)
class PolicyVariant:
    """A policy and the plan it runs on."""

    name: str
    plan: Plan
    policy: Policy


@dataclass(frozen=True, slots=True)
class VariantResult:
    """What became of a variant."""

    variant: PolicyVariant
    outcome: SimulationResult | None
    reason: str
    """Why it cannot run; '' if it can."""

    @property
    def seconds(self) -> float:
        """Return the seconds of a step; infinity if it cannot run."""
        return self.outcome.seconds if self.outcome else math.inf

    @property
    def usd(self) -> float:
        """Return the price of a step; 0 if it cannot run."""
        seconds = self.outcome.seconds if self.outcome else 0.0
        return seconds * self.variant.plan.gpus * GPU_HOUR_USD / 3600

    @property
    def tokens_s(self) -> float:
        """Return the response tokens that are trained per second; 0 if it cannot run."""
        return self.outcome.tokens / self.outcome.seconds if self.outcome else 0.0


def variants(plan: Plan) -> list[PolicyVariant]:
    """List the policies that are compared; RUNS is what the pipeline does."""
    other = Precision.BF16 if plan.precision is Precision.FP8 else Precision.FP8
    dedicated = dedicated_plan(plan)
    segment = max(1, plan.work.response_tokens // 4)
    half = max(1, segment // 2)
    return [
        PolicyVariant("as drawn", plan, Policy(longest_first=False)),
        PolicyVariant("longest first", plan, Policy()),
        PolicyVariant(RUNS, plan, Policy(on_demand=True)),
        PolicyVariant(
            "rewards after rollouts", plan, Policy(on_demand=True, overlapped_rewards=False)
        ),
        PolicyVariant(
            f"segments of {segment:,} tokens",
            plan,
            Policy(on_demand=True, segment_tokens=segment),
        ),
        PolicyVariant(
            f"segments of {half:,} tokens", plan, Policy(on_demand=True, segment_tokens=half)
        ),
        PolicyVariant("free-running", plan, Policy(staleness=BOUND, free_running=True)),
        PolicyVariant(
            f"{other.value} rollouts",
            with_largest_claim(replace(plan, precision=other)),
            Policy(on_demand=True),
        ),
        PolicyVariant("dedicated GPUs, in turn", dedicated, Policy()),
        PolicyVariant("dedicated, one step ahead", dedicated, Policy(staleness=1)),
        PolicyVariant("dedicated, free-running", dedicated, Policy(staleness=1, free_running=True)),
    ]


def dedicated_plan(plan: Plan) -> Plan:
    """Return the plan with engines on half of every node's GPUs."""
    half = max(1, min(plan.gpus, NODE_GPUS) // 2)
    changes = {
        "dedicated_rollout_gpus": half,
        "rollout_tensor": min(plan.layout.rollout_tensor, half),
    }
    return with_largest_claim(replace(plan, layout=plan.layout.model_copy(update=changes)))


def with_largest_claim(plan: Plan) -> Plan:
    """Return the plan with the largest claim of its engines that fits, or the smallest one."""
    best = _with_claim(plan, CLAIMS[-1])
    try:
        budget = best.budget()
    except SettingsError:
        return best
    beside = budget.phases["rollout"] - budget.rollout.claim
    most = 1.0 - HEADROOM - beside / budget.gpu
    fitting = (_with_claim(plan, claim) for claim in CLAIMS if claim <= most)
    return next((one for one in fitting if not reason_against(one)), best)


def _with_claim(plan: Plan, claim: float) -> Plan:
    return replace(plan, layout=plan.layout.model_copy(update={"rollout_memory": claim}))


def reason_against(plan: Plan) -> str:
    """Return why a plan cannot run; '' if it can."""
    try:
        budget = plan.budget()
    except SettingsError as error:
        return str(error)
    return "" if budget.fits(HEADROOM) else describe_fit(budget)


def compare(
    candidates: Sequence[PolicyVariant], draw: Draw, efficiency: Efficiency, mean_tokens: float
) -> Iterator[VariantResult]:
    """Simulate variants on the same lengths.

    Args:
        mean_tokens: of a response.
    """
    for variant in candidates:
        plan = variant.plan
        if reason := reason_against(plan):
            yield VariantResult(variant, None, reason)
            continue
        outcome = simulate(plan, variant.policy, draw, efficiency, mean_tokens)
        yield VariantResult(variant, outcome, "")


def simulate(
    plan: Plan, policy: Policy, draw: Draw, efficiency: Efficiency, mean_tokens: float
) -> SimulationResult:
    """Simulate steps of a plan, whether it fits or not."""
    rates = rates_of(plan, efficiency, plan.work.prompt_tokens + mean_tokens)
    dedicated = plan.layout.dedicated_rollout_gpus > 0
    steps = FREE_STEPS if policy.free_running and not dedicated else SIMULATED_STEPS
    return Simulation(rates, batch_of(plan), draw, dedicated=dedicated).run(policy, steps)


def batch_of(plan: Plan) -> SimulatedBatch:
    """Return what a step of a plan rolls out."""
    work = plan.work
    return SimulatedBatch(
        prompts=max(1, work.sequences // plan.group_size),
        group_size=plan.group_size,
        prompt_tokens=work.prompt_tokens,
        max_tokens=work.response_tokens,
    )
