"""An endless seeded mixture of rows over domains, restored from a position.

RL draws its prompts from it, and a weighted epoch of fine-tuning its demonstrations.
"""

import math
from collections.abc import Mapping

import numpy as np

from data_schemas.rows import Domain

UNTILTED = 0.1
"""Part of the shares that group DRO leaves as they were asked for [I]."""


def robust_shares(
    shares: Mapping[Domain, float], losses: Mapping[Domain, float], eta: float
) -> dict[Domain, float]:
    """Tilt the shares of domains towards those with a large loss (group DRO, arXiv 2601.19280).

    q = 0.9 x (share x exp(eta x loss), normalised) + 0.1 x share. Equal losses change nothing.
    Differs: the paper's loss is the clipped surrogate, whose mean over a normalised group is 0
    before an update whatever its pass rate; here it is 1 - pass rate.

    Args:
        shares: share of every domain, in any unit.
        losses: of every domain.
        eta: temperature; 0 changes nothing.
    """
    whole = sum(shares.values())
    tilted = {name: share * math.exp(eta * losses[name]) for name, share in shares.items()}
    total = sum(tilted.values())
    return {
        name: (1.0 - UNTILTED) * tilted[name] / total + UNTILTED * share / whole
        for name, share in shares.items()
    }


class MixtureStream:
    """Rows in a seeded order: domains by weight, each domain reshuffled on every pass.

    The row at a position depends on the sizes, the weights and the seed only, so a resumed run
    neither skips nor repeats one.
    """

    def __init__(
        self,
        sizes: Mapping[Domain, int],
        weights: Mapping[Domain, float],
        seed: int,
        position: int = 0,
    ) -> None:
        """Start at a position.

        Args:
            sizes: rows of every domain that has a weight, at least one.
            weights: share of each domain, in any unit.
            seed: of the order.
            position: rows that were taken before.
        """
        self._sizes = sizes
        self._weights = {domain: weights[domain] for domain in sorted(weights)}
        self._seed = seed
        self._taken = dict.fromkeys(self._weights, 0)
        self._orders: dict[Domain, tuple[int, list[int]]] = {}
        self.position = 0
        for _ in range(position):
            self._next_domain()

    def take(self) -> tuple[Domain, int]:
        """Return the next row: its domain, and its number in the domain."""
        domain = self._next_domain()
        size = self._sizes[domain]
        lap, index = divmod(self._taken[domain] - 1, size)
        if self._orders.get(domain, (-1, []))[0] != lap:
            order = np.random.default_rng([self._seed, lap, list(Domain).index(domain)])
            self._orders[domain] = (lap, order.permutation(size).tolist())
        return domain, self._orders[domain][1][index]

    def _next_domain(self) -> Domain:
        """The domain that is furthest behind its share."""
        self.position += 1
        total = sum(self._weights.values())
        domain = max(
            self._weights,
            key=lambda name: self._weights[name] / total * self.position - self._taken[name],
        )
        self._taken[domain] += 1
        return domain
