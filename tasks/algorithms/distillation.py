"""Distillation on the policy's own responses: the teacher's surprise as an advantage per token.

Source: the sampled reverse KL. With y drawn by the policy p, and A = log q(y) - log p(y) of a
teacher q without gradient, the mean of -A d log p(y) over y ~ p is the gradient of KL(p || q). In
SDPO (arXiv 2601.20802) q is p behind a prompt with more in it; for small models the advantage is
0.9 A_group + 0.1 A. SRPO (arXiv 2604.02288) takes A alone where there is a teacher, and weighs it
with exp(-H) of the teacher's entropy H, at a mean of 1. In on-policy distillation q is another
model; MOPD (arXiv 2606.30406) has one for each domain.
Differs: log p is that before the step's updates, as in every policy ratio here; A is bounded.
Inferred: SRPO's mean is over the taught tokens of a step, and weights A after its bound [I].
Letters: N sequences, T tokens.
"""

from dataclasses import dataclass

import torch

from tasks.algorithms.terms.protocol import StepEffect, StepSignal

FLAT = -0.5
"""Advantage of the control; the paper's other form falls with the entropy from there to -1."""
LOW_SHARE = 0.2
"""Share of the sampled tokens, those with the lowest probability, that the control is about."""


@dataclass(frozen=True, slots=True)
class Blend:
    """How a teacher's advantages join those of the rewards."""

    weight: float
    """Share of the teacher's, 0 to 1; the others have 1 - weight."""
    bound: float
    """Largest |A|, nats."""
    control: bool = False
    """No teacher: the flat advantage of arXiv 2608.31046 in the place of A."""
    by_entropy: bool = False
    """Weigh A by the teacher's entropy (SRPO)."""


@dataclass(frozen=True, slots=True)
class TeacherSignal:
    """What a teacher says of a step's responses."""

    blend: Blend
    teacher_NT: torch.Tensor
    """Log-probabilities, nats; 0 where nothing is taught, and of the control, which asks none."""
    taught_NT: torch.Tensor
    entropy_NT: torch.Tensor | None = None
    """Entropies of the teacher, nats, where the blend weighs by it."""

    def weigh(self, step: StepSignal) -> StepEffect:
        """Blend the advantages of the rewards with its own."""
        advantages_NT = with_teacher(
            step.advantages_NT,
            step.old_NT,
            self.teacher_NT,
            self.taught_NT,
            self.blend,
            self.entropy_NT,
        )
        return StepEffect(advantages_NT=advantages_NT)

    def without_contrast(self, advantages_N: torch.Tensor) -> torch.Tensor:
        """Mark the taught tokens [N, T] with nothing of the group-relative advantages [N]."""
        has_contrast_N = (1.0 - self.blend.weight) * advantages_N != 0
        return self.taught_NT & ~has_contrast_N[:, None]


def with_teacher(
    advantages_NT: torch.Tensor,
    old_NT: torch.Tensor,
    teacher_NT: torch.Tensor,
    taught_NT: torch.Tensor,
    blend: Blend,
    entropy_NT: torch.Tensor | None = None,
) -> torch.Tensor:
    """Blend the advantages of taught tokens with those of a teacher; leave the others as they are.

    Args:
        advantages_NT: of the rewards.
        old_NT: log-probabilities of the policy before the step, nats.
        teacher_NT: of the teacher on the same tokens; anything where nothing is taught.
        taught_NT: bool, tokens with a teacher.
        blend: weights and bound.
        entropy_NT: of the teacher, nats; read where the blend weighs by it.

    Returns:
        Advantages [N, T]. A teacher that says what the policy says adds 0; a token whose logits
        overflowed in one of the passes stays as it is.
    """
    if blend.control:
        own_NT = FLAT * least_probable(old_NT, taught_NT, LOW_SHARE)
    else:
        gap_NT = teacher_NT - old_NT
        taught_NT = taught_NT & gap_NT.isfinite()
        own_NT = gap_NT.clamp(-blend.bound, blend.bound)
    if blend.by_entropy:
        assert entropy_NT is not None, "a teacher has entropies, the control does not weigh"
        taught_NT = taught_NT & entropy_NT.isfinite()
        own_NT = own_NT * entropy_weights(entropy_NT, taught_NT)
    mixed_NT = (1.0 - blend.weight) * advantages_NT + blend.weight * own_NT
    return torch.where(taught_NT, mixed_NT, advantages_NT)


def entropy_weights(entropy_NT: torch.Tensor, mask_NT: torch.Tensor) -> torch.Tensor:
    """Weigh the masked tokens with exp(-H), at a mean of 1 over them (SRPO).

    Args:
        entropy_NT: nats, finite inside the mask.
        mask_NT: bool.

    Returns:
        [N, T], 0 outside the mask; without a token zeros.
    """
    weights_NT = torch.zeros(entropy_NT.shape)
    # The mean divides any common factor away, and a softmax has none that underflows.
    weights_NT[mask_NT] = torch.softmax(-entropy_NT[mask_NT], dim=0) * mask_NT.sum()
    return weights_NT


def least_probable(old_NT: torch.Tensor, mask_NT: torch.Tensor, share: float) -> torch.Tensor:
    """Mark the share of masked tokens with the lowest log-probability; ties are all marked."""
    values = old_NT[mask_NT]
    count = int(share * len(values))
    if count == 0:
        return torch.zeros_like(mask_NT)
    return mask_NT & (old_NT <= values.kthvalue(count).values)
