"""Where a store and its MLflow are, from what people say."""

import os
from pathlib import Path

import pytest

from tasks.errors import SettingsError
from tasks.store.location import absolute_store, existing_store, identity, tracking_uri


def test_a_folder_becomes_absolute_and_a_bucket_stays_as_it_is():
    assert str(Path.cwd() / "runs") == absolute_store("runs/")
    assert str(Path.home() / "runs") == absolute_store("~/runs")
    assert "s3://bucket/runs" == absolute_store("s3://bucket/runs/")


@pytest.mark.parametrize("store", ["", "  "])
def test_an_empty_store_is_refused(store):
    with pytest.raises(SettingsError, match="--store is empty"):
        absolute_store(store)


@pytest.mark.parametrize("store", ["gs://bucket/runs", "https://host/runs"])
def test_a_store_of_another_scheme_is_no_folder_of_that_name(store):
    with pytest.raises(SettingsError, match=f"{store} is neither a path nor s3://"):
        absolute_store(store)


def test_mlflow_is_the_environments_or_in_the_store():
    assert "http://mlflow" == tracking_uri("s3://bucket/runs", "http://mlflow")
    assert "sqlite:////runs/mlflow.db" == tracking_uri("/runs", "")
    assert "sqlite:////ci%252Fnight/mlflow.db" == tracking_uri("/ci%2Fnight", "")


@pytest.mark.parametrize(
    "uri",
    ["http://h:5000", "https://h/mlflow", "sqlite:////a/m.db", "postgresql+psycopg2://me@h/db"],
)
def test_mlflow_is_a_server_or_a_database(uri):
    assert uri == tracking_uri("/runs", uri)


@pytest.mark.parametrize(
    ("uri", "fix"),
    [
        ("http://me:hunter2@h", "MLFLOW_TRACKING_PASSWORD"),
        ("http://hunter2@h", "MLFLOW_TRACKING_USERNAME"),
        ("postgresql://me:hunter2@h/db", "PGPASSWORD"),
    ],
)
def test_a_password_in_the_address_of_mlflow_is_refused_with_the_fix(uri, fix):
    with pytest.raises(SettingsError, match=fix) as caught:
        tracking_uri("/runs", uri)

    assert "hunter2" not in str(caught.value)


def test_a_store_in_s3_needs_an_mlflow_server():
    with pytest.raises(SettingsError, match="set MLFLOW_TRACKING_URI"):
        tracking_uri("s3://bucket/runs", "")


@pytest.mark.attack
@pytest.mark.parametrize(
    "content",
    [
        *(
            None,
            "",
            "[]",
            "{}",
            '{"id": 7}',
            '{"id": "../../elsewhere"}',
            '{"id": "x\\nPROVED: all"}',
        ),
        *('{"id": "\' or tags.a = \'"}', "[" * 100_000),
    ],
)
def test_a_folder_that_is_no_store_is_refused(tmp_path, content):
    if content is not None:
        (tmp_path / "store.json").write_text(content)

    with pytest.raises(SettingsError, match=f"--store {tmp_path} is no store: .*Correct it"):
        existing_store(str(tmp_path), "")


@pytest.mark.attack
@pytest.mark.parametrize("target", ["pipe", "device"])
def test_a_mark_that_would_never_end_is_refused_unread(tmp_path, target):
    if target == "pipe":
        os.mkfifo(tmp_path / "store.json")
    else:
        (tmp_path / "store.json").symlink_to("/dev/zero")

    assert "" == identity(str(tmp_path))
    with pytest.raises(SettingsError, match="is no regular file"):
        existing_store(str(tmp_path), "")
