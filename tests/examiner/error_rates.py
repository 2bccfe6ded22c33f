"""Pool the examiner's evidence to the error rates that releases state.

    python -m tests.examiner.error_rates

Only forms of the half `report` count, to which no reader was tuned. They were made to deceive, so
the rates are of such forms, not of the responses of a model.
"""

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from data_schemas.reports import MeasuredRate, VerifierExamination, VerifierRates
from tasks.gym.error_rates import FILE
from tasks.platform.command_line import run
from tasks.store.files import sha256_bytes
from tests.examiner.unseen import HALVES, wilson

EVIDENCE = Path(__file__).with_name("unseen.json")
_RATE = {"accepted": "false_positive", "rejected": "false_negative"}


def pool(evidence: Path = EVIDENCE) -> VerifierExamination:
    """Add up the counts of each verifier over all kinds of cases."""
    payload = evidence.read_bytes()
    counts: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(lambda: [0, 0]))
    for row in json.loads(payload)["rows"]:
        if row["half"] == HALVES[-1]:
            count = counts[row["verifier"]][_RATE[row["false"]]]
            count[0] += row["count"]
            count[1] += row["of"]
    return VerifierExamination(
        evidence=f"tests/examiner/{evidence.name}",
        sha256=sha256_bytes(payload),
        rates=tuple(
            VerifierRates.model_validate(
                {"verifier": name, **{kind: _rate(*found) for kind, found in kinds.items()}}
            )
            for name, kinds in sorted(counts.items())
        ),
    )


def _rate(count: int, total: int) -> MeasuredRate:
    low, high = wilson(count, total)
    return MeasuredRate(count=count, of=total, low=round(low, 6), high=round(high, 6))


def dumped(found: VerifierExamination) -> bytes:
    """Write rates as JSON that people can read."""
    return f"{found.model_dump_json(indent=1)}\n".encode()


def main(_: Sequence[str]) -> None:
    """Write the rates anew."""
    FILE.write_bytes(dumped(pool()))


if __name__ == "__main__":
    run(main)
