"""Registered models: the versions of a release and the aliases `released` and `previous`.

A promotion is one tag of the registered model, `promotion.000007`; the aliases follow from the last
of them. So a promotion is written or it is not, and a process that dies before the aliases are set
leaves them to whoever applies the next event. The lease of `tasks.provenance.release.promotion`
allows one process at a time.

Limits of MLflow 3.17: a version's `model_id` is lost, a tag keeps it. A server refuses a version
of a logged model without the `model_id`; an SQL registry does not need it.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

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
"""Tag of a model version: sha256 of the release's manifest.json."""

MODEL_TAG = "model_id"
"""Tag of a model version: its logged model, which the registry of MLflow 3.17 forgets."""
_LOGGED = "models:/"

AUDIT_TAG = "audit"
"""Tag of a model version: verdict of its last audit."""

MANIFEST_FILE = "manifest.json"
GATE_FILE = "gate.json"
CARD_FILE = "README.md"
BOM_FILE = "bom.cdx.json"
"""What a release folder holds beside the files of its checkpoint."""

_OURS = "eachprompt"
"""Tag of a registered model: versions of it are releases of this pipeline."""
_PROMOTION = "promotion."
_DESCRIPTION = (
    "Every candidate of a release is a version; `released` is the one that passed its gate last, "
    "`previous` the one to go back to: `eachprompt rollback`. "
    "`eachprompt history` lists all promotions."
)
_MAX_DESCRIPTION = 5000
"""Characters, of the column in an SQL registry."""
_SHORTENED = f"\n\nThe whole card is {CARD_FILE}, among the artifacts of the source run."
_TRACKING_URI = "MLFLOW_TRACKING_URI"


class PromotionEntry(BaseModel):
    """A version became the released one: an entry of the history of a registered model."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    version: str
    sha256: str
    statement: str
    key: str
    """Name of the run that did it: the same run promotes once."""
    time: float
    by: str
    """'release', 'approve' or 'rollback'."""


def open_model(client: "MlflowClient", name: str) -> None:
    """Create a registered model, or find that this user may change the one that is there.

    Only then is "nothing was released" another answer than "not allowed": a server with
    `NO_PERMISSIONS` gives a user the same 403 of models that are somebody else's and of models that
    do not exist. Whoever creates a model owns it.

    Raises:
        DataError: this user may not change it; the message names the right.
    """
    from mlflow.exceptions import MlflowException

    try:
        client.create_registered_model(name, description=_DESCRIPTION)
    except MlflowException as error:
        if error.error_code != "RESOURCE_ALREADY_EXISTS":
            raise
    client.set_registered_model_tag(name, _OURS, "releases")


def register_release(
    client: "MlflowClient",
    *,
    name: str,
    model_id: str,
    folder: str,
    run_id: str,
    tags: dict[str, str],
    description: str = "",
) -> str:
    """Make a version of a registered model and return its number.

    The same key and model give the same version again. Its place is the folder of the release, so
    that MLflow's own client downloads what was released; only a server takes no folder of a disk,
    which it could not read: there the place is that of the logged model, which holds no files.
    """
    open_model(client, name)
    is_server = client.tracking_uri.startswith(("http://", "https://"))
    is_reachable = not is_server or folder.startswith("s3://")
    source = folder if is_reachable else f"{_LOGGED}{model_id}"
    tags = {**tags, MODEL_TAG: model_id}
    existing = [
        one for one in versions_of(client, name, tags[KEY]) if logged_model(one) == model_id
    ]
    if not existing:
        with _global_tracking(client.tracking_uri):
            new = client.create_model_version(
                name,
                source,
                run_id=run_id,
                model_id=model_id,
                tags=tags,
                description=shorten(description),
                await_creation_for=0,
            )
        existing.append(new)
    return str(existing[0].version)


def logged_model(version: "ModelVersion") -> str:
    """Return the id of the logged model that a version is of.

    A place that names one says what MLflow follows; a tag can be copied from another version.
    """
    source = version.source or ""
    if source.startswith(_LOGGED):
        return source.removeprefix(_LOGGED)
    return version.tags.get(MODEL_TAG) or source


def promote(client: "MlflowClient", name: str, new: PromotionEntry, replaces: str = "") -> bool:
    """Make a version the released one; once per key, however often it is asked for.

    Args:
        client: of the registry.
        name: of the registered model.
        new: the entry of the history.
        replaces: statement of the version that has to be the released one; '' = any or none.

    Returns:
        False if another version is the released one, so that nothing was changed.
    """
    entries = history(client, name)
    if new.key not in {entry.key for entry in entries}:
        if replaces and (not entries or entries[-1].statement != replaces):
            return False
        num_entries = len(_tags(client, name))
        entries.append(new)
        for number, entry in enumerate(entries[num_entries:], start=num_entries + 1):
            tag = f"{_PROMOTION}{number:06}"
            client.set_registered_model_tag(name, tag, entry.model_dump_json())
    _point(client, name, entries)
    return True


def history(client: "MlflowClient", name: str) -> list[PromotionEntry]:
    """List all promotions of a registered model, the current one last."""
    tags = sorted(_tags(client, name).items())
    if tags:
        return [PromotionEntry.model_validate_json(text) for _, text in tags]
    # Released before promotions were kept: the aliases are all that is known.
    aliases = client.get_registered_model(name).aliases
    numbers = [aliases[alias] for alias in (PREVIOUS, RELEASED) if alias in aliases]
    versions = [client.get_model_version(name, number) for number in numbers]
    return [
        PromotionEntry(
            version=str(version.version),
            sha256=version.tags.get(SHA256, ""),
            statement=version.tags.get("statement", ""),
            key=version.tags.get(KEY, ""),
            time=version.creation_timestamp / 1000,
            by="release",
        )
        for version in versions
    ]


def _tags(client: "MlflowClient", name: str) -> dict[str, str]:
    tags = client.get_registered_model(name).tags
    return {tag: value for tag, value in tags.items() if tag.startswith(_PROMOTION)}


def _point(client: "MlflowClient", name: str, entries: Sequence[PromotionEntry]) -> None:
    """Set the aliases that follow from the history."""
    current = entries[-1]
    # The same content again is no other model to go back to.
    others = [entry for entry in entries if entry.sha256 != current.sha256]
    aliases = {PREVIOUS: others[-1].version} if others else {}
    aliases[RELEASED] = current.version
    current_aliases = client.get_registered_model(name).aliases
    for alias, version in aliases.items():
        if str(current_aliases.get(alias, "")) != version:
            client.set_registered_model_alias(name, alias, version)


def read_description(card: str) -> str:
    """Return a model card without its front matter, which MLflow would show as text."""
    _, fence, rest = card.partition("\n---\n")
    return (rest if card.startswith("---\n") and fence else card).strip()


def shorten(card: str) -> str:
    """Cut a description between two lines to the length that the registry takes, and say so."""
    if len(card) <= _MAX_DESCRIPTION:
        return card
    head = card[: _MAX_DESCRIPTION - len(_SHORTENED)]
    return (head.rpartition("\n")[0] or head) + _SHORTENED


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
