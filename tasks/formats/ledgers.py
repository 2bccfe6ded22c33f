"""The ledger of a phase as a file: with agent and parent of every group, if it has several agents.

The ledger of a phase with a solver only has the columns of LedgerRow, byte for byte.
"""

from collections.abc import Sequence
from pathlib import Path

from data_schemas.arrow import column_names, read_table, write_table
from data_schemas.ledgers import AgentLedgerRow, LedgerRow
from data_schemas.rollouts import SOLVER

RETIRED = frozenset({"reused_tokens"})
"""Columns in ledgers of earlier versions, of what is no longer done."""


def write_ledger(path: Path, rows: Sequence[LedgerRow]) -> None:
    """Write the rows of a phase."""
    if any(isinstance(row, AgentLedgerRow) for row in rows):
        write_table(path, AgentLedgerRow, map(_with_agent, rows))
    else:
        write_table(path, LedgerRow, rows)


def read_ledger(path: Path) -> list[LedgerRow]:
    """Read the rows of a phase, of earlier versions too.

    Raises:
        SchemaError: the file is not a ledger.
    """
    if "agent" in column_names(path):
        return [*read_table(path, AgentLedgerRow, retired=RETIRED)]
    return read_table(path, LedgerRow, retired=RETIRED)


def _with_agent(row: LedgerRow) -> AgentLedgerRow:
    if isinstance(row, AgentLedgerRow):
        return row
    solver = {"agent": SOLVER, "key": "", "parent": ""}
    return AgentLedgerRow.model_validate(row.model_dump() | solver)
