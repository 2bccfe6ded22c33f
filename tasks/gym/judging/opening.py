"""Judges and models behind endpoints, as settings name them; reads environment variables."""

import os
from collections.abc import Sequence
from urllib.parse import urlsplit

from data_schemas.rl_settings import JudgeKind, JudgeSettings
from data_schemas.rows import Message
from tasks.errors import SettingsError
from tasks.gym.judging.calls import CachedJudge
from tasks.gym.judging.chat_client import ChatClient, ChatSampling
from tasks.gym.judging.endpoint import FIRST_PAUSE_S, ApiKey, Failed
from tasks.gym.judging.protocol import NO_JUDGE, Judge, JudgeCalls

# A judge behind an OpenAI-compatible endpoint, such as `vllm serve`, asked at temperature 0.
#
# A prompt that gets no reply (see `endpoint`) returns None.

API_KEY = "EACHPROMPT_JUDGE_API_KEY"
MAX_CONCURRENT = 16
MAX_REPLY_TOKENS = 4096
"""A distilled reasoning judge generates 1,000 to 3,000 thinking tokens before its JSON."""


class HttpJudge:
    """A Judge that sends at most `max_concurrent` prompts at a time, over all threads."""

    def __init__(
        self,
        address: str,
        model: str,
        *,
        api_key: str = "",
        timeout_s: float = 60.0,
        max_concurrent: int = MAX_CONCURRENT,
        first_pause_s: float = FIRST_PAUSE_S,
    ) -> None:
        self._client = ChatClient(
            address,
            model,
            ChatSampling(MAX_REPLY_TOKENS),
            key=ApiKey(API_KEY, api_key),
            timeout_s=timeout_s,
            max_concurrent=max_concurrent,
            first_pause_s=first_pause_s,
        )

    @property
    def name(self) -> str:
        """Return the model and the address."""
        return self._client.name

    @property
    def calls(self) -> JudgeCalls:
        """Return the calls so far."""
        return self._client.calls

    def ask(self, prompts: Sequence[Sequence[Message]]) -> list[str | None]:
        """Send all prompts concurrently.

        Raises:
            SettingsError: the endpoint refuses the key, the address or the model.
        """
        replies = self._client.ask(prompts)
        return [None if isinstance(reply, Failed) else reply.text for reply in replies]

    def close(self) -> None:
        """Stop the threads after the requests in progress have ended."""
        self._client.close()


# Open the judge that the settings name. Environment variables are read in this module only.

ENDPOINT_KEYS = "EACHPROMPT_ENDPOINT_KEYS"
"""API keys of endpoints under test, as host=key,host:port=key; no host is sent another's key."""
NUM_CONCURRENT = 64
"""Requests in flight at an endpoint under test; vLLM batches 256 sequences by default."""
SLOWEST_TOKENS_PER_S = 5
"""An endpoint that generates more slowly has not replied in time; vLLM under load does 20."""


def open_endpoint_judge(settings: JudgeSettings) -> Judge:
    """Open the judge behind an endpoint, with a cache for equal prompts.

    Raises:
        SettingsError: no judge is set, or it is a model folder, which needs an engine
            (`tasks.engines.scoring.open_judge`).
    """
    match settings.kind:
        case JudgeKind.HTTP:
            return CachedJudge(
                HttpJudge(
                    settings.address,
                    settings.model,
                    api_key=os.environ.get(API_KEY, ""),
                    timeout_s=settings.timeout_s,
                )
            )
        case JudgeKind.MODEL:
            raise SettingsError(
                f"judge.kind 'model' ({settings.address}) needs an engine in this process, which "
                "the pipeline has: serve the model (`vllm serve`, `eachprompt chat --serve`) and "
                "set judge.kind to http"
            )
        case JudgeKind.NONE:
            raise SettingsError(NO_JUDGE)


def open_chat(address: str, model: str, sampling: ChatSampling) -> ChatClient:
    """Open an endpoint with the key of its host; a response has the time of the longest one.

    Args:
        address: base URL.
        model: name under which it is served.
        sampling: of the responses.

    Raises:
        SettingsError: the address is no base URL, or its key cannot be a header.
    """
    return ChatClient(
        address,
        model,
        sampling,
        key=key_of(address),
        timeout_s=60.0 + sampling.max_tokens / SLOWEST_TOKENS_PER_S,
        max_concurrent=NUM_CONCURRENT,
    )


def key_of(address: str) -> ApiKey:
    """Return the API key of an endpoint's host; '' if it has none."""
    keys: dict[str, str] = {}
    for entry in os.environ.get(ENDPOINT_KEYS, "").split(","):
        host, _, value = entry.strip().partition("=")
        keys[host] = value
    return ApiKey(ENDPOINT_KEYS, keys.get(urlsplit(address).netloc, ""))
