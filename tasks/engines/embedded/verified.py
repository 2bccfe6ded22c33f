"""Exact rollouts: every token is verified by a pass over its sequence alone, and drafts are reused.

A token of an exact rollout is the one that the sequence's random number selects from the logits of
a teacher-forced pass over prompt and response, `BLOCK` positions at a time, with nothing else in
the batch; its log-probability and the routes are that pass's as well. Decoding in batches, and an
earlier response of the same stream (a draft), only guess what this token will be: a guess is kept
up to the first token that differs, and the verified token stands there instead.

So a rollout is a function of weights, prompt, sampling and stream. It does not depend on the batch,
the slots or the drafts: with and without drafts, tokens, log-probabilities and routes are equal
byte for byte, in any precision. A draft of another policy, a damaged one, or one of another prompt
costs its verification and changes nothing. Two conditions, which tests check on the models of this
project: the machine computes the same operation on the same shape to the same bits, and a row of a
matrix product is computed from that row of the input alone. Two machines, or another number of
threads, may differ by rounding, as everywhere.

Prior work: SPEC-RL (arXiv 2509.23232) accepts a draft's token by a lenient ratio of probabilities.
Differs: the draft's random numbers are used again, so that acceptance is exact, and the log-probs
of what is kept are those of the new policy.

Letters: C tokens of a block, V vocabulary, T tokens, L MoE layers, K experts per token.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray

from data_schemas.rollouts import Rollout, RouterTrace, StopReason
from tasks.algorithms.kept_sets import end_to_end, sets_of
from tasks.engines.embedded.rollout_forward import DecoderForward
from tasks.engines.embedded.sampling import draw, stream_key, uniforms
from tasks.engines.embedded.slots import Seat
from tasks.engines.protocols import Request, Sampling
from tasks.engines.stop_strings import StopStrings

BLOCK = 64
"""Positions of a pass: a prompt and its response are padded to a multiple of it."""
_Drawn = tuple[list[int], list[float], list[NDArray[np.int32]]]
"""Tokens, their log-probabilities, and what each was drawn from where that is recorded."""
Decode = Callable[[Sequence[Request], Sampling], Iterator[Rollout]]
"""Generates in batches, as fast as it can."""


@dataclass(slots=True)
class _Response:
    """A response, as far as it is verified."""

    seat: Seat
    keys: list[torch.Tensor]
    """Keys of the blocks that are complete; `values` alike."""
    values: list[torch.Tensor]
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    kept_sets: list[NDArray[np.int32]] = field(default_factory=list)
    """What each token was drawn from, where that is recorded."""
    routes: list[torch.Tensor] = field(default_factory=list)
    """Routes of all blocks that are complete; of the tokens after them when the response has
    ended."""
    reused: int = 0
    stop_reason: StopReason | None = None

    @property
    def whole(self) -> list[int]:
        """Prompt, earlier response and the verified tokens."""
        request = self.seat.request
        return [*request.prompt_tokens.tolist(), *request.response_tokens.tolist(), *self.tokens]


class DraftVerifier:
    """Generates exact rollouts with a model's forward pass and a decoder that guesses.

    Args:
        forward: of the policy.
        decode: of the same policy.
        end_tokens: each of them ends a response.
        stop: as in the sampling.
        sampling: of the rollouts.
        room: tokens whose keys and values are kept for responses that wait; what is beyond them
            is computed again, to the same bytes.
    """

    def __init__(
        self,
        forward: DecoderForward,
        decode: Decode,
        end_tokens: tuple[int, ...],
        stop: StopStrings,
        sampling: Sampling,
        room: int,
    ) -> None:
        self._forward = forward
        self._decode = decode
        self._end_tokens = end_tokens
        self._stop = stop
        self._sampling = sampling
        self._room = room
        self.verified_tokens = 0
        """Tokens fed so far."""

    def generate(self, seats: Sequence[Seat], version: int) -> Iterator[Rollout]:
        """Yield the rollout of every seat as it ends."""
        guessing = replace(self._sampling, exact=False, record_routes=False, record_kept=False)
        waiting: list[_Response] = []
        for seat in seats:
            response = _Response(seat, *self._forward.no_tokens())
            draft = _draft(seat, self._forward.vocabulary)
            response.reused = self._verify(response, draft) if draft else 0
            if response.stop_reason is None:
                waiting.append(response)
                self._keep_to_room(response, waiting)
            else:
                yield _rollout(response, self._sampling, version)
        while waiting:
            live = {(str(one.seat.number), one.seat.sample): one for one in waiting}
            # Once, unless decoding in a batch and the pass alone round a tie differently.
            for guess in self._decode(_requests(waiting), guessing):
                response = live[guess.problem_id, guess.sample]
                self._verify(response, guess.response_tokens.tolist())
                if response.stop_reason is not None:
                    yield _rollout(response, self._sampling, version)
                    self._forget(response)
                else:
                    self._keep_to_room(response, waiting)
            waiting = [one for one in waiting if one.stop_reason is None]

    def _keep_to_room(self, response: _Response, waiting: Sequence[_Response]) -> None:
        """Forget the blocks of a response, if all that wait have more than there is room for."""
        if sum(len(one.keys[0]) for one in waiting) > self._room:
            self._forget(response)

    def _forget(self, response: _Response) -> None:
        """Drop what was computed of a response; its tokens and log-probabilities stay."""
        response.keys, response.values = self._forward.no_tokens()
        response.routes = []

    def _verify(self, response: _Response, guess: list[int]) -> int:
        """Append the tokens that are drawn, up to the first that is not the guess or ends it.

        Returns:
            how many tokens of the guess were drawn; at least one token is appended.
        """
        first = len(response.whole)
        guessed, agreed = [*response.whole, *guess], True
        while True:
            start = len(response.keys[0])
            draws, experts_CLK, *cache = self._draw_block(response, guessed, start)
            tokens, logprobs, sets = draws
            for place in range(max(start, first - 1), start + BLOCK):
                response.tokens.append(tokens[place - start])
                response.logprobs.append(logprobs[place - start])
                response.kept_sets += sets[place - start : place - start + 1]
                response.stop_reason = self._reason_to_stop(response)
                following = guessed[place + 1 : place + 2]
                agreed = following == response.tokens[-1:]
                if response.stop_reason is not None:
                    response.routes.append(experts_CLK[: place + 1 - start])
                    return place + 1 - first + agreed
                if not agreed and place + 1 < start + BLOCK:
                    return place + 1 - first
            response.keys, response.values = cache
            response.routes.append(experts_CLK)
            if not agreed:
                return start + BLOCK - first

    def _draw_block(
        self, response: _Response, guessed: list[int], start: int
    ) -> tuple[_Drawn, torch.Tensor, list[torch.Tensor], list[torch.Tensor]]:
        """Draw the tokens after each of the next BLOCK positions, padded at the end."""
        request, sampling = response.seat.request, self._sampling
        fed = guessed[start : start + BLOCK]
        self.verified_tokens += len(fed)
        tokens_C = torch.tensor(fed + [0] * (BLOCK - len(fed)))
        logits_CV, experts_CLK, keys, values = self._forward.block(
            tokens_C, response.keys, response.values
        )
        key = stream_key(sampling.seed, request.stream or request.problem_id, response.seat.sample)
        # Of the next token; before the response nothing is drawn.
        place_C = np.maximum(start + 1 + np.arange(BLOCK) - len(request.prompt_tokens), 0)
        token_C, logprob_C, over_CV = draw(
            logits_CV,
            sampling.temperature,
            uniforms(np.full(BLOCK, key, np.uint64), place_C),
            top_p=sampling.top_p,
            top_k=sampling.top_k,
            min_p=sampling.min_p,
        )
        sets = sets_of(over_CV > -torch.inf) if sampling.record_kept else []
        return (token_C.tolist(), logprob_C.tolist(), sets), experts_CLK, keys, values

    def _reason_to_stop(self, response: _Response) -> StopReason | None:
        """Why the response ends with its last token; None if it does not."""
        tokens, sampling = response.tokens, self._sampling
        if tokens[-1] in self._end_tokens:
            return StopReason.END
        if sampling.stop and self._stop.match([tokens[-self._stop.tail :]])[0]:
            return StopReason.STOP
        whole = len(response.seat.request.response_tokens) + len(tokens)
        return StopReason.LENGTH if whole == sampling.max_new_tokens else None


def _draft(seat: Seat, vocabulary: int) -> list[int]:
    """Tokens that a draft guesses after the earlier response; none if it does not fit."""
    request, place = seat.request, seat.sample - seat.request.first_sample
    if place >= len(request.drafts):
        return []
    draft, earlier = request.drafts[place], len(request.response_tokens)
    if not np.array_equal(draft[:earlier], request.response_tokens):
        return []
    rest = draft[earlier:]
    unknown = np.flatnonzero((rest < 0) | (rest >= vocabulary))
    return rest[: unknown[0] if len(unknown) else None].tolist()


def _requests(waiting: Sequence[_Response]) -> list[Request]:
    """What is to be decoded; samples of which nothing is verified yet share a request."""
    requests: list[Request] = []
    for response in waiting:
        request, sample = response.seat.request, response.seat.sample
        name, last = str(response.seat.number), requests[-1] if requests else None
        if (
            last is not None
            and not response.tokens
            and (last.problem_id, last.first_sample + last.num_samples) == (name, sample)
            and len(last.response_tokens) == len(request.response_tokens)
        ):
            requests[-1] = replace(last, num_samples=last.num_samples + 1)
            continue
        verified = np.array(response.tokens, np.int32)
        requests.append(
            Request(
                name,
                request.prompt_tokens,
                num_samples=1,
                first_sample=sample,
                response_tokens=np.concatenate([request.response_tokens, verified]),
                stream=request.stream or request.problem_id,
            )
        )
    return requests


def _rollout(response: _Response, sampling: Sampling, version: int) -> Rollout:
    """Build the rollout of a response that has ended."""
    request, routes_TLK = response.seat.request, torch.cat(response.routes)
    traced = sampling.record_routes and routes_TLK.shape[1]
    assert response.stop_reason is not None
    return Rollout(
        problem_id=request.problem_id,
        sample=response.seat.sample,
        prompt_tokens=request.prompt_tokens,
        response_tokens=np.array(response.tokens, np.int32),
        logprobs=np.array(response.logprobs, np.float32),
        trace=RouterTrace(routes_TLK.numpy()) if traced else None,
        stop_reason=response.stop_reason,
        policy_version=version,
        reused=response.reused,
        kept=end_to_end(response.kept_sets) if sampling.record_kept else None,
    )
