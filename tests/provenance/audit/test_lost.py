"""MLflow is lost, the evidence is not."""

import pytest

from tasks.errors import SettingsError
from tasks.provenance.audit.walk import audit
from tasks.provenance.lineage.connection import REPAIR


def test_the_newest_release_is_audited_and_the_loss_named_with_its_repair(chain):
    chain.forget_mlflow()
    report = audit("models:/tiny@released", chain.tracking_uri, str(chain.store))
    (finding,) = report.findings

    assert "MLflow" == finding.object
    assert REPAIR in finding.problem
    assert "The newest release of tiny in the store was audited instead" in finding.problem
    assert ("unknown", 9, 9, 3) == (
        report.version,
        report.statements,
        report.objects,
        report.raw_files,
    )


def test_damage_is_still_found(chain):
    chain.forget_mlflow()
    path = chain.folder("policy") / "model.safetensors"
    path.write_bytes(b"other")
    report = audit("models:/tiny@released", chain.tracking_uri, str(chain.store))

    assert {"MLflow", str(path)} == {found.object for found in report.findings}


def test_a_name_that_the_store_does_not_have_either_is_the_users_to_correct(chain):
    chain.forget_mlflow()
    with pytest.raises(SettingsError):
        audit("models:/other@released", chain.tracking_uri, str(chain.store))
