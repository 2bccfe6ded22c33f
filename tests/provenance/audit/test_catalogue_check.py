"""MLflow edited by SQL, below everything its own interface would refuse: every edit is named."""

import shutil
import sqlite3
from contextlib import closing

import pytest

from data_schemas.artifacts import Execution, StoreRef
from tasks.provenance.audit.walk import audit
from tasks.provenance.lineage.lookup import Lookup
from tasks.store.interface import store_at
from tests.provenance.audit.conftest import Maker
from tests.slices import sliced
from tests.tracking_servers import copy_database

EDITS = {
    "params": (
        "UPDATE params SET value = '0.9' WHERE key = 'density'",
        "parameter density is 0.9, expected 0.8",
        6,
    ),
    "a parameter that is gone": (
        "DELETE FROM params WHERE key = 'min_gain'",
        "parameter min_gain is missing, expected 0.0",
        1,
    ),
    "a parameter more": (
        "INSERT INTO params (key, value, run_uuid) SELECT 'secret', 'x', run_uuid FROM runs "
        "WHERE name = 'merge'",
        "parameter secret is x, which its statement does not have",
        1,
    ),
    "metrics": (
        "UPDATE metrics SET value = 99 WHERE key = 'rows'",
        "metric rows is 99.0, expected 7",
        6,
    ),
    "a metric that is gone": (
        "DELETE FROM latest_metrics WHERE key = 'objects'",
        "metric objects is missing, expected 8",
        1,
    ),
    "fact tags": (
        "UPDATE tags SET value = 'v2' WHERE key = 'fact.version'",
        "fact.version is v2, expected",
        1,
    ),
    "a fact tag more": (
        "INSERT INTO tags (key, value, run_uuid) SELECT 'fact.prize', 'gold', run_uuid FROM runs "
        "WHERE name = 'merge'",
        "fact.prize is gold, which its statement does not have",
        1,
    ),
    "status": (
        "UPDATE runs SET status = 'FAILED' WHERE name = 'rl/one'",
        "status is FAILED, expected FINISHED",
        1,
    ),
    "name": (
        "UPDATE runs SET name = 'rl/two' WHERE name = 'rl/one'",
        "name is rl/two, expected rl/one",
        1,
    ),
    "name of a model": (
        "UPDATE logged_models SET name = 'other' WHERE name = 'merge'",
        "name is other, expected merge",
        1,
    ),
    "what a table shows of a metric": (
        "UPDATE latest_metrics SET value = 99 WHERE key = 'rows'",
        "shown metric rows is 99.0, expected 7.0",
        6,
    ),
    "dataset source": (
        'UPDATE datasets SET dataset_source = \'{"uri": "/elsewhere"}\' '
        "WHERE name = 'candidate' OR name = 'evaluation'",
        "is dataset 'evaluation' at /elsewhere, expected 'evaluation' at ",
        1,
    ),
    "dataset name": (
        "UPDATE datasets SET name = 'other' WHERE name = 'raw' AND dataset_uuid IN "
        "(SELECT source_id FROM inputs JOIN runs ON destination_id = run_uuid "
        "WHERE name = 'curate')",
        "is dataset 'other' at ",
        2,  # the run that made it and the run that read it
    ),
}


PAGE = {
    "a score": (
        "UPDATE model_version_tags SET value = '0.9900' WHERE key = 'accuracy/all'",
        "accuracy/all is 0.9900, expected 0.6000",
    ),
    "a score more": (
        "INSERT INTO model_version_tags (key, value, name, version) "
        "VALUES ('accuracy/domain:law', '0.9', 'tiny', 1)",
        "accuracy/domain:law is 0.9, which its statement does not have",
    ),
    "the link to the card": (
        "UPDATE model_version_tags SET value = 'https://elsewhere' WHERE key = 'card'",
        "card is https://elsewhere, expected",
    ),
    "the link to the report": (
        "UPDATE model_version_tags SET value = 'https://elsewhere' WHERE key = 'report'",
        "report is https://elsewhere, expected that of execution e1",
    ),
    "the link to the report that is gone": (
        "DELETE FROM model_version_tags WHERE key = 'report'",
        "report is missing, expected that of execution e1",
    ),
    "the execution": (
        "UPDATE model_version_tags SET value = CASE key WHEN 'report' THEN '/reports/e0.html' "
        "ELSE 'e0' END WHERE key IN ('report', 'eachprompt.execution')",
        "eachprompt.execution is e0, expected e1",
    ),
    "the source run": (
        "UPDATE model_versions SET run_id = (SELECT run_uuid FROM runs WHERE name = 'merge')",
        "is no release's",
    ),
    "the place of its files": (
        "UPDATE model_versions SET storage_location = '/usr/share'",
        "MLflow's client downloads /usr/share, which no statement made",
    ),
    "a server of somebody else": (
        "UPDATE model_versions SET storage_location = 'mlflow-artifacts://evil.example/1'",
        "MLflow's client downloads mlflow-artifacts://evil.example/1, which no statement made",
    ),
    "the stage by which older clients find it": (
        "UPDATE model_versions SET current_stage = 'Production'",
        "status and stage is READY, Production, expected READY, None",
    ),
    "the place of the files of a logged model": (
        "UPDATE logged_models SET artifact_location = '/usr/share' WHERE name = 'release'",
        "MLflow's client downloads /usr/share, which no statement made",
    ),
    "the type of a logged model": (
        "UPDATE logged_models SET model_type = 'agent' WHERE name = 'release'",
        "type is agent, expected release",
    ),
    "the status of a logged model": (
        "UPDATE logged_models SET status = 3 WHERE name = 'release'",
        "status is FAILED, expected READY",
    ),
    "the text that is gone": (
        "UPDATE model_versions SET description = ''",
        "the text of its page is not the card of the release",
    ),
    "the text": (
        "UPDATE model_versions SET description = 'The best model of all.'",
        "the text of its page is not the card of the release",
    ),
}


@pytest.mark.slow
@pytest.mark.attack
@pytest.mark.parametrize("edit", PAGE)
def test_an_edit_of_the_page_that_people_read_is_named(chain, edit):
    command, problem = PAGE[edit]
    with closing(sqlite3.connect(chain.database, timeout=60)) as database:
        assert database.execute(command).rowcount > 0
        database.commit()
    (found,) = audit("models:/tiny@released", chain.tracking_uri, str(chain.store)).findings

    assert problem in found.problem


@pytest.mark.attack
@pytest.mark.parametrize(
    "edit", sliced(EDITS, lambda edit: edit in ("params", "a fact tag more", "status"))
)
def test_an_edit_by_sql_is_named(chain, edit):
    command, problem, count = EDITS[edit]
    with closing(sqlite3.connect(chain.database, timeout=60)) as database:
        changed = database.execute(command).rowcount
        if "UPDATE metrics" in command:
            database.execute("UPDATE latest_metrics SET value = 99 WHERE key = 'rows'")
        database.commit()
    assert changed > 0
    report = audit("models:/tiny@released", chain.tracking_uri, str(chain.store))
    problems = [found.problem for found in report.findings]

    assert count == len(problems), problems
    assert all(problem in one for one in problems), problems
    assert all(found.object.startswith("MLflow ") for found in report.findings)


@pytest.mark.attack
@pytest.mark.parametrize("original", ["sqlite"], indirect=True)
def test_other_weights_at_a_place_of_the_same_name_are_named(chain, tmp_path):
    """What MLflow's own client downloads is the release, and is hashed where it lies."""
    version = Lookup(chain.tracking_uri).version("models:/tiny@released")
    digest = chain.refs["release"].digest
    assert version.location == chain.refs["release"].uri
    evil = tmp_path / "evil" / "objects" / digest[:16]
    shutil.copytree(chain.folder("release"), evil)
    (evil / "model.safetensors").write_bytes(b"weights of somebody else")
    with closing(sqlite3.connect(chain.database, timeout=60)) as database:
        database.execute("UPDATE model_versions SET storage_location = ?", (str(evil),))
        database.commit()

    (finding,) = audit("models:/tiny@released", chain.tracking_uri, str(chain.store)).findings

    assert str(evil / "model.safetensors") == finding.object
    assert finding.problem.endswith("; MLflow's client downloads it")


@pytest.mark.slow
def test_the_same_base_from_two_folders_in_one_mlflow_is_no_finding(tmp_path, outside, migrated):
    elsewhere, database = tmp_path / "elsewhere", tmp_path / "mlflow.db"
    shutil.copytree(outside, elsewhere)
    copy_database(migrated, database)
    for name, source in (("first", elsewhere), ("second", outside)):
        identity = store_at(str(tmp_path / name)).open()
        store = StoreRef(
            uri=str(tmp_path / name), id=identity, tracking_uri=f"sqlite:///{database}"
        )
        maker = Maker(store, source)
        maker.execution = Execution(id=name, started=0.0)
        maker.run()

    report = audit("models:/tiny/2", f"sqlite:///{database}", str(tmp_path / "second"))

    assert () == tuple(report.findings)


def test_a_source_that_was_edited_is_a_finding_if_no_other_chain_uses_it(chain):
    with closing(sqlite3.connect(chain.database)) as database:
        source = '{"uri": "/elsewhere"}'
        database.execute("UPDATE datasets SET dataset_source = ? WHERE name = 'shipped'", (source,))
        database.commit()

    report = audit("models:/tiny@released", chain.tracking_uri, str(chain.store))

    assert any("at /elsewhere, expected 'shipped' at" in one.problem for one in report.findings)
