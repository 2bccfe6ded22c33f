"""The versions of a registered model: what was released when, and what was refused."""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass

from tasks.errors import DataError, EngineError, SettingsError
from tasks.provenance.lineage.connection import boundary, connect, require_sqlite
from tasks.provenance.lineage.registry import AUDIT_TAG, PromotionEntry, history

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RegisteredVersion:
    """A version of a registered model, released or refused."""

    number: str
    aliases: tuple[str, ...]
    tags: dict[str, str]
    created: float
    """Unix time, seconds."""


def read_history(name: str, tracking_uri: str) -> list[PromotionEntry]:
    """List all promotions of a model, the current one last.

    Raises:
        SettingsError: there is no such model or no such MLflow store.
        EngineError: MLflow does not answer.
    """
    require_sqlite(tracking_uri)
    client = connect(tracking_uri)
    from mlflow.exceptions import MlflowException

    with boundary():
        try:
            return history(client, name)
        except MlflowException as error:
            if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                raise
            raise SettingsError(f"MLflow has no model {name}: {error.message}") from error


def read_candidates(name: str, tracking_uri: str) -> Sequence[RegisteredVersion]:
    """List all versions of a model, oldest first.

    Raises:
        EngineError: MLflow does not answer.
    """
    client = connect(tracking_uri)
    with boundary():
        result = client.search_model_versions(f"name = '{name}'")
        aliases = client.get_registered_model(name).aliases
    pairs = [(str(number), alias) for alias, number in aliases.items()]
    return sorted(
        (
            RegisteredVersion(
                number=str(version.version),
                aliases=tuple(alias for number, alias in pairs if number == str(version.version)),
                tags=dict(version.tags),
                created=version.creation_timestamp / 1000,
            )
            for version in result
        ),
        key=lambda one: int(one.number),
    )


def record_audit(name: str, number: str, verdict: str, tracking_uri: str) -> None:
    """Show the verdict of an audit on the page of a version; an auditor may lack the right to.

    Args:
        name: of the registered model.
        number: of the version.
        verdict: its first word is 'PROVED' or 'BROKEN'.
        tracking_uri: of MLflow.
    """
    now = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    try:
        with boundary():
            connect(tracking_uri).set_model_version_tag(name, number, AUDIT_TAG, f"{verdict} {now}")
    except (EngineError, DataError) as error:
        logger.warning("the verdict is not shown in MLflow: %.200s", error)
