"""Which model answers at an endpoint: what it says of itself, and how it decides known cases.

None of this proves anything: a server may answer as whichever model it likes. It tells two runs
apart, and its reply carries the proof of a server of our own, which callers verify.
"""

from contextlib import closing

from data_schemas.rl_settings import JudgeSettings
from data_schemas.rows import Message, Role
from tasks.gym.judging.both_orders import Pair, compare
from tasks.gym.judging.chat_client import ChatClient, ChatReply, ChatSampling
from tasks.gym.judging.endpoint import ApiKey, FailedPrompt
from tasks.gym.judging.http_judge import HttpJudge

MAX_TOKENS = 64
"""Limit of the reply, whose text nobody reads; a response of so many tokens has room for a
proof."""
CANARIES = (
    Pair("What is 2 + 3? Answer with the number alone.", "5", "6"),
    Pair("Name one primary colour.", "A parcel is on its way to you.", "Red"),
)
"""A judge that is of any use prefers the first answer of the first, the second of the second."""


def introduce(settings: JudgeSettings, key: ApiKey, challenge: str) -> ChatReply | FailedPrompt:
    """Let an endpoint answer a challenge.

    Raises:
        SettingsError: the endpoint refuses the key, the address or the model.
    """
    client = ChatClient(
        settings.address,
        settings.model,
        ChatSampling(MAX_TOKENS),
        key=key,
        timeout_s=settings.timeout_s,
        max_concurrent=1,
        user=challenge,
    )
    with closing(client):
        (reply,) = client.ask([[Message(role=Role.USER, content="Which model are you?")]])
    return reply


def canary_verdicts(settings: JudgeSettings, key: ApiKey) -> str:
    """Write how a judge decides the canaries: a reward each, or why there is none.

    Raises:
        SettingsError: as in `introduce`, or other weights answer than the settings name.
    """
    judge = HttpJudge(
        settings.address,
        settings.model,
        api_key=key.value,
        timeout_s=settings.timeout_s,
        weights=settings.weights,
    )
    with closing(judge):
        verdicts = compare(judge, CANARIES)
    return ", ".join(one.reason if one.score is None else f"{one.score:g}" for one in verdicts)
