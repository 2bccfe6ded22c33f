"""Effect of the order of the prompts, simulated from a phase's ledger.

The embedded engine decodes all responses of a step at once, so the order has no effect there. Here
the responses of every step's first draw are assigned to fewer slots in three orders: as drawn;
longest first by predicted length (the prompt's last mean length, else its domain's mean so far);
and longest first by true length, which a scheduler cannot know.

Differs from a real run: the ledger holds the mean length of a group, so its responses are treated
as equally long; and slots advance one token per decoding step, whatever their number.
"""

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field

from data_schemas.ledger import LedgerRow
from data_schemas.prompts import Domain
from tasks.algorithms.scheduling import longest_first, makespan

SLOTS = 48
"""A quarter of the responses of a default step."""


class Makespans(BaseModel):
    """Decoding steps of a training step on a limited number of slots, mean over the steps."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    as_drawn: float
    longest_first: float
    known_lengths: float = Field(description="longest first by the true lengths")


def makespans(rows: Sequence[LedgerRow], slots: int = SLOTS) -> Makespans:
    """Simulate every step's first draw in three orders; the first step has no predictions.

    All are 0 if there is no second step.
    """
    first_draws = [row for row in rows if row.round == 0 and row.rollouts > 0]
    steps = sorted({row.step for row in first_draws})
    own: dict[str, float] = {}
    domains: dict[Domain, list[float]] = {}
    found: list[tuple[float, float, float]] = []
    for step in steps:
        drawn = [row for row in first_draws if row.step == step]
        if own:
            found.append(_one_step(drawn, [_expected(row, own, domains) for row in drawn], slots))
        for row in drawn:
            own[row.problem_id] = _length(row)
            domains.setdefault(row.domain, []).append(_length(row))
    means = [sum(column) / len(found) for column in zip(*found, strict=True)] or [0.0] * 3
    return Makespans(as_drawn=means[0], longest_first=means[1], known_lengths=means[2])


def _one_step(
    drawn: Sequence[LedgerRow], expected: Sequence[float], slots: int
) -> tuple[float, float, float]:
    owners = [place for place, row in enumerate(drawn) for _ in range(row.rollouts)]
    lengths = [_length(drawn[place]) for place in owners]
    guesses = [expected[place] for place in owners]
    orders = (range(len(lengths)), longest_first(guesses), longest_first(lengths))
    as_drawn, guessed, known = (makespan(lengths, order, slots).tokens for order in orders)
    return as_drawn, guessed, known


def _length(row: LedgerRow) -> float:
    return (row.generated_tokens - row.draft_tokens) / row.rollouts


def _expected(row: LedgerRow, own: dict[str, float], domains: dict[Domain, list[float]]) -> float:
    if row.problem_id in own:
        return own[row.problem_id]
    known = domains.get(row.domain) or [length for item in domains.values() for length in item]
    return sum(known) / len(known)
