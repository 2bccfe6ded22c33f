"""How a router of a mixture of experts turns its logits into experts and gates."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Routing:
    """The same for all MoE layers of a model; the formula is in tasks/algorithms/routing.py."""

    experts: int
    """Per layer."""
    top_k: int
    """Experts per token."""
    score: Literal["softmax", "sigmoid"] = "softmax"
    """Function of the logits, over all experts or each by itself."""
    renormalised: bool = True
    """Whether the scores of a token's experts are divided by their sum."""
    scale: float = 1.0
    """Factor of all gates (`routed_scaling_factor`)."""
    biased: bool = False
    """A bias per expert is added for the choice, and for nothing else (aux-loss-free balancing)."""
    groups: int = 1
    """Equal parts of the experts; a token's experts are of `kept_groups` of them."""
    kept_groups: int = 1
