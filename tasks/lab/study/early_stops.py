"""Would a group be stopped in mid-rollout because its responses begin alike?

    python -m tasks.lab.study.early_stops GRADED_SET --out tasks/lab/study/early_stops.json

A group whose responses agree on their first tokens seems to become one without contrast. Graded
sets keep every response's tokens and how many were solved, so that the rule is judged without a
run: what it saves, and how many of the groups that it stops would have had contrast. If that share
is no smaller than among all groups, agreement foresees nothing and stopping only loses groups.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, Field

from data_schemas.arrow import read_table
from data_schemas.pass_rates import GradedProblem
from data_schemas.rows import GRADED
from data_schemas.samples import RESPONSES, ResponseTokens
from tasks.errors import DataError
from tasks.lab.study import evidence_file
from tasks.platform.command_line import run
from tasks.store.files import write_bytes

LENGTHS = (4, 8, 16, 32)
"""Tokens after which agreement is asked."""


class EarlyStops(BaseModel):
    """What stopping does to groups whose responses share their first tokens."""

    length: int = Field(description="tokens that all responses of a group share, and go beyond")
    stopped: int = Field(description="groups")
    with_contrast: int = Field(description="of them: some responses solve the problem, others not")
    saved_share: float = Field(description="of all tokens, those behind the shared ones")


def early_stops(
    groups: Mapping[str, Sequence[Sequence[int]]], contrast: Mapping[str, bool], length: int
) -> EarlyStops:
    """Stop the groups that agree on their first tokens, and count.

    Args:
        groups: problem to the tokens of its responses, at least two.
        contrast: problem to whether some but not all responses solve it.
        length: tokens that have to be shared; responses that end there are not stopped.
    """
    stopped = [
        name
        for name, responses in groups.items()
        if min(map(len, responses)) > length
        and len({tuple(one[:length]) for one in responses}) == 1
    ]
    total = sum(len(one) for responses in groups.values() for one in responses)
    return EarlyStops(
        length=length,
        stopped=len(stopped),
        with_contrast=sum(contrast[name] for name in stopped),
        saved_share=sum(len(one) - length for name in stopped for one in groups[name]) / total,
    )


def read_groups(graded: Path) -> tuple[dict[str, list[tuple[int, ...]]], dict[str, bool]]:
    """Read the groups of a graded set, those without a verdict left out.

    Raises:
        DataError: the set keeps no responses, or no group has two.
    """
    if not (graded / RESPONSES).is_file():
        raise DataError(
            f"{graded} has no {RESPONSES}: name the folder of a set that the embedded engine graded"
        )
    rates = {one.id: one.pass_rate for one in read_table(graded / GRADED, GradedProblem)}
    groups: dict[str, list[tuple[int, ...]]] = defaultdict(list)
    for row in read_table(graded / RESPONSES, ResponseTokens):
        if rates.get(row.stream) is not None:
            groups[row.stream].append(row.tokens)
    groups = {name: responses for name, responses in groups.items() if len(responses) > 1}
    if not groups:
        raise DataError(f"{graded} has no problem with two responses and a verdict")
    return groups, {name: 0.0 < (rates[name] or 0.0) < 1.0 for name in groups}


def main(arguments: Sequence[str]) -> None:
    """Judge the rule on a graded set, and write what it would do."""
    parser = argparse.ArgumentParser(
        prog="python -m tasks.lab.study.early_stops", description="Would groups be stopped early?"
    )
    parser.add_argument("graded", type=Path, help="folder of a graded set")
    parser.add_argument("--out", type=Path, required=True, help="JSON file")
    options = parser.parse_args(arguments)
    groups, contrast = read_groups(options.graded)
    content = {
        **evidence_file.origin(
            "python -m tasks.lab.study.early_stops GRADED_SET", "tasks.lab.study.early_stops"
        ),
        "groups": len(groups),
        "with_contrast": sum(contrast.values()),
        "stops": [early_stops(groups, contrast, length).model_dump() for length in LENGTHS],
    }
    write_bytes(options.out, (json.dumps(content, indent=1) + "\n").encode())


if __name__ == "__main__":
    run(main)
