"""Draw a seeded mixture of problems over the domains.

Problems are selected by a hash of seed and id, so adding one problem to the set hardly
changes the draw.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from data_schemas.rows import Domain, Problem
from tasks.curation.items import ticket


def draw(
    problems: Sequence[Problem],
    weights: Mapping[Domain, float],
    count: int,
    seed: int,
    name: str = "mixture",
) -> list[Problem]:
    """Draw at most `count` problems, without repetition, in their given order.

    Args:
        problems: with unique ids.
        weights: share of each domain, in any unit. A domain without weight is left out;
            without any weights the draw ignores the domains.
        count: maximum number of problems.
        seed: determines which problems are drawn.
        name: of the draw. Two draws of one name are nested: who wins the first wins the second.
    """
    shuffled = sorted(problems, key=lambda problem: ticket(name, seed, problem.id))
    if weights:
        available: dict[Domain, list[Problem]] = defaultdict(list)
        for problem in shuffled:
            available[problem.domain].append(problem)
        sizes = {domain: len(group) for domain, group in available.items()}
        places = quotas(sizes, weights, count)
        ids = {p.id for domain, size in places.items() for p in available[domain][:size]}
    else:
        ids = {problem.id for problem in shuffled[:count]}
    return [problem for problem in problems if problem.id in ids]


def quotas(
    available: Mapping[Domain, int], weights: Mapping[Domain, float], count: int
) -> dict[Domain, int]:
    """Distribute `count` places by weight; places that a domain cannot fill go to the others.

    Places are rounded by the largest remainder; ties go to the alphabetically first domain.
    """
    open_domains = [d for d in sorted(available) if available[d] and weights.get(d, 0.0) > 0.0]
    counts: dict[Domain, int] = {}
    remaining = min(count, sum(available[domain] for domain in open_domains))
    while open_domains:
        total = sum(weights[domain] for domain in open_domains)
        shares = {domain: remaining * weights[domain] / total for domain in open_domains}
        short = [domain for domain in open_domains if available[domain] <= shares[domain]]
        if not short:
            return counts | _round_shares(shares, remaining)
        for domain in short:
            counts[domain] = available[domain]
            remaining -= available[domain]
            open_domains.remove(domain)
    return counts


def _round_shares(shares: Mapping[Domain, float], places: int) -> dict[Domain, int]:
    whole = {domain: int(share) for domain, share in shares.items()}
    by_remainder = sorted(shares, key=lambda domain: (whole[domain] - shares[domain], domain))
    for domain in by_remainder[: places - sum(whole.values())]:
        whole[domain] += 1
    return whole
