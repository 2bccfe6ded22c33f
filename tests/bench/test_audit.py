"""The benchmark of the audit reads what it says it reads."""

from tasks.store.manifest import verify_folder
from tests.bench.audit import SHARDS, build_object, measure_audit


def test_an_object_is_read_plainly_and_audited_from_disk_and_from_memory(tmp_path):
    digest = build_object(tmp_path, mib=SHARDS + 1)
    folder = tmp_path / "objects" / digest[:16]

    timed = measure_audit(tmp_path, digest)

    verify_folder(folder, digest)
    assert 2 * SHARDS * 2**20 == sum(shard.stat().st_size for shard in folder.glob("model-*"))
    assert ["audit from disk", "audit from memory"] == [
        what for what, _, _ in timed if "aud" in what
    ]
    assert all(0.0 < plain <= seconds or "audit" in what for what, seconds, plain in timed)
