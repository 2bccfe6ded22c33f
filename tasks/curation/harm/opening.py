"""Open the guard that the settings name."""

from pathlib import Path

from data_schemas.rl_settings import JudgeKind, JudgeSettings
from tasks.curation.harm.chat_guard import ChatGuard
from tasks.curation.harm.protocol import Guard
from tasks.curation.harm.text_classifier import TextClassifier
from tasks.engines.model_judge import ModelJudge
from tasks.gym.judging.chat_client import ChatClient, ChatSampling
from tasks.gym.judging.opening import NUM_CONCURRENT, key_of
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
            client = ChatClient(
                settings.address,
                settings.model,
                ChatSampling(MAX_REPLY_TOKENS),
                key=key_of(settings.address),
                timeout_s=settings.timeout_s,
                max_concurrent=NUM_CONCURRENT,
                weights=settings.weights,
            )
            return ChatGuard(client.ask)
        case JudgeKind.MODEL:
            folder = Path(settings.address)
            if has_classification_head(folder):
                return TextClassifier(folder)
            return ChatGuard(ModelJudge(folder).ask)
