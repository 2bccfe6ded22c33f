"""Which layouts of a plan fit its GPUs, and which of them takes a simulated step in least time."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from operator import attrgetter, itemgetter

from rich.table import Table

from tasks.capacity.plan import Plan
from tasks.lab.simulator.lengths import Draw
from tasks.lab.simulator.rates import NODE_GPUS, Efficiency, EngineRates, TaskRates, rates_of
from tasks.lab.simulator.steps import Policy, Simulation, SimulationResult
from tasks.lab.simulator.variants import (
    SIMULATED_STEPS,
    PolicyVariant,
    VariantResult,
    batch_of,
    compare,
    reason_against,
    with_largest_claim,
)

POLICY = Policy(on_demand=True)
"""What engines do that share GPUs with the trainer."""
OWN = "own"


def fitting_layouts(plan: Plan) -> Iterator[Plan]:
    """List the layouts that fit, each with the largest claim of its engines.

    Divisions over tensors, pipeline stages and experts, recomputation and the GPUs of an engine
    vary. Tensors and engines stay in a node, engines share the trainer's GPUs, and precisions,
    context parallelism and micro-batches stay as they are.
    """
    model, gpus = plan.model, plan.gpus
    choices = {
        "tensor": _divisors(math.gcd(model.heads, model.key_value_heads, gpus), NODE_GPUS),
        "pipeline": _divisors(math.gcd(model.layers, gpus)),
        "expert": _divisors(math.gcd(model.experts or 1, gpus)),
        "recompute": (False, True),
        "rollout_tensor": _divisors(math.gcd(model.heads, gpus), NODE_GPUS),
    }
    for chosen in product(*choices.values()):
        changes = dict(zip(choices, chosen, strict=True)) | {"dedicated_rollout_gpus": 0}
        layout = plan.layout.model_copy(update=changes)
        candidate = with_largest_claim(replace(plan, layout=layout))
        if not reason_against(candidate):
            yield candidate


def fastest_layouts(
    plan: Plan, draw: Draw, efficiency: Efficiency, mean_tokens: float, count: int
) -> list[VariantResult]:
    """Simulate the layouts that fit; return the fastest, with the plan's own among them.

    Rollouts of the same engines are simulated once: what a trainer takes is added to them.

    Args:
        mean_tokens: of a response.
        count: of the fastest layouts; the plan's own is one more, last if it does not fit.
    """
    rollouts: dict[tuple[EngineRates, int], SimulationResult] = {}
    estimates: list[tuple[float, Plan]] = []
    for candidate in fitting_layouts(plan):
        rates = rates_of(candidate, efficiency, plan.work.prompt_tokens + mean_tokens)
        batch = batch_of(candidate)
        engines = rates.engine, rates.engines
        if engines not in rollouts:
            alone = TaskRates(
                *engines, score_s=0.0, update_s=0.0, sync_s=0.0, reward_s=rates.reward_s
            )
            simulation = Simulation(alone, batch, draw, dedicated=False)
            rollouts[engines] = simulation.run(POLICY, SIMULATED_STEPS)
        found, responses = rollouts[engines], batch.prompts * batch.group_size
        fed = found.tokens + responses * batch.prompt_tokens
        training = (rates.score_s + rates.update_s) * fed + rates.rank_zero_s * responses
        step = found.seconds + training + rates.sync_s + rates.commit_s
        estimates.append((step, candidate))
    fastest = sorted(estimates, key=itemgetter(0))[:count]
    others = [PolicyVariant("", one, POLICY) for _, one in fastest if one != plan]
    own = PolicyVariant(OWN, plan, Policy() if plan.layout.dedicated_rollout_gpus else POLICY)
    rows = compare((own, *others), draw, efficiency, mean_tokens)
    return sorted(rows, key=attrgetter("seconds"))


def layout_table(rows: Sequence[VariantResult]) -> Table:
    """List layouts in the given order."""
    table = Table(title="fastest layouts", title_justify="left", title_style="", box=None)
    heads = ("TP", "PP", "EP", "recompute", "rollout TP", "claim")
    for head in ("", *heads, "step, s", "rollouts", "training"):
        table.add_column(head, justify="right" if head else "left")
    for row in rows:
        layout = row.variant.plan.layout
        divisions = str(layout.tensor), str(layout.pipeline), str(layout.expert)
        recompute = "on" if layout.recompute else "off"
        engines = str(layout.rollout_tensor), f"{layout.rollout_memory:.2f}"
        times = ("does not fit",)
        if row.outcome:
            parts = row.outcome.parts
            training = parts["old_logprobs"] + parts["update"]
            times = (f"{one:,.0f}" for one in (row.seconds, parts["rollout"], training))
        style = "bold" if row.variant.name else ""
        table.add_row(row.variant.name, *divisions, recompute, *engines, *times, style=style)
    return table


def _divisors(number: int, most: int | None = None) -> tuple[int, ...]:
    return tuple(one for one in range(1, (most or number) + 1) if number % one == 0)
