"""The table of all attacks is kept only of a run that had some."""

import pytest

from tests import attack


@pytest.mark.slow
@pytest.mark.parametrize("options", [["--collect-only"], ["--version"]])
def test_a_table_without_a_case_is_not_written(options, tmp_path, capsys):
    table = tmp_path / "ATTACKS.md"

    assert 1 == attack.main(["--evidence", str(table), "-q", *options, "tests/store/test_files.py"])
    assert not table.exists()
    assert "is not written: no case was run" in capsys.readouterr().err


def test_help_runs_nothing(tmp_path):
    with pytest.raises(SystemExit) as ended:
        attack.main(["--evidence", str(tmp_path / "ATTACKS.md"), "--help"])

    assert 0 == ended.value.code
    assert [] == list(tmp_path.iterdir())
