"""Slots of the sequences being decoded: KV cache, tokens and routes.

Live sequences always occupy the first slots: when one ends, the last moves into its slot. So the
cost of a step depends only on its live sequences.

All slots are as wide as the longest sequence, and together they hold a bounded number of tokens:
long sequences leave fewer slots. A sequence counts with all tokens that it may reach, so that
none has to stop for want of memory. One that exceeds the bound alone is decoded alone.

Letters: S slots, B live sequences, T positions of a sequence, L layers (of routes: MoE layers),
G key-value heads, D head dimension, K experts per token.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from data_schemas.rollouts import Rollout, RouterTrace, StopReason
from tasks.algorithms.kept_sets import end_to_end
from tasks.engines.embedded.rollout_forward import Prefill
from tasks.engines.embedded.sampling import stream_key, uniforms
from tasks.engines.protocols import Request, Sampling
from tasks.engines.stop_strings import StopStrings
from tasks.errors import DataError, SettingsError

TOKEN_BYTES = 12
"""Bytes of a token and its log-probability."""
GROWTH = 1.5
"""Number of positions added when a sequence needs more."""


@dataclass(frozen=True, slots=True)
class Seat:
    """One sample of one request, which occupies a slot until it ends."""

    number: int
    """Index of the request in its call."""
    request: Request
    sample: int


def make_seats(
    requests: Sequence[Request], sampling: Sampling, positions: int, first: int = 0
) -> list[Seat]:
    """Make one seat per sample, in the order of the requests.

    Args:
        requests: of one call.
        sampling: of the call.
        positions: of the model; behind the last one it would go on with what it never learned.
        first: number of the first request.

    Raises:
        DataError: a request has no prompt, or no token left to draw.
        SettingsError: a response may need more positions than the model has.
    """
    for request in requests:
        prompt, earlier = len(request.prompt_tokens), len(request.response_tokens)
        if prompt == 0:
            raise DataError(f"{request.problem_id} has no prompt token; drop it before generation")
        if earlier >= sampling.max_new_tokens:
            raise DataError(
                f"{request.problem_id} already has {earlier} of "
                f"{sampling.max_new_tokens} response tokens; it is complete, do not send it again"
            )
        if prompt + sampling.max_new_tokens > positions:
            raise SettingsError(
                f"{request.problem_id}: a prompt of {prompt} tokens and max_new_tokens "
                f"{sampling.max_new_tokens} exceed the model's {positions} positions. Choose a "
                "model with more, lower max_new_tokens, or leave longer prompts out with "
                "curation.max_prompt_tokens"
            )
    return [
        Seat(number, request, request.first_sample + offset)
        for number, request in enumerate(requests, start=first)
        for offset in range(request.num_samples)
    ]


class Slots:
    """State of the live sequences; vectors hold a number per slot, the first B are live.

    Args:
        sampling: of the call.
        size: largest number of slots.
        room: tokens that all slots together hold.
        end_tokens: each of them ends a response.
        stop: as in the sampling.
    """

    def __init__(
        self,
        sampling: Sampling,
        size: int,
        room: int,
        end_tokens: tuple[int, ...],
        stop: StopStrings,
    ) -> None:
        self._sampling = sampling
        self._stop = stop
        self._size = size
        self._room = room
        self._end_tokens = torch.tensor(end_tokens)
        self._seats: list[Seat] = []
        # Of every live sequence; sets differ in size, so no buffer holds them.
        self._kept: list[list[NDArray[np.int32]]] = []
        self._tokens_ST = torch.empty((size, 0), dtype=torch.int64)
        self._logprobs_ST = torch.empty((size, 0))
        self._routes_STLK = torch.empty(0)
        self._keys: list[torch.Tensor] = []
        self._values: list[torch.Tensor] = []
        # Tokens fed so far, which is the position of the next token to sample.
        self._position_S = torch.zeros(size, dtype=torch.int64)
        self._prompt_S = torch.zeros(size, dtype=torch.int64)
        self._stop_S = torch.zeros(size, dtype=torch.int64)
        self._stream_S = torch.zeros(size, dtype=torch.int64)

    @property
    def live(self) -> int:
        """Sequences being decoded."""
        return len(self._seats)

    @property
    def position_B(self) -> torch.Tensor:
        """Position of the last sampled token or, before sampling, of the next one."""
        return self._position_S[: self.live]

    @property
    def token_B(self) -> torch.Tensor:
        """The last sampled tokens."""
        return self._tokens_ST[torch.arange(self.live), self.position_B]

    @property
    def cache(self) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """Keys and values per layer [S, T, G, D], with room for the next token."""
        self._reserve(self.live, int(self.position_B.max()) + 2)
        return self._keys, self._values

    @property
    def cache_tokens(self) -> int:
        """Tokens for which the slots have memory."""
        return self._tokens_ST.numel()

    def fitting(self, waiting: Iterable[Seat]) -> int:
        """Number of waiting sequences, in their order, that fit beside the live ones.

        At least one if nothing is live.
        """
        count, longest = self.live, int(self._stop_S[: self.live].max()) if self.live else 0
        for seat in waiting:
            longest = max(longest, self.most(seat))
            if count == self._size or (count and (count + 1) * longest > self._room):
                break
            count += 1
        return count - self.live

    def uniforms_B(self) -> NDArray[np.float64]:
        """The random numbers of the tokens to sample."""
        place_B = self.position_B - self._prompt_S[: self.live]
        return uniforms(self._stream_S[: self.live].numpy().view(np.uint64), place_B.numpy())

    def most(self, seat: Seat) -> int:
        """Tokens that a sequence may reach in this call, with its prompt."""
        request, sampling = seat.request, self._sampling
        earlier = len(request.response_tokens)
        allowed = sampling.max_new_tokens - earlier
        if sampling.segment_tokens:
            allowed = min(allowed, sampling.segment_tokens)
        return len(request.prompt_tokens) + earlier + allowed

    def admit(
        self, seats: Sequence[Seat], prefilled: Prefill, rows: torch.Tensor, longest: int = 0
    ) -> None:
        """Assign sequences, which `fitting` has room for, to the slots after the live ones.

        Args:
            seats: of the sequences.
            prefilled: their prompts and earlier responses, and others.
            rows: the row of `prefilled` with each seat's.
            longest: tokens that those admitted next may reach; the slots become as wide at once.
        """
        first, last = self.live, self.live + len(seats)
        for slot, seat in enumerate(seats, start=first):
            self._begin(slot, seat)
        width = int(self._position_S[first:last].max())
        if not self._keys:
            self._routes_STLK = _without_places(prefilled.experts_PTLK, self._size)
            self._keys = [_without_places(layer, self._size) for layer in prefilled.keys]
            self._values = [_without_places(layer, self._size) for layer in prefilled.values]
        # Reserve their full length at once, if that is not much more than their prompts need.
        whole = max(len(seat.request.prompt_tokens) for seat in seats)
        needed = max(width + 1, min(whole + self._sampling.max_new_tokens, 4 * width))
        self._reserve(last, needed, longest)
        self._routes_STLK[first:last, :width] = prefilled.experts_PTLK[rows, :width]
        for cache, computed in zip(self._keys, prefilled.keys, strict=True):
            cache[first:last, :width] = computed[rows, :width]
        for cache, computed in zip(self._values, prefilled.values, strict=True):
            cache[first:last, :width] = computed[rows, :width]
        self._seats.extend(seats)
        self._kept.extend([] for _ in seats)

    def _begin(self, slot: int, seat: Seat) -> None:
        request = seat.request
        prompt = len(request.prompt_tokens)
        self._prompt_S[slot] = prompt
        self._position_S[slot] = prompt + len(request.response_tokens)
        self._stop_S[slot] = self.most(seat)
        key = stream_key(self._sampling.seed, request.problem_id, seat.sample)
        # torch computes little in uint64, so that an int64 holds the bits of the key.
        self._stream_S.numpy().view(np.uint64)[slot] = key

    def record(
        self,
        token_B: torch.Tensor,
        logprob_B: torch.Tensor,
        sets: Sequence[NDArray[np.int32]] = (),
    ) -> torch.Tensor:
        """Store the sampled tokens and return which sequences have ended: bool [B].

        Args:
            token_B: the tokens.
            logprob_B: their log-probabilities.
            sets: what they were drawn from, where that is recorded.
        """
        # Not strict: there are no sets where they are not recorded.
        for earlier, new in zip(self._kept, sets, strict=False):
            earlier.append(new)
        rows_B, live = torch.arange(self.live), self.live
        self._tokens_ST[rows_B, self.position_B] = token_B
        self._logprobs_ST[rows_B, self.position_B] = logprob_B
        ended_B = torch.isin(token_B, self._end_tokens)
        ended_B |= self.position_B + 1 >= self._stop_S[:live]
        if self._sampling.stop:
            ended_B |= torch.tensor(self._stop.match([self._tail(slot) for slot in range(live)]))
        return ended_B

    def advance(self, experts_BLK: torch.Tensor) -> None:
        """Record that the last sampled tokens were fed, with their routes."""
        self._routes_STLK[torch.arange(self.live), self.position_B] = experts_BLK
        self._position_S[: self.live] += 1

    def rollout(self, slot: int, version: int) -> Rollout:
        """Build the rollout of a slot."""
        seat, sampling = self._seats[slot], self._sampling
        request = seat.request
        end = int(self._position_S[slot]) + 1
        start = len(request.prompt_tokens) + len(request.response_tokens)
        tokens_R = self._tokens_ST[slot, start:end].numpy().astype(np.int32)
        trace = None
        if sampling.record_routes and self._routes_STLK.shape[2]:
            trace = RouterTrace(self._routes_STLK[slot, : end - 1].numpy().copy())
        whole = len(request.response_tokens) + len(tokens_R)
        if tokens_R[-1] in self._end_tokens:
            reason = StopReason.END
        elif sampling.stop and self._stop.match([self._tail(slot)])[0]:
            reason = StopReason.STOP
        elif whole == sampling.max_new_tokens:
            reason = StopReason.LENGTH
        else:
            reason = StopReason.SEGMENT
        return Rollout(
            problem_id=request.problem_id,
            sample=seat.sample,
            prompt_tokens=request.prompt_tokens,
            response_tokens=tokens_R,
            logprobs=self._logprobs_ST[slot, start:end].numpy().copy(),
            trace=trace,
            stop_reason=reason,
            policy_version=version,
            kept=end_to_end(self._kept[slot]) if sampling.record_kept else None,
        )

    def _tail(self, slot: int) -> list[int]:
        """The new tokens in which a stop string may have been completed."""
        request, end = self._seats[slot].request, int(self._position_S[slot]) + 1
        start = len(request.prompt_tokens) + len(request.response_tokens)
        return self._tokens_ST[slot, max(start, end - self._stop.tail) : end].tolist()

    def drop(self, ended_B: torch.Tensor) -> None:
        """Free the slots of ended sequences; the last live sequences move into them."""
        remaining = self.live - int(ended_B.sum())
        gaps = ended_B[:remaining].nonzero()[:, 0]
        movers = remaining + (~ended_B[remaining:]).nonzero()[:, 0]
        if len(gaps):
            width = int(self.position_B.max()) + 1
            for buffer in self._buffers():
                buffer[gaps, :width] = buffer[movers, :width]
            for vector in (self._position_S, self._prompt_S, self._stop_S, self._stream_S):
                vector[gaps] = vector[movers]
            for gap, mover in zip(gaps.tolist(), movers.tolist(), strict=True):
                self._seats[gap], self._kept[gap] = self._seats[mover], self._kept[mover]
        del self._seats[remaining:], self._kept[remaining:]

    def _buffers(self) -> list[torch.Tensor]:
        return [
            self._tokens_ST,
            self._logprobs_ST,
            self._routes_STLK,
            *self._keys,
            *self._values,
        ]

    def _reserve(self, num_slots: int, width: int, longest: int = 0) -> None:
        """Make room for `width` positions of so many sequences and, within the bound, for more."""
        slots, have = self._tokens_ST.shape
        if width <= have and num_slots <= slots:
            return
        if width > have:
            width = max(width, round(have * GROWTH), 64)
        width = max(width, int(self._position_S[:num_slots].max()) + 1)
        if self._size * width > self._room:
            # No wider than `fitting` assumed.
            width = max(longest, int(self._stop_S[:num_slots].max()))
        slots = max(num_slots, min(self._size, self._room // width))
        shape = (slots, width)
        self._tokens_ST = _resized(self._tokens_ST, shape, self.live)
        self._logprobs_ST = _resized(self._logprobs_ST, shape, self.live)
        self._routes_STLK = _resized(self._routes_STLK, shape, self.live)
        # One by one: never more than one layer is in memory twice.
        for cache in (self._keys, self._values):
            for layer in range(len(cache)):
                cache[layer] = _resized(cache[layer], shape, self.live)


def _without_places(like_PT: torch.Tensor, size: int) -> torch.Tensor:
    return like_PT.new_empty((size, 0, *like_PT.shape[2:]))


def _resized(buffer_ST: torch.Tensor, shape: tuple[int, int], live: int) -> torch.Tensor:
    # Zeros: masked positions must be finite, because 0 * NaN is NaN.
    # Positions are inside the next axis: the keys of a head are then contiguous in memory.
    (slots, width), rest = shape, buffer_ST.shape[2:]
    other = buffer_ST.new_zeros((slots, *rest[:1], width, *rest[1:]))
    other = other.transpose(1, 2) if rest else other
    both = min(width, buffer_ST.shape[1])
    other[:live, :both] = buffer_ST[:live, :both]
    return other
