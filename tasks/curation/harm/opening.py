"""Open the guard that the settings name."""

from functools import partial
from pathlib import Path

from data_schemas.rl_settings import JudgeKind, JudgeSettings
from tasks.curation.harm.chat_guard import ChatGuard
from tasks.curation.harm.protocol import Guard
from tasks.curation.harm.text_classifier import TextClassifier
from tasks.gym.judging.chat_client import ChatSampling
from tasks.gym.judging.opening import ModelJudge, open_chat
from tasks.models.model_folder import has_classification_head

MAX_REPLY_TOKENS = 1024
"""Guard models reply with a line or two, those that reason before it with some hundred tokens."""


def open_guard(settings: JudgeSettings) -> Guard | None:
    """Open an endpoint or a folder; None if no guard is set.

    Raises:
        SettingsError: it cannot be opened.
    """
    match settings.kind:
        case JudgeKind.NONE:
            return None
        case JudgeKind.HTTP:
            sampling = ChatSampling(MAX_REPLY_TOKENS)
            open_endpoint = partial(open_chat, settings.address, settings.model, sampling)
            return ChatGuard(open_endpoint(timeout_s=settings.timeout_s).ask)
        case JudgeKind.MODEL:
            folder = Path(settings.address)
            if has_classification_head(folder):
                return TextClassifier(folder)
            return ChatGuard(ModelJudge(folder).ask)
