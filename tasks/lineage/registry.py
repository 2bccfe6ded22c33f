"""Registered models: the versions of a release and the aliases `released` and `previous`.

Limits of MLflow 3.17: a version's `model_id` is lost, its `source` is not. A server refuses a
version of a logged model without the `model_id`; an SQL registry does not need it.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities.model_registry import ModelVersion

KEY = "eachprompt.key"
"""Tag of a run and of a version: execution and stage."""
SHA256 = "sha256"
"""Tag of a dataset, a model and a version: digest of the artifact."""
RELEASED = "released"
PREVIOUS = "previous"
"""Alias of the version that was released before."""
MANIFEST_TAG = "manifest"
"""Of a model version: sha256 of the release's manifest.json."""

MANIFEST_FILE = "manifest.json"
GATE_FILE = "gate.json"
CARD_FILE = "README.md"
"""What a release folder holds beside the files of its checkpoint."""

_MAX_DESCRIPTION = 5000
"""Characters, of the column in an SQL registry."""
_TRACKING_URI = "MLFLOW_TRACKING_URI"


def register_release(
    client: "MlflowClient",
    *,
    name: str,
    model_id: str,
    run_id: str,
    tags: dict[str, str],
    released: bool,
    description: str = "",
) -> str:
    """Make a version of a registered model and return its number.

    Only a version that passed the gate gets the alias `released`; the one that had it
    before keeps the alias `previous`. The same key and model give the same version again.
    """
    from mlflow.exceptions import MlflowException

    try:
        client.create_registered_model(name)
    except MlflowException as error:
        if error.error_code != "RESOURCE_ALREADY_EXISTS":
            raise
    source = f"models:/{model_id}"
    made = [one for one in versions_of(client, name, tags[KEY]) if one.source == source]
    if not made:
        with _global_tracking(client.tracking_uri):
            new = client.create_model_version(
                name,
                source,
                run_id=run_id,
                model_id=model_id,
                tags=tags,
                description=description[:_MAX_DESCRIPTION],
                await_creation_for=0,
            )
        made.append(new)
    version = str(made[0].version)
    if not released:
        return version
    aliases = client.get_registered_model(name).aliases
    holder = aliases.get(RELEASED)
    if holder is None or int(holder) < int(version):
        before = client.get_model_version(name, holder) if holder is not None else None
        # The same content again is no other model to go back to.
        if before is not None and before.tags.get(SHA256) != tags.get(SHA256):
            client.set_registered_model_alias(name, PREVIOUS, before.version)
        client.set_registered_model_alias(name, RELEASED, version)
    return version


def read_description(card: str) -> str:
    """Return a model card without its front matter, which MLflow would show as text."""
    _, fence, rest = card.partition("\n---\n")
    return (rest if card.startswith("---\n") and fence else card).strip()


def versions_of(client: "MlflowClient", name: str, key: str) -> list["ModelVersion"]:
    """List the versions that the run with this key registered."""
    return list(client.search_model_versions(f"name = '{name}' and tags.`{KEY}` = '{key}'"))


@contextmanager
def _global_tracking(uri: str) -> Iterator[None]:
    """Let the SQL registry find the model: it looks in the global tracking store.

    MLflow writes that store into the environment as well, where the next run of this process
    would read it as the user's setting.
    """
    import mlflow

    user_value = os.environ.get(_TRACKING_URI)
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(uri)
    try:
        yield
    finally:
        mlflow.set_tracking_uri(before)
        if user_value is None:
            os.environ.pop(_TRACKING_URI, None)
        else:
            os.environ[_TRACKING_URI] = user_value
