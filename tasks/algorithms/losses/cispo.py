"""CISPO: every token keeps its gradient; its importance weight is capped and detached.

Source: MiniMax-M1 (arXiv 2506.13585) eq. 4 and 5: sg[clip(r)] * A * log pi, one mean over
all tokens of the batch. The paper sets no lower bound in effect, so there is none here
and `clip_low` is not used; the cap is 1 + clip_high.
Differs: TRL's `epsilon_high` is the cap itself, not its distance from 1.
Letters: N sequences, T tokens.
"""

from dataclasses import replace

from data_schemas.rl_settings import LossSettings
from tasks.algorithms.losses import dapo
from tasks.algorithms.losses.protocol import Plan, StepTokens
from tasks.algorithms.losses.surrogate import DETACHED, Clipped


def plan(step: StepTokens, settings: LossSettings) -> Plan:
    """DAPO's groups and weights; ratios are at least 0, so that a width of 1 is no lower bound."""
    return replace(dapo.plan(step, settings), clip_low_NT=step.mask_NT.float())


LOSS = Clipped(plan, ratio=lambda _: DETACHED)
