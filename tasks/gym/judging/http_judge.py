"""A judge behind an OpenAI-compatible endpoint, such as `vllm serve`, asked at temperature 0.

A prompt that gets no reply (see `endpoint`) returns None.
"""

from collections.abc import Sequence

from data_schemas.rows import Message
from tasks.gym.judging.chat_client import ChatClient, ChatSampling
from tasks.gym.judging.endpoint import FIRST_PAUSE_S, ApiKey, FailedPrompt
from tasks.gym.judging.protocol import JudgeCalls

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
        weights: str = "",
    ) -> None:
        self._client = ChatClient(
            address,
            model,
            ChatSampling(MAX_REPLY_TOKENS),
            key=ApiKey(API_KEY, api_key),
            timeout_s=timeout_s,
            max_concurrent=max_concurrent,
            first_pause_s=first_pause_s,
            weights=weights,
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
            SettingsError: the endpoint refuses the key, the address or the model, or other weights
                answer than it proved.
        """
        replies = self._client.ask(prompts)
        return [None if isinstance(reply, FailedPrompt) else reply.text for reply in replies]

    def close(self) -> None:
        """Stop the threads after the requests in progress have ended."""
        self._client.close()
