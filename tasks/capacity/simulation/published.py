"""The published step of CompassMax-V3-Thinking on 256 H100s, and what the simulator makes of it.

Published (CompassMax A.9): the parts of a step and cumulative speed-ups; neither seconds nor
layout nor lengths. Assumed here: the shape of the model, `FULL_SCALE`'s trainer, bf16 engines over
16 GPUs whose trainer leaves them the memory, a mean length of a quarter of the limit, and matrix
products at 0.4 of the peak. Fitted: bandwidth and seconds per reward, to the ratios of rollouts and
rewards to the update. The number of GPUs of an engine was chosen with the speed-ups in view: they
are consistent with the published ones, not predicted.
"""

import math
from dataclasses import dataclass, replace

from data_schemas.machine_settings import Precision
from tasks.capacity.plan import Plan, plan_of_preset
from tasks.capacity.simulation.lengths import MEAN_SHARE, assumed
from tasks.capacity.simulation.policies import simulate
from tasks.capacity.simulation.rates import NODE_GPUS, Efficiency
from tasks.capacity.simulation.steps import Outcome, Policy

SHARES = {
    "rollout": 0.61,
    "update": 0.154,
    "reward": 0.135,
    "old_logprobs": 0.095,
    "weight_sync": 0.004,
}
SPEED_UPS = {
    "multi-detokenisation": 1.16,
    "reward overlap": 1.17,
    "fp8 rollouts": 1.52,
    "length-based load balancing": 1.66,
}
"""Cumulative."""
FITTED = ("rollout", "update", "reward")
"""Their two ratios fix two constants."""
_PLAIN = Policy(longest_first=False, overlapped_rewards=False)
_ROUNDS = 6


@dataclass(frozen=True, slots=True)
class Comparison:
    """One published number and ours."""

    name: str
    published: float
    simulated: float
    fitted: bool = False

    @property
    def error(self) -> float:
        """Return the relative error."""
        return self.simulated / self.published - 1.0


def baseline() -> Plan:
    """Return the assumed plan of the published step."""
    plan = plan_of_preset("full_scale")
    changes = {"rollout_tensor": 2 * NODE_GPUS, "rollout_memory": 0.9}
    return replace(plan, precision=Precision.BF16, layout=plan.layout.model_copy(update=changes))


def step_of(plan: Plan, policy: Policy, efficiency: Efficiency) -> Outcome:
    """Simulate the published workload; that weights are hashed in a sync is not published."""
    limit = plan.work.response_tokens
    efficiency = replace(efficiency, hash_bytes_s=math.inf)
    return simulate(plan, policy, assumed(limit), efficiency, MEAN_SHARE * limit)


def fit() -> Efficiency:
    """Fit bandwidth and seconds per reward to the ratios of three parts of the step."""
    plan, found = baseline(), Efficiency()
    nodes = plan.gpus // NODE_GPUS
    for _ in range(_ROUNDS):
        parts = step_of(plan, _PLAIN, found).parts
        wanted = parts["update"] * SHARES["rollout"] / SHARES["update"]
        reward = parts["update"] * SHARES["reward"] / SHARES["update"]
        found = replace(
            found,
            bandwidth=found.bandwidth * parts["rollout"] / wanted,
            reward_s=nodes * reward / plan.work.sequences,
        )
    return found


def baseline_tokens_s(efficiency: Efficiency) -> float:
    """Return the tokens per second of the published step before its speed-ups, simulated."""
    plain = step_of(baseline(), _PLAIN, efficiency)
    return plain.tokens / plain.seconds


def compare_step(efficiency: Efficiency) -> list[Comparison]:
    """Compare the parts of the step, and the speed-ups.

    The first speed-up has no model: what share of the rewards is detokenisation is not published.
    """
    plan = baseline()
    plain = step_of(plan, _PLAIN, efficiency)
    found = [
        Comparison(name, share, plain.parts[name] / plain.seconds, fitted=name in FITTED)
        for name, share in SHARES.items()
    ]
    overlap = replace(_PLAIN, overlapped_rewards=True)
    fp8 = replace(plan, precision=Precision.FP8)
    changes = {
        "reward overlap": (plan, overlap),
        "fp8 rollouts": (fp8, overlap),
        "length-based load balancing": (fp8, Policy()),
    }
    return found + [
        Comparison(name, SPEED_UPS[name], plain.seconds / step_of(*change, efficiency).seconds)
        for name, change in changes.items()
    ]
