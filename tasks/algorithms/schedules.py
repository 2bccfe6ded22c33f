"""Learning rate as a function of the update number (0-based)."""

import math


def warmup_constant(update: int, *, peak: float, warmup: int) -> float:
    """Rise linearly over `warmup` updates, from above 0, then stay constant."""
    return peak * min(1.0, (update + 1) / max(1, warmup))


def warmup_cosine(update: int, *, peak: float, warmup: int, total: int) -> float:
    """Rise linearly, then fall as a half cosine to zero at `total`."""
    if update < warmup:
        return peak * (update + 1) / warmup
    progress = (update - warmup) / max(1, total - warmup)
    return 0.5 * peak * (1.0 + math.cos(math.pi * min(1.0, progress)))
