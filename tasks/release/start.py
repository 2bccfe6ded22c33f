"""Whether the version that a candidate was trained from is still the released one."""

from tasks.errors import SettingsError
from tasks.lineage.lookup import Lookup
from tasks.lineage.registry import KEY, RELEASED


def is_released(name: str, statement: str, execution: str, tracking_uri: str) -> bool:
    """Ask the registry whether the alias `released` is where it was when training began.

    A release by this execution counts too: its task may be tried again after it was registered.

    Args:
        name: of the registered model.
        statement: of the version that was released when training began.
        execution: id of this one.
        tracking_uri: of MLflow.

    Raises:
        EngineError: MLflow does not answer.
    """
    try:
        version = Lookup(tracking_uri).version(f"models:/{name}@{RELEASED}")
    except SettingsError:  # there is none any more
        return False
    mine = version.tags.get(KEY, "").startswith(f"{execution}.")
    return mine or version.tags.get("statement") == statement
