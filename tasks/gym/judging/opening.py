"""Judges with a model, and the one that settings name; reads environment variables."""

import logging
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from data_schemas.rl_settings import JudgeKind, JudgeSettings
from data_schemas.rows import Message
from tasks.engines.chat import load_tokenizer, render_prompts, response_text
from tasks.engines.protocols import Request, Sampling
from tasks.errors import SettingsError
from tasks.gym.judging.calls import CachedJudge, Calls
from tasks.gym.judging.chat_client import ChatClient, ChatSampling
from tasks.gym.judging.endpoint import FIRST_PAUSE_S, ApiKey, Failed
from tasks.gym.judging.protocol import NO_JUDGE, Judge, JudgeCalls
from tasks.models.model_folder import check_model_folder, read_config

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


# A judge in this process: a Hugging Face model on the embedded rollout engine, greedy decoding.

_LOG = logging.getLogger(__name__)


REPLY_SHARE = 4
"""Share of the context reserved for the reply, equal for every prompt, so that a reply does not
depend on the other prompts."""


class ModelJudge:
    """A Judge on one model; threads take turns."""

    def __init__(self, folder: Path) -> None:
        context = _context(folder)
        self._reply_tokens = min(MAX_REPLY_TOKENS, context // REPLY_SHARE)
        self._prompt_tokens = context - self._reply_tokens
        self._tokenizer = load_tokenizer(folder)
        # Imported here: a judge behind an endpoint does not wait for transformers' model code.
        from tasks.engines.embedded.rollout import HFRolloutEngine

        self._engine = HFRolloutEngine(folder)
        self._name = f"{folder.name} in this process"
        self._lock = threading.Lock()
        self._calls = Calls()

    @property
    def name(self) -> str:
        """Return the name of the folder."""
        return self._name

    @property
    def calls(self) -> JudgeCalls:
        """Return the calls so far; nothing is retried."""
        return self._calls.snapshot

    def ask(self, prompts: Sequence[Sequence[Message]]) -> list[str | None]:
        """Answer every prompt that leaves room for a reply; None for the others."""
        tokens = render_prompts(self._tokenizer, prompts)
        requests = [
            Request(str(place), prompt, num_samples=1)
            for place, prompt in enumerate(tokens)
            if len(prompt) <= self._prompt_tokens
        ]
        sampling = Sampling(
            max_new_tokens=self._reply_tokens, temperature=0.0, seed=0, record_routes=False
        )
        with self._lock:
            rollouts = list(self._engine.generate(requests, sampling)) if requests else []
        replies = {
            rollout.problem_id: response_text(self._tokenizer, rollout.response_tokens.tolist())
            for rollout in rollouts
        }
        missing = len(prompts) - len(replies)
        self._calls.add(asked=len(prompts), failed=missing)
        if missing:
            _LOG.warning(
                "%s: %d of %d prompts are longer than %d tokens and were not judged",
                *(self._name, missing, len(prompts), self._prompt_tokens),
            )
        return [replies.get(str(place)) for place in range(len(prompts))]


def _context(folder: Path) -> int:
    """Return the number of positions the model supports.

    Raises:
        SettingsError: not a model directory, or a model that the embedded engine cannot run.
    """
    try:
        check_model_folder(folder)
        positions = read_config(folder).get("max_position_embeddings")
        if not isinstance(positions, int):
            raise SettingsError(f"{folder}/config.json has no max_position_embeddings.")
    except SettingsError as error:
        raise SettingsError(
            f"judge.address: {error} Any other model can be served with `vllm serve`; set "
            "judge.kind to http."
        ) from error
    return positions


# Open the judge that the settings name. Environment variables are read in this module only.

ENDPOINT_KEYS = "EACHPROMPT_ENDPOINT_KEYS"
"""API keys of endpoints under test, as host=key,host:port=key; no host is sent another's key."""
NUM_CONCURRENT = 64
"""Requests in flight at an endpoint under test; vLLM batches 256 sequences by default."""
SLOWEST_TOKENS_PER_S = 5
"""An endpoint that generates more slowly has not replied in time; vLLM under load does 20."""


def open_judge(settings: JudgeSettings) -> Judge:
    """Open the judge that the settings name, with a cache for equal prompts.

    Raises:
        SettingsError: no judge is set, or it cannot be opened.
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
            return CachedJudge(ModelJudge(Path(settings.address)))
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
