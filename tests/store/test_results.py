"""Work that is done once per store: its name and its lease."""

import pytest

from data_schemas.settings import MergeSettings
from tasks.errors import EngineError
from tasks.store import results
from tasks.store.lease import lease


def test_the_disk_is_leased_as_well_as_the_store(tmp_path):
    disk, uri = tmp_path / "disk" / "abc", str(tmp_path / "store" / "state" / "abc")
    with (
        results.exclusive("first", str(disk), uri),
        pytest.raises(EngineError, match="held by first"),
        lease(f"{disk}.lease", "another store, the same disk", patience_s=0.0),
    ):
        pass
    with results.exclusive("store and disk are one", str(disk), str(disk)) as check:
        check()

    assert not list((tmp_path / "disk").iterdir())


def test_work_is_named_by_stage_settings_and_inputs(tmp_path):
    place, merging = str(tmp_path), MergeSettings()
    names = [
        results.work_uri(place, "merge", merging, "a", "b"),
        results.work_uri(place, "merge", merging, "b", "a"),
        results.work_uri(place, "merge", merging.model_copy(update={"density": 0.5}), "a", "b"),
        results.work_uri(place, "other", merging, "a", "b"),
    ]

    assert len(names) == len(set(names))
    assert names[0] == results.work_uri(place, "merge", MergeSettings(), "a", "b")
