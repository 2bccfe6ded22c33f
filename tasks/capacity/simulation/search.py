"""Find the layout and the policy that train most tokens per second on given GPUs.

A trainer matters to the engines beside it by the memory that it leaves them alone. So for every way
of running engines only those trainers are simulated than which no faster one leaves as much.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from operator import attrgetter, itemgetter

from data_schemas.machine_settings import Precision
from tasks.capacity.plan import Plan
from tasks.capacity.simulation.page import (
    BOUND,
    CLAIMS,
    RUNS,
    Row,
    Variant,
    compare,
    reason_against,
    with_largest_claim,
)
from tasks.capacity.simulation.rates import NODE_GPUS, Efficiency, trainer_rates
from tasks.capacity.simulation.steps import Draw, Policy

TENSOR = (1, 2, 4, 8)
PIPELINE = (1, 2, 4, 8)
EXPERT = (1, 8, 16)
ENGINE_TENSOR = (2, 4, 8)
"""Sizes that are tried; a model and its GPUs must be multiples of them."""
DEDICATED = (0, 2, 4, 6)
"""GPUs of a node for rollouts only."""


def search(plan: Plan, draw: Draw, efficiency: Efficiency, mean_tokens: float) -> list[Row]:
    """Simulate the best plans of every way of running engines; most tokens per second first.

    Engines are dealt prompts, longest first, or share a queue, with and without segments, or run
    freely; dedicated ones run freely. Reuse of earlier responses is not searched: no engine for
    GPUs has it (`RolloutEngines.reuse`), and what it saves depends on how often a prompt is drawn.
    """
    variants = [
        Variant(name, best, policy)
        for engines in _engine_plans(plan)
        for best in _best_trainers(engines, efficiency, mean_tokens)
        for name, policy in _policies(best)
    ]
    rows = [row for row in compare(variants, draw, efficiency, mean_tokens) if row.outcome]
    return sorted(rows, key=attrgetter("tokens_s"), reverse=True)


def _engine_plans(plan: Plan) -> Iterator[Plan]:
    """Yield the plan with every layout of engines."""
    precisions = (Precision.BF16, Precision.FP8)
    for tensor, dedicated, precision in product(ENGINE_TENSOR, DEDICATED, precisions):
        if dedicated % tensor or (dedicated and plan.gpus < NODE_GPUS):
            continue
        changes = {"rollout_tensor": tensor, "dedicated_rollout_gpus": dedicated}
        layout = plan.layout.model_copy(update=changes)
        yield replace(plan, precision=precision, layout=layout)


def _best_trainers(plan: Plan, efficiency: Efficiency, mean_tokens: float) -> Iterator[Plan]:
    """Yield the plan with the fastest trainer that fits, then those that leave engines more."""
    length = plan.work.prompt_tokens + mean_tokens
    timed: list[tuple[float, Plan]] = []
    for tensor, pipeline, expert, recompute in product(TENSOR, PIPELINE, EXPERT, (False, True)):
        changes = {
            "tensor": tensor,
            "pipeline": pipeline,
            "expert": expert,
            "recompute": recompute,
            "rollout_memory": CLAIMS[-1],
        }
        one = replace(plan, layout=plan.layout.model_copy(update=changes))
        timed.append((sum(trainer_rates(one, efficiency, length)), one))
    most = 0.0
    for _, one in sorted(timed, key=itemgetter(0)):
        whole = with_largest_claim(one)
        if whole.layout.rollout_memory > most and not reason_against(whole):
            most = whole.layout.rollout_memory
            yield whole


def _policies(plan: Plan) -> Iterator[tuple[str, Policy]]:
    if plan.layout.dedicated_rollout_gpus:
        for ahead in (1, BOUND):
            name = f"dedicated, free-running, {ahead} ahead"
            yield name, Policy(staleness=ahead, free_running=True)
        return
    part = max(1, plan.work.response_tokens // 4)
    yield "longest first", Policy()
    yield RUNS, Policy(on_demand=True)
    yield f"longest first, segments of {part:,} tokens", Policy(segment_tokens=part)
    yield f"{RUNS}, segments of {part:,} tokens", Policy(on_demand=True, segment_tokens=part)
    for bound in (1, 2, BOUND):
        name = f"free-running, staleness {bound}"
        yield name, Policy(staleness=bound, free_running=True)
