"""Open the text encoder that the settings name."""

from pathlib import Path

from data_schemas.rl_settings import JudgeKind, JudgeSettings
from tasks.curation.meaning.endpoint_encoder import EndpointEncoder
from tasks.curation.meaning.folder_encoder import FolderEncoder
from tasks.curation.meaning.protocol import Encoder
from tasks.gym.judging.opening import key_of


def open_encoder(settings: JudgeSettings) -> Encoder | None:
    """Open an endpoint or a folder; None if no encoder is set.

    Raises:
        SettingsError: it cannot be opened.
    """
    match settings.kind:
        case JudgeKind.NONE:
            return None
        case JudgeKind.HTTP:
            return EndpointEncoder(
                settings.address,
                settings.model,
                key=key_of(settings.address),
                timeout_s=settings.timeout_s,
            )
        case JudgeKind.MODEL:
            return FolderEncoder(Path(settings.address))
