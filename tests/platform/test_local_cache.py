"""A damaged cache of Flyte's stops nothing."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tasks.platform.local_cache import PLACE, leave_out_damaged_cache


@pytest.mark.parametrize("harm", ["none", "bytes", "cut", "absent"])
def test_a_cache_that_cannot_be_read_is_left_out_with_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, harm: str
):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("FLYTE_LOCAL_CACHE_ENABLED", "true")
    file = Path(PLACE).expanduser() / "cache.db"
    if harm != "absent":
        file.parent.mkdir(parents=True)
        with closing(sqlite3.connect(file)) as database:
            database.execute("CREATE TABLE cache (value BLOB)")
            database.execute("INSERT INTO cache VALUES (randomblob(20000))")
            database.commit()
    whole = file.read_bytes() if harm != "absent" else b""
    if harm == "bytes":
        file.write_bytes(b"\x17\x9a" * 2500)
    elif harm == "cut":
        file.write_bytes(whole[: len(whole) // 2])

    leave_out_damaged_cache()

    is_damaged = harm in ("bytes", "cut")
    assert ("false" if is_damaged else "true") == os.environ["FLYTE_LOCAL_CACHE_ENABLED"]
    assert is_damaged == (f"Flyte's cache in {file.parent} cannot be read" in caplog.text)
    assert len(caplog.records) == is_damaged
