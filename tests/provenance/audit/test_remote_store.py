"""The audit of a store in S3 is the audit of the same store on disk."""

from pathlib import Path

import pytest

from tasks.provenance.audit.walk import audit
from tasks.store.interface import store_at

STORE = "s3://bucket/store"
RELEASED = "models:/tiny@released"


@pytest.fixture
def uploaded(chain, bucket):
    for kind in ("objects", "statements", "signatures"):
        for path in filter(Path.is_file, (chain.store / kind).rglob("*")):
            key = f"store/{path.relative_to(chain.store).as_posix()}"
            bucket.put_object(Bucket="bucket", Key=key, Body=path.read_bytes())
    return chain


@pytest.mark.slow
def test_a_store_in_s3_is_proved_and_then_one_byte_breaks_it(uploaded):
    tracking_uri = uploaded.tracking_uri
    report = audit(RELEASED, tracking_uri, STORE)

    assert () == report.findings
    assert (9, 9, 3) == (report.statements, report.objects, report.raw_files)

    damaged = f"{STORE}/objects/{uploaded.refs['policy'].digest[:16]}/model.safetensors"
    payload = store_at(damaged).read_bytes()
    store_at(damaged).write_bytes(payload[:-1] + b"?")
    store_at(f"{STORE}/statements/{uploaded.refs['raw'].statement}.json").delete_file()

    assert {damaged, f"{STORE}/statements/{uploaded.refs['raw'].statement}.json"} == {
        finding.object for finding in audit(RELEASED, tracking_uri, STORE).findings
    }
