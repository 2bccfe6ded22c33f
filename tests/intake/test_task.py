"""The first task of every workflow refuses what no later stage could use."""

import pytest

from tasks.errors import SettingsError
from tasks.intake.task import open_store


@pytest.mark.parametrize("uri", ["nonsense", "htp://mlflow.example", "sqlite:///relative.db"])
def test_a_tracking_uri_without_meaning_is_refused_before_any_work(tmp_path, monkeypatch, uri):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)

    with pytest.raises(SettingsError, match="Correct MLFLOW_TRACKING_URI"):
        open_store.task_function(store=str(tmp_path / "store"), workflow="post_training")
    assert not (tmp_path / "store").exists()
