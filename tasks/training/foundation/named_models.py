"""The models that settings name by folder: judges, the screening model of grading, the guard, the
encoder of curation, and teachers of a recipe."""

from collections.abc import Callable
from typing import TypeVar

from data_schemas.machine_settings import Settings
from data_schemas.rl_settings import JudgeKind, JudgeSettings

JUDGE, SCREEN, GUARD, ENCODER, TEACHER = "judge", "screen", "guard", "encoder", "teacher"
SettingsT = TypeVar("SettingsT", bound=Settings)


def replace_models(settings: SettingsT, ingest: Callable[[str, str], str]) -> SettingsT:
    """Return the settings with another address for every model that they name.

    Args:
        settings: of a workflow or a stage.
        ingest: (role, address) -> new address.
    """
    changes: dict[str, object] = {}
    for name, value in settings:
        match value:
            case JudgeSettings() if value.kind is JudgeKind.MODEL:
                role = name if name in (GUARD, ENCODER) else JUDGE
                address = ingest(role, value.address)
                changes[name] = value.model_copy(update={"address": address})
            case Settings():
                changes[name] = replace_models(value, ingest)
            case dict() if name == "teachers":
                changes[name] = {key: ingest(TEACHER, str(one)) for key, one in value.items()}
            case str() if value and name == "screen_model":
                changes[name] = ingest(SCREEN, value)
            case _:
                pass
    return settings.model_copy(update=changes)
