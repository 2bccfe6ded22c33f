"""A step's tokens before any term acts on them, for tests of single terms."""

import torch

from data_schemas.rl_settings import TermSettings
from tasks.algorithms.losses.surrogate import sequence_mean_weights, unclipped
from tasks.algorithms.losses.table import whole_step
from tasks.algorithms.terms.protocol import StepSignal


def signal_of(mask_NT: torch.Tensor, **tensors: object) -> StepSignal:
    """The tokens of a mask: every tensor is 0 and every weight 1, but for those that are named."""
    zero_NT = torch.zeros(mask_NT.shape)
    values = {
        "response_NT": mask_NT,
        "old_NT": zero_NT,
        "rollout_prompt_NT": zero_NT,
        "rollout_NT": zero_NT,
        "entropy_NT": zero_NT,
        "reference_NT": zero_NT,
        "zero_variance_N": torch.zeros(len(mask_NT), dtype=torch.bool),
        "correct_N": torch.zeros(len(mask_NT), dtype=torch.bool),
        "totals": whole_step(mask_NT),
        "advantages_NT": zero_NT,
        "plan": unclipped(mask_NT, sequence_mean_weights(mask_NT)),
        "weights_NT": torch.ones(mask_NT.shape),
        "kept_NT": mask_NT,
    }
    return StepSignal(**(values | tensors))


def terms_of(*terms: dict[str, object]) -> tuple[TermSettings, ...]:
    """Terms as settings list them."""
    return tuple(TermSettings.model_validate(one) for one in terms)
