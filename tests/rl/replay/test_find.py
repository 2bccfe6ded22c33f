"""Which snapshot is read."""

import pytest

from data_schemas.statements import Input, Output, Statement
from tasks.errors import SettingsError
from tasks.provenance.lineage.statements import save_statement
from tasks.rl.replay.find import read, reports_of_rl
from tests.records import filled


def test_the_reports_of_all_phases_are_found_in_the_order_they_were_made(tmp_path):
    def state(stage: str, before: str) -> str:
        inputs = [Input(role="start", uri="u", digest="d", statement=before)] if before else []
        statement = filled(
            Statement,
            stage=stage,
            inputs=tuple(inputs),
            outputs=(Output(role="report", uri=f"of {stage}", digest="d"),),
        )
        return save_statement(str(tmp_path), statement)

    last = state("rl/two", state("rl/one", state("sft/reasoning", "")))
    reports = reports_of_rl(str(tmp_path), [last])

    assert ["rl/one", "rl/two"] == list(reports)
    assert "of rl/two" == reports["rl/two"].uri


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(SettingsError, match=r"nothing\.npz cannot be read"):
        read(tmp_path / "nothing.npz")
