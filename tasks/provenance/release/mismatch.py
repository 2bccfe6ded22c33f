"""The mismatch gate's records of every RL phase behind a candidate, found by the chain."""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from data_schemas.reports import GATES_FILE, GateRecord, MismatchDecision, PhaseGates
from data_schemas.statements import Statement
from tasks.store.objects import localise


def gates_behind(chain: Mapping[str, Statement], cache: Path) -> tuple[PhaseGates, ...]:
    """Summarise the gate's decisions in every RL phase of a chain, in order.

    A phase whose report has no records is listed with 0 steps, so that it can be refused.

    Args:
        chain: from `tasks.provenance.lineage.statements.chain`.
        cache: where objects of a remote store are kept.

    Raises:
        DataError: a report is missing.
        TamperError: a report was changed.
    """
    phases = (s for s in chain.values() if s.stage.startswith("rl/"))
    return tuple(summary(statement.stage, _records(statement, cache)) for statement in phases)


def summary(stage: str, records: list[GateRecord]) -> PhaseGates:
    """Count decisions and find the largest gaps; 0 without records."""
    decisions = Counter(record.decision for record in records)
    return PhaseGates(
        stage=stage,
        steps=len(records),
        proceeded=decisions[MismatchDecision.PROCEED],
        corrected=decisions[MismatchDecision.CORRECT],
        paused=decisions[MismatchDecision.PAUSE],
        max_k3=max((record.k3 for record in records), default=0.0),
        max_probe=max((record.probe_logprob for record in records), default=0.0),
    )


def rules(gates: tuple[PhaseGates, ...]) -> Iterator[tuple[bool, str]]:
    """Refuse a candidate if a phase of its RL was paused or has no gate records."""
    for phase in gates:
        result = (
            f"{phase.proceeded} steps proceeded, {phase.corrected} were corrected, {phase.paused} "
            f"paused; k3 up to {phase.max_k3:.1e}"
        )
        yield (
            phase.steps > 0 and phase.paused == 0,
            f"mismatch in {phase.stage}: {result if phase.steps else 'no gate records'}",
        )


def _records(statement: Statement, cache: Path) -> list[GateRecord]:
    for output in statement.outputs:
        if output.role == "report":
            path = localise(output.uri, output.digest, cache) / GATES_FILE
            lines = path.read_bytes().splitlines() if path.exists() else []
            return [GateRecord.model_validate_json(line) for line in lines]
    return []
