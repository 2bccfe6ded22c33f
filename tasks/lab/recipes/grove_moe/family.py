"""Grove MoE as a family: what its config.json says, and the classes that open it.

Plugged in as a user's own architecture is (docs/extend.md).
"""

import math
from dataclasses import replace

from tasks.models.architectures import FAMILIES, Architecture, Config

GROVE_MOE = "grove_moe"
"""Model type."""


class GroveMoe:
    """A `Family`: Qwen3-MoE with an adjugate beside every group of experts."""

    def read(self, architecture: Architecture, config: Config) -> Architecture:
        """Read Qwen3-MoE, and number and size of the adjugates."""
        architecture = FAMILIES["qwen3_moe"].read(architecture, config)
        adjugates = config.get("num_chunk_experts", 0)
        active = architecture.routing.top_k if architecture.routing else 0
        return replace(
            architecture,
            only_embedded="adjugate experts",
            extra_experts=adjugates,
            extra_size=config.get("chunk_expert_intermediate_size", 0),
            extra_active=adjugates_per_token(architecture.num_experts, adjugates, active),
        )

    def register(self) -> None:
        """Let the Auto classes of transformers open it."""
        # Imported here: 2 s that stages without models are spared.
        from tasks.lab.recipes.grove_moe import model

        model.register()


def adjugates_per_token(experts: int, num_groups: int, active: int) -> float:
    """Expect this many adjugates per token, if every set of chosen experts is equally likely.

    0 without groups.
    """
    if not num_groups:
        return 0.0
    outside = math.comb(experts - experts // num_groups, active) / math.comb(experts, active)
    return num_groups * (1.0 - outside)
