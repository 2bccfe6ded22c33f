"""GRESO: skip by the prompt's own history of rewards (arXiv 2506.02177).

A prompt whose newest z groups in a row had zero variance is kept with probability e^z, so that a
prompt is never given up. There are no weights.
Differs: the paper moves e during training, apart for prompts that are too easy and too hard, until
zero-variance groups have a wanted share; here it is constant. Its adaptive batch is our stream,
which goes on until a step has its prompts. Grading counts as the first group.
Measured: beside the rules that ship, by the study `skips` (tasks/rl/TOKENS.md).
"""

from pydantic import Field

from tasks.algorithms.skips.protocol import Prospect, Skip


class Greso(Skip):
    """Keep what had contrast, and the rest ever more rarely."""

    explore: float = Field(
        default=0.5, gt=0.0, le=1.0, description="e, of a prompt after one flat group; 1 = no skips"
    )

    def keep_probability(self, prospect: Prospect) -> float:
        """Return the power of the chance by the flat groups in a row."""
        return self.explore**prospect.flat_groups
