"""The command that rebuilds MLflow: what it is given, and what it says."""

from tasks.provenance.audit.repair import main
from tasks.provenance.lineage.connection import REPAIR
from tasks.provenance.lineage.lookup import Lookup


def test_the_command_that_messages_name_is_this_one():
    assert f"python -m {main.__module__} --store" == REPAIR


def test_a_lost_database_is_rebuilt_and_the_release_found_again(chain, capsys, monkeypatch):
    chain.forget_mlflow()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", chain.tracking_uri)
    main(["--store", str(chain.store)])

    assert f"MLflow holds 9 runs of {chain.store}; 0 of them" in capsys.readouterr().out
    assert "1" == Lookup(chain.tracking_uri).version("models:/tiny@released").number
