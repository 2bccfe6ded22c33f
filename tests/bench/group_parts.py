"""What stopping a group early would save, from the ledgers of phases with groups of one size.

    python -m tests.bench.group_parts ledger.parquet ...

The distribution of the prompts' pass rates is estimated from the numbers solved, without a form
(maximum likelihood on a grid, by expectation-maximisation). For each rule all outcomes of a group
are enumerated.

Gain per token compares rules by what a step learns from equal tokens: (E[pq A])^2 / (E[V] tokens),
with p the pass rate, q = 1 - p, A = E[sum of advantage x (reward - p)] and V the sum of the squared
advantages. It is the squared ratio of signal to noise in the gradient of the mean pass rate, where
responses to all prompts have score functions of the same size that no two prompts share. Rewards
are pass or fail.
"""

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.stats import binom

from data_schemas.ledger import LedgerRow
from tasks.algorithms.advantages import group_advantages, two_part_advantages
from tasks.errors import DataError
from tasks.formats.ledger_file import read_ledger
from tasks.platform.command_line import run

RATES = np.linspace(0.0, 1.0, 101)
ITERATIONS = 2000


@dataclass(frozen=True, slots=True)
class Prompts:
    """Share of the prompts and mean length of a response, by pass rate of RATES."""

    shares: NDArray[np.float64]
    tokens: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Expected:
    """Of a rule, per prompt."""

    responses: float
    tokens: float
    contrast: float
    """Share of the groups that are trained with different rewards."""
    gain_per_token: float


def estimate(rows: Sequence[LedgerRow]) -> Prompts:
    """Estimate pass rates from the first draws whose responses all have a verdict.

    Raises:
        DataError: there are none.
    """
    first = [row for row in rows if row.rollouts and not row.round and not row.abstained]
    if not first:
        raise DataError("the ledger has no group whose responses all have a verdict")
    ((size, _),) = Counter(row.rollouts for row in first).most_common(1)
    first = [row for row in first if row.rollouts == size]
    solved = np.bincount([row.solved for row in first], minlength=size + 1)
    lengths = np.bincount(
        [row.solved for row in first], [row.generated_tokens / size for row in first], size + 1
    )
    chance_KR = binom.pmf(np.arange(size + 1)[:, None], size, RATES)
    shares = np.full(len(RATES), 1.0 / len(RATES))
    posterior_KR = chance_KR
    for _ in range(ITERATIONS):
        posterior_KR = chance_KR * shares
        posterior_KR /= posterior_KR.sum(axis=1, keepdims=True)
        shares = solved @ posterior_KR / len(first)
    return Prompts(shares, lengths @ posterior_KR / np.maximum(solved @ posterior_KR, 1e-300))


def expected(prompts: Prompts, first: int, size: int, *, own: bool, on_contrast: bool) -> Expected:
    """Enumerate the groups of a rule.

    Args:
        prompts: as estimated.
        first: responses after which a group may stop; `size` = never.
        size: of a whole group.
        own: the advantages of groups in two parts; otherwise GRPO's, of the group that there is.
        on_contrast: groups with contrast go on; otherwise those without.
    """
    responses, contrast, slope, noise = np.zeros((4, len(RATES)))
    for begun in range(first + 1):
        goes_on = first < size and (0 < begun < first) == on_contrast
        rest = size - first if goes_on else 0
        for more in range(rest + 1):
            chance = binom.pmf(begun, first, RATES) * binom.pmf(more, rest, RATES)
            rewards = [1.0] * begun + [0.0] * (first - begun) + [1.0] * more
            rewards += [0.0] * (rest - more)
            advantages = _advantages(rewards, first, own=own)
            responses += chance * len(rewards)
            contrast += chance * (0 < sum(rewards) < len(rewards))
            slope += chance * (advantages @ (np.array(rewards)[:, None] - RATES))
            noise += chance * (advantages @ advantages)
    mean = prompts.shares
    tokens = float(mean @ (responses * prompts.tokens))
    learned = float(mean @ (RATES * (1.0 - RATES) * slope))
    return Expected(
        float(mean @ responses),
        tokens,
        float(mean @ contrast),
        learned**2 / (float(mean @ noise) * tokens),
    )


def _advantages(rewards: Sequence[float], first: int, *, own: bool) -> NDArray[np.float64]:
    scores = torch.tensor([list(rewards)], dtype=torch.float64)
    valid, none = torch.ones_like(scores, dtype=torch.bool), torch.zeros_like(scores)
    if own:
        found = two_part_advantages(scores, none, valid, first_P=torch.tensor([first]))
    else:
        found = group_advantages(scores, none, valid, std_floor=0.0)
    return found[0].numpy()


def table_of(prompts: Prompts) -> Table:
    """Compare rules with GRPO's groups of eight."""
    table = Table(title="expected per prompt", box=None, title_justify="left")
    heads = ("responses", "tokens", "contrast", "per contrast", "gain per token")
    table.add_column("group", no_wrap=True)
    for head in heads:
        table.add_column(head, justify="right")
    eight = expected(prompts, 8, 8, own=False, on_contrast=True).gain_per_token
    for name, first, size, own, on_contrast in (
        ("8, GRPO", 8, 8, False, True),
        ("8", 8, 8, True, True),
        ("16", 16, 16, True, True),
        ("2, 8 if they differ", 2, 8, True, True),
        ("4, 8 if they differ", 4, 8, True, True),
        ("4, 16 if they differ", 4, 16, True, True),
        ("4, 8 if they are equal", 4, 8, True, False),
    ):
        found = expected(prompts, first, size, own=own, on_contrast=on_contrast)
        table.add_row(
            name,
            f"{found.responses:.2f}",
            f"{found.tokens:.0f}",
            f"{found.contrast:.1%}",
            f"{found.tokens / found.contrast:.0f}",
            f"{found.gain_per_token / eight:.2f}",
        )
    return table


def main(arguments: Sequence[str]) -> None:
    """Read ledgers and print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.group_parts",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("ledgers", type=Path, nargs="+", help="ledger.parquet of a phase")
    options = parser.parse_args(arguments)
    rows = [row for path in options.ledgers for row in read_ledger(path)]
    Console(highlight=False).print(table_of(estimate(rows)))


if __name__ == "__main__":
    run(main)
