# pyright: reportMissingImports=false
"""Several vLLM processes with the same weights that generate in parallel."""

import queue
import threading
from collections.abc import Generator, Iterator, Sequence

import torch
from vllm import RequestOutput

from tasks.algorithms.scheduling import assign, longest_first
from tasks.engines.rollout_vllm.backend import Backend, Call
from tasks.engines.rollout_vllm.own_process import OwnProcess
from tasks.engines.rollout_vllm.staging import Staging
from tasks.engines.rollout_vllm.update import sync_weights
from tasks.errors import EngineError

Reply = tuple[int, RequestOutput] | BaseException | None
"""An output, an error that ended a replica, or None after a replica's last output."""


class Replicas:
    """A Backend over several; requests are balanced by expected tokens."""

    def __init__(self, members: Sequence[OwnProcess], staging: Staging) -> None:
        self._members = members
        self._staging = staging

    @property
    def restarts(self) -> int:
        """Restarts of all members together."""
        return sum(member.restarts for member in self._members)

    @property
    def reissued(self) -> int:
        """Requests that any member was sent again after a restart."""
        return sum(member.reissued for member in self._members)

    @property
    def cache_tokens(self) -> int:
        """Tokens that the smallest cache among the members holds."""
        return min(member.cache_tokens for member in self._members)

    @property
    def max_tokens(self) -> int:
        """Longest sequence that every member takes."""
        return min(member.max_tokens for member in self._members)

    def run(self, calls: Sequence[Call]) -> Generator[tuple[int, RequestOutput]]:
        """Yield the outputs of all members as they end."""
        replies: queue.SimpleQueue[Reply] = queue.SimpleQueue()
        over = threading.Event()
        count = len(self._members)
        parts = spread_calls(calls, count)
        threads = [
            threading.Thread(target=_listen, args=(member, part, replies, over), daemon=True)
            for member, part in zip(self._members, parts, strict=True)
        ]
        for thread in threads:
            thread.start()
        working = count
        try:
            while working:
                one = replies.get()
                if isinstance(one, BaseException):
                    raise EngineError(f"a replica failed: {one}") from one
                if one is None:
                    working -= 1
                else:
                    yield one
        finally:
            over.set()
            for thread in threads:
                thread.join()

    def install(self, weights: Iterator[tuple[str, torch.Tensor]]) -> str:
        """Write the weights once, and update all members to them.

        Raises:
            EngineError: the tensors do not fit, or an update failed; all members are unchanged.
        """
        return sync_weights(self._members, self._staging, weights)

    def sleep(self) -> None:
        """Put all members to sleep."""
        for member in self._members:
            member.sleep()

    def close(self) -> None:
        """Close all members."""
        for member in self._members:
            member.close()


def spread_calls(calls: Sequence[Call], count: int) -> list[list[Call]]:
    """Balance requests by expected tokens, their calls together; each part keeps the order."""
    tokens: dict[int, float] = {}
    for call in calls:
        tokens[call.request] = tokens.get(call.request, 0.0) + call.expected_tokens
    names, loads = list(tokens), list(tokens.values())
    dealt = [
        {names[place] for place in part} for part in assign(loads, longest_first(loads), count)
    ]
    return [[call for call in calls if call.request in part] for part in dealt]


def _listen(
    member: Backend,
    calls: Sequence[Call],
    replies: "queue.SimpleQueue[Reply]",
    over: threading.Event,
) -> None:
    """Put a member's outputs into the queue until it ends or is stopped."""
    answers = member.run(calls)
    try:
        for answer in answers:
            replies.put(answer)
            if over.is_set():
                break
        replies.put(None)
    except Exception as error:  # noqa: BLE001 - boundary: any error of the thread is passed to the caller
        replies.put(error)
    finally:
        answers.close()
