"""The command that rebuilds MLflow: what it is given, and what it says."""

import pytest

from tasks.audit.repair import existing_store, main
from tasks.errors import SettingsError
from tasks.lineage.connection import REPAIR
from tasks.lineage.lookup import Lookup


def test_the_command_that_messages_name_is_this_one():
    assert f"python -m {main.__module__} --store" == REPAIR


def test_a_lost_database_is_rebuilt_and_the_release_found_again(chain, capsys, monkeypatch):
    chain.forget_mlflow()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", chain.tracking_uri)
    main(["--store", str(chain.store)])

    assert f"MLflow holds 9 runs of {chain.store}; 0 of them" in capsys.readouterr().out
    assert "1" == Lookup(chain.tracking_uri).version("models:/tiny@released").number


@pytest.mark.parametrize("content", [None, "", "[]", "{}"])
def test_a_folder_that_is_no_store_is_refused(tmp_path, content):
    if content is not None:
        (tmp_path / "store.json").write_text(content)

    with pytest.raises(SettingsError, match=f"--store {tmp_path} is no store: .*Correct it"):
        existing_store(str(tmp_path))
