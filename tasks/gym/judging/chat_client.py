"""Chats with an OpenAI-compatible endpoint, such as `vllm serve`: judge, teacher, model under test.

Every prompt is one POST to {base}/chat/completions; `endpoint` says what becomes of one that fails.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from data_schemas.rows import Message
from tasks.errors import SettingsError
from tasks.gym.judging.endpoint import (
    FIRST_PAUSE_S,
    ApiKey,
    Body,
    EndpointClient,
    FailedPrompt,
    Operation,
    RejectedRequest,
)
from tasks.gym.protocol import THINK_CLOSE, THINK_OPEN

PATH = "/chat/completions"
PROOF = "eachprompt_proof"
"""Field of a response in which an endpoint of our own vouches for its weights."""
BODY_BYTES_PER_TOKEN = 128
"""A longer response body is refused: eight times what so many tokens take."""


@dataclass(frozen=True, slots=True)
class ChatSampling:
    """Sampling parameters of a request; those that equal the default of every server are left out.

    `min_p` is an extension of vLLM and SGLang.
    """

    max_tokens: int
    temperature: float = 0.0
    top_p: float = 1.0
    min_p: float = 0.0
    stop: tuple[str, ...] = ()

    def body(self) -> dict[str, object]:
        """Return them as fields of a request."""
        fields: dict[str, object] = {"temperature": self.temperature, "max_tokens": self.max_tokens}
        if self.top_p != 1.0:
            fields["top_p"] = self.top_p
        if self.min_p != 0.0:
            fields["min_p"] = self.min_p
        if self.stop:
            fields["stop"] = list(self.stop)
        return fields


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A completed response."""

    content: str
    thoughts: str
    """Reasoning that the server returns in a field of its own; '' if it does not."""
    tokens: int
    """Completion tokens that the server reports; 0 if it reports none."""
    truncated: bool
    """Stopped by `max_tokens`."""
    model: str = ""
    """Which model answered, as the server says; '' if it does not."""
    fingerprint: str = ""
    """Fingerprint of the server's weights and configuration, as it says (`system_fingerprint`)."""
    proof: str = ""
    """Envelope in which an endpoint of our own vouches for its weights; '' = none."""

    @property
    def text(self) -> str:
        """The whole response, with the reasoning between think tags."""
        if not self.thoughts:
            return self.content
        # Without content the thinking never ended: it stays open, as in the model's own text.
        end = THINK_CLOSE if self.content else ""
        return f"{THINK_OPEN}{self.thoughts}{end}{self.content}"


class ChatClient(EndpointClient[ChatReply]):
    """Sends at most `max_concurrent` prompts at a time, over all threads.

    Args:
        address: base URL, up to /v1.
        model: name under which the endpoint serves it.
        sampling: of every request.
        key: sent as bearer token.
        timeout_s: of one prompt, retries and pauses included.
        max_concurrent: requests in flight.
        first_pause_s: before the first retry.
        user: of every request; a server of our own proves its weights to a challenge in it.
        weights: that the server has proved; '' = unknown. A reply by others ends the work.

    Raises:
        SettingsError: the address is no base URL, or the key cannot be a header.
    """

    def __init__(
        self,
        address: str,
        model: str,
        sampling: ChatSampling,
        *,
        key: ApiKey,
        timeout_s: float,
        max_concurrent: int,
        first_pause_s: float = FIRST_PAUSE_S,
        user: str = "",
        weights: str = "",
    ) -> None:
        super().__init__(
            address,
            model,
            Operation(PATH, _reply_of, BODY_BYTES_PER_TOKEN * sampling.max_tokens),
            key=key,
            timeout_s=timeout_s,
            max_concurrent=max_concurrent,
            first_pause_s=first_pause_s,
        )
        self._sampling = sampling
        self._user = {"user": user} if user else {}
        self._weights = weights

    def stream(
        self, prompts: Sequence[Sequence[Message]], seeds: Sequence[int] = ()
    ) -> Iterator[tuple[int, ChatReply | FailedPrompt]]:
        """Send all prompts concurrently and yield (place, reply) as they finish.

        Args:
            prompts: chat turns.
            seeds: one per prompt for the server's random stream; empty for none.

        Raises:
            SettingsError: the endpoint refuses the key, the address or the model, or other weights
                answer than it proved.
        """
        bodies = [self._body(prompt) for prompt in prompts]
        if seeds:
            bodies = [{**body, "seed": seed} for body, seed in zip(bodies, seeds, strict=True)]
        for place, reply in self.send(bodies):
            if (
                self._weights
                and isinstance(reply, ChatReply)
                and reply.fingerprint != self._weights
            ):
                raise SettingsError(
                    f"{self.name} proved weights {self._weights[:12]}, and "
                    f"{reply.fingerprint[:12]!r} answered. Serve one model as long as a stage runs."
                )
            yield place, reply

    def ask(self, prompts: Sequence[Sequence[Message]]) -> list[ChatReply | FailedPrompt]:
        """Send all prompts concurrently and return the replies in order; see `stream`."""
        replies = dict(self.stream(prompts))
        return [replies[place] for place in range(len(prompts))]

    def _body(self, prompt: Sequence[Message]) -> Body:
        turns = [{"role": turn.role.value, "content": turn.content} for turn in prompt]
        return {"messages": turns, **self._sampling.body(), **self._user}


def _calls_of(message: Mapping[str, Any]) -> str:
    """Write the calls that a server has taken out of the text back into it, in hermes' form.

    Raises:
        RejectedRequest: they are not those of OpenAI's interface.
    """
    lines: list[str] = []
    try:
        for one in message.get("tool_calls") or ():
            name, arguments = one["function"]["name"], json.loads(one["function"]["arguments"])
            call = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
            lines += ["<tool_call>", call, "</tool_call>"]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise RejectedRequest(f"its tool_calls cannot be read: {error!r}") from error
    return "\n".join(lines)


def _reply_of(content: bytes) -> ChatReply:
    """Read a response body."""
    try:
        body = json.loads(content)
        choice = body["choices"][0]
        message = choice["message"]
        text = message.get("content")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise RejectedRequest(f"not a chat completion: {content[:200]!r}") from error
    # vLLM and SGLang with a reasoning parser; newer versions of vLLM use the second name.
    thoughts = message.get("reasoning_content") or message.get("reasoning")
    thoughts = thoughts if isinstance(thoughts, str) else ""
    calls = _calls_of(message)
    if calls:
        text = f"{text.strip()}\n{calls}" if isinstance(text, str) and text.strip() else calls
    if not isinstance(text, str) and not thoughts:
        raise RejectedRequest("the completion has no text")
    usage = body.get("usage")
    tokens = usage.get("completion_tokens") if isinstance(usage, dict) else 0
    return ChatReply(
        content=text if isinstance(text, str) else "",
        thoughts=thoughts,
        tokens=tokens if isinstance(tokens, int) else 0,
        truncated=choice.get("finish_reason") == "length",
        model=_text(body.get("model")),
        fingerprint=_text(body.get("system_fingerprint")),
        proof=_text(body.get(PROOF)),
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
