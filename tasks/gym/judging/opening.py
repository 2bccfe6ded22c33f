"""Open the judge that the settings name. Environment variables are read in this module only."""

import os
from urllib.parse import urlsplit

from data_schemas.rl_settings import JudgeKind, JudgeSettings
from tasks.errors import SettingsError
from tasks.gym.judging.calls import CachedJudge
from tasks.gym.judging.chat_client import ChatClient, ChatSampling
from tasks.gym.judging.endpoint import ApiKey
from tasks.gym.judging.http_judge import API_KEY, HttpJudge
from tasks.gym.judging.no_judge import NO_JUDGE
from tasks.gym.judging.protocol import Judge

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
                    weights=settings.weights,
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
