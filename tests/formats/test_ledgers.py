"""Ledgers are read as written, those of earlier versions without the columns that went."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data_schemas.arrow import SchemaError
from data_schemas.ledgers import AgentLedgerRow, GroupOutcome, LedgerRow
from tasks.formats.ledgers import read_ledger, write_ledger

GROUP = {
    "step": 1,
    "round": 0,
    "problem_id": "shop/1",
    "domain": "maths",
    "outcome": GroupOutcome.NON_ZERO_VARIANCE,
    "rollouts": 4,
    "prompt_tokens": 12,
    "generated_tokens": 40,
    "draft_tokens": 0,
    "saved_tokens": 0,
    "trained_tokens": 40,
    "solved": 1,
    "abstained": 0,
    "mean_score": 0.25,
    "advantage_mass": 1.5,
    "pass_rate_change": 0.0,
}
SINGLE = LedgerRow.model_validate(GROUP)
CHECK = AgentLedgerRow.model_validate(GROUP | {"agent": "checker", "key": "a", "parent": "b"})


def with_column(path, name):
    table = pq.read_table(path)
    pq.write_table(table.append_column(name, pa.array([7] * len(table))), path)
    return path


@pytest.mark.parametrize("row", [SINGLE, CHECK], ids=["solver", "agents"])
def test_a_ledger_of_an_earlier_version_is_read_without_the_column_that_went(tmp_path, row):
    path = tmp_path / "ledger.parquet"
    write_ledger(path, [row])

    assert read_ledger(with_column(path, "reused_tokens")) == [row]


def test_a_column_that_no_version_had_is_refused_by_its_name(tmp_path):
    path = tmp_path / "ledger.parquet"
    write_ledger(path, [SINGLE])

    with pytest.raises(SchemaError, match="row 0: paid_tokens: Extra inputs"):
        read_ledger(with_column(path, "paid_tokens"))
