"""The command that rebuilds MLflow: what it is given, and what it says."""

import time

import pytest

from tasks.provenance.audit.collection import collect, read_keep
from tasks.provenance.audit.repair import main
from tasks.provenance.audit.walk import audit
from tasks.provenance.lineage.connection import REPAIR
from tasks.provenance.lineage.lookup import Lookup
from tasks.provenance.lineage.tombstones import bury


def test_the_command_that_messages_name_is_this_one():
    assert f"python -m {main.__module__} --store" == REPAIR


@pytest.mark.slow
def test_models_that_were_deleted_are_models_in_a_rebuilt_database(chain, monkeypatch):
    store = str(chain.store)
    for note in collect(store, read_keep("released,30d"), time.time() + 60 * 24 * 3600):
        bury(store, note)
    chain.forget_mlflow()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", chain.tracking_uri)
    main(["--store", store])

    report = audit("models:/tiny@released", chain.tracking_uri, store)
    assert ((), 4) == (report.findings, report.buried)


@pytest.mark.slow
def test_a_lost_database_is_rebuilt_and_the_release_found_again(chain, capsys, monkeypatch):
    chain.forget_mlflow()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", chain.tracking_uri)
    main(["--store", str(chain.store)])

    assert f"MLflow holds 9 runs of {chain.store}; 0 of them" in capsys.readouterr().out
    assert "1" == Lookup(chain.tracking_uri).version("models:/tiny@released").number
