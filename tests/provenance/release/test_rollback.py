"""Back to an earlier version: one command, on record, and reversible."""

from pathlib import Path

import pytest

from data_schemas.artifacts import Execution, StoreRef
from tasks.errors import SettingsError, TamperError
from tasks.provenance.lineage.connection import connect
from tasks.provenance.lineage.lookup import Lookup
from tasks.provenance.lineage.rebuild import rebuild
from tasks.provenance.lineage.versions import read_history
from tasks.provenance.release import commands, rollback
from tests.provenance.lineage.small_chain import make_raw, release, run_all, train
from tests.tracked import content

NAME = "eachprompt-tiny"


@pytest.fixture
def two(store, monkeypatch) -> StoreRef:
    """Two releases and a refused candidate, versions 1 to 3; 2 is the released one."""
    for number, payload in enumerate((b"a\n", b"b\n"), start=1):
        run_all(store, Execution(id=f"e{number}", started=float(number)), payload)
    third = Execution(id="e3", started=3.0)
    release(store, third, train(store, third, make_raw(store, third, b"c\n")), released=False)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store.tracking_uri)
    return store


def aliases(store: StoreRef) -> dict[str, str]:
    found = connect(store.tracking_uri).get_registered_model(NAME).aliases
    return {name: str(version) for name, version in found.items()}


def test_a_rollback_goes_to_the_previous_version_and_a_second_one_comes_back(two, capsys):
    commands.rollback(["--store", two.uri])
    assert {"released": "1", "previous": "2"} == aliases(two)
    assert f"models:/{NAME}@released is version 1 again." in capsys.readouterr().out

    commands.rollback(["--store", two.uri, "--to", "2"])
    assert {"released": "2", "previous": "1"} == aliases(two)
    assert ["release", "release", "rollback", "rollback"] == [
        entry.by for entry in read_history(NAME, two.tracking_uri)
    ]


@pytest.mark.slow
def test_a_rollback_writes_a_statement_and_an_empty_mlflow_gets_it(two, tmp_path, migrated):
    rollback.roll_back(NAME, "", two)
    (run,) = [run for run in content(two.tracking_uri)["runs"] if run["name"] == "rollback"]
    assert ("FINISHED", "2", "1") == (
        run["status"],
        dict(run["tags"])["fact.replaced"],
        dict(run["tags"])["fact.restored"],
    )
    empty = tmp_path / "empty.db"
    empty.write_bytes(migrated.read_bytes())
    rebuild(two.model_copy(update={"tracking_uri": f"sqlite:///{empty}"}))

    assert content(two.tracking_uri) == content(f"sqlite:///{empty}")


@pytest.mark.slow
def test_without_spools_the_statements_give_the_aliases_of_a_rollback(two, tmp_path, migrated):
    rollback.roll_back(NAME, "", two)
    for spool in Path(two.uri, "spool/shipped").iterdir():
        spool.unlink()
    empty = tmp_path / "empty.db"
    empty.write_bytes(migrated.read_bytes())
    lost = two.model_copy(update={"tracking_uri": f"sqlite:///{empty}"})
    rebuild(lost)

    assert {"released": "1", "previous": "2"} == aliases(lost)


@pytest.mark.slow
def test_only_what_passed_a_gate_and_is_not_released_can_be_released_again(two):
    with pytest.raises(SettingsError, match=f"models:/{NAME}/3 was never released"):
        rollback.roll_back(NAME, "3", two)
    with pytest.raises(SettingsError, match="2 is the released version already"):
        rollback.roll_back(NAME, "2", two)
    with pytest.raises(SettingsError, match="nothing was released as nobody"):
        rollback.roll_back("nobody", "", two)
    with pytest.raises(SettingsError, match="MLflow has no model nobody"):
        commands.history(["--store", two.uri, "--model", "nobody"])
    assert {"released": "2", "previous": "1"} == aliases(two)


@pytest.mark.slow
def test_a_damaged_version_is_not_released_again(two):
    digest = Lookup(two.tracking_uri).version(f"models:/{NAME}@previous").tags["sha256"]
    victim = Path(two.uri, "objects", digest[:16], "model.safetensors")
    victim.chmod(0o644)
    victim.write_bytes(b"other")

    with pytest.raises(TamperError, match=r"model\.safetensors"):
        rollback.roll_back(NAME, "", two)
    assert {"released": "2", "previous": "1"} == aliases(two)


@pytest.mark.slow
def test_the_history_lists_promotions_and_refusals_in_the_order_of_time(two, capsys):
    rollback.roll_back(NAME, "", two)
    commands.history(["--store", two.uri])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()[2:] if line.strip()]

    assert [
        ["1", "release", "0.2500", "e1", "released"],
        ["2", "release", "0.2500", "e2", "previous"],
        ["3", "refused", "0.2500", "e3"],
        ["1", "rollback", "0.2500", "e1", "released"],
    ] == [line[2:] for line in lines]
