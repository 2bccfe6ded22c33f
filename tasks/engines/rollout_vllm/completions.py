# pyright: reportMissingImports=false
"""From requests to vLLM's calls, and from its outputs to rollouts.

Every sample is a separate call with its own seed: a hash of (seed, problem, sample, length of the
earlier response). So its tokens do not depend on the other calls. The generator of a call restarts:
a continued response has other tokens than an uninterrupted one, from the same distribution, and is
reproducible.

Letters: T tokens, L MoE layers, K experts per token.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from vllm import CompletionOutput, RequestOutput, SamplingParams
from vllm.logprobs import FlatLogprobs
from vllm.outputs import SamplingMask
from vllm.sampling_params import RequestOutputKind

from data_schemas.rollouts import KeptSets, Rollout, RouterTrace, StopReason
from tasks.algorithms.kept_sets import check_kept, end_to_end
from tasks.algorithms.routing import check_trace
from tasks.engines.embedded import slots
from tasks.engines.embedded.slots import Seat
from tasks.engines.protocols import Request, Sampling
from tasks.engines.rollout_vllm.backend import Call
from tasks.engines.rollout_vllm.options import ModelFacts
from tasks.errors import DataError, EngineError, SettingsError

COLDEST, HOTTEST = 0.01, 2.0
"""vLLM silently raises temperatures below COLDEST and refuses those above HOTTEST."""
LARGEST_UINT8 = 256
"""Largest number of experts whose ids fit into a byte."""


def make_seats(
    requests: Sequence[Request], sampling: Sampling, positions: int, capacity: int, first: int = 0
) -> list[Seat]:
    """One seat per sample, in the order of the requests, which are numbered from `first`.

    Args:
        requests: of one call.
        sampling: of the call.
        positions: of the model.
        capacity: longest sequence that the engine's cache holds.
        first: number of the first request.

    Raises:
        DataError: a request has no prompt, or no token left to draw.
        SettingsError: vLLM does not support the temperature or the length.
    """
    if sampling.temperature != 0.0 and not COLDEST <= sampling.temperature <= HOTTEST:
        raise SettingsError(
            f"temperature {sampling.temperature}: vLLM samples between {COLDEST} and {HOTTEST}; "
            "0 is greedy"
        )
    seats = slots.make_seats(requests, sampling, positions, first)
    longest = max((len(one.prompt_tokens) for one in requests), default=0) + sampling.max_new_tokens
    if longest > capacity:
        raise SettingsError(
            f"a response may have {longest} tokens with its prompt, and beside the weights vLLM's "
            f"cache holds {capacity} of one sequence; raise layout.rollout_memory or "
            "layout.rollout_tensor, or lower max_new_tokens"
        )
    return seats


def refuse_sets(sampling: Sampling, *, records: bool) -> None:
    """Refuse what an engine does not record, or does not draw because it records.

    Args:
        sampling: of a call.
        records: the engine was opened for the sets that tokens are drawn from.

    Raises:
        SettingsError: names the parameter.
    """
    if sampling.record_kept and not records:
        raise SettingsError(
            "a vLLM engine records what it draws from only if it was opened for it (record_kept)"
        )
    if records and not (sampling.temperature and sampling.top_k):
        raise SettingsError(
            f"temperature {sampling.temperature:g} with top_k {sampling.top_k}: a vLLM engine that "
            "records what it draws from draws from bounded sets only; set both above 0"
        )


def call_of(number: int, seat: Seat, sampling: Sampling, end_tokens: tuple[int, ...]) -> Call:
    """Build vLLM's call for one sample."""
    request = seat.request
    allowed = sampling.max_new_tokens - len(request.response_tokens)
    params = SamplingParams(
        n=1,
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        top_k=sampling.top_k,
        min_p=sampling.min_p,
        max_tokens=min(allowed, sampling.segment_tokens or allowed),
        seed=call_seed(sampling.seed, seat),
        logprobs=0,
        flat_logprobs=True,
        # Text is needed only to find stop strings; it includes special tokens.
        detokenize=bool(sampling.stop),
        stop=list(sampling.stop),
        include_stop_str_in_output=True,
        skip_special_tokens=False,
        # These tokens end a response, in both engines; vLLM would add others by itself.
        ignore_eos=True,
        stop_token_ids=list(end_tokens),
        output_kind=RequestOutputKind.FINAL_ONLY,
    )
    tokens = np.concatenate([request.prompt_tokens, request.response_tokens]).tolist()
    return Call(number, seat.number, tokens, params, request.expected_tokens)


def call_seed(seed: int, seat: Seat) -> int:
    """63-bit seed of this sample at this point of its response."""
    request = seat.request
    text = f"{seed}\0{seat.sample}\0{len(request.response_tokens)}\0{request.problem_id}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") >> 1


def rollout_of(
    seat: Seat, output: RequestOutput, sampling: Sampling, facts: ModelFacts, version: int
) -> Rollout:
    """Convert vLLM's output to a rollout.

    Raises:
        EngineError: vLLM aborted it, or it lacks log-probabilities, routes or sets.
    """
    request, (answer,) = seat.request, output.outputs
    name = f"{request.problem_id} sample {seat.sample}"
    if answer.finish_reason not in {"stop", "length"}:
        raise EngineError(f"vLLM ended {name} with {answer.finish_reason!r}")
    tokens = np.asarray(answer.token_ids, dtype=np.int32)
    trace = None
    if sampling.record_routes and facts.num_experts:
        fed = len(request.prompt_tokens) + len(request.response_tokens) + len(tokens) - 1
        trace = trace_of(answer.routed_experts, fed, facts, name)
    return Rollout(
        problem_id=request.problem_id,
        sample=seat.sample,
        prompt_tokens=request.prompt_tokens,
        response_tokens=tokens,
        logprobs=_logprobs(answer.logprobs, tokens, name),
        trace=trace,
        stop_reason=_stop_reason(answer, request, sampling),
        policy_version=version,
        kept=kept_of(answer.sampling_mask, tokens, name) if sampling.record_kept else None,
    )


def trace_of(
    experts: NDArray[np.integer] | None, fed: int, facts: ModelFacts, name: str
) -> RouterTrace:
    """Check the recorded routes, and keep the layers that have a router.

    Raises:
        EngineError: they are not the routes of `fed` tokens, or all zeros.
    """
    if experts is None:
        raise EngineError(f"vLLM returned no routed experts for {name}")
    kept_TLK = np.ascontiguousarray(np.asarray(experts)[:, list(facts.moe_layers)])
    kept_TLK = kept_TLK.astype(np.uint8 if facts.num_experts <= LARGEST_UINT8 else np.int16)
    trace = RouterTrace(kept_TLK)
    try:
        check_trace(trace, fed + 1, facts.num_experts)
    except DataError as error:
        raise EngineError(f"vLLM's routed experts of {name}: {error}") from error
    # With one expert per token no row repeats an expert; all zeros are then the only symptom.
    if fed > 1 and not kept_TLK.any():
        raise EngineError(f"vLLM's routed experts of {name} are all zero: nothing was recorded")
    return trace


def kept_of(mask: SamplingMask | None, tokens: NDArray[np.int32], name: str) -> KeptSets:
    """Check the sets that the tokens of a response were drawn from.

    Raises:
        EngineError: there are none, as from vLLM's first model runner or with batch-sharded
            sampling, or they are not those of the tokens.
    """
    if mask is None:
        raise EngineError(
            f"vLLM returned no sampling mask for {name}: its first model runner records none"
        )
    sets = end_to_end([np.array(one, dtype=np.int32) for one in mask.token_ids])
    try:
        check_kept(sets, tokens, None)
    except DataError as error:
        raise EngineError(f"vLLM's sampling mask of {name}: {error}") from error
    return sets


def logprobs_call(number: int, tokens: NDArray[np.int32]) -> Call:
    """Build the call for the log-probabilities of a sequence's own tokens."""
    params = SamplingParams(
        max_tokens=1,
        # Of the token behind them, which is not read: an engine that records what it draws from
        # refuses to be greedy, and without a seed it would draw from torch's own generator.
        temperature=1.0,
        top_k=1,
        seed=0,
        prompt_logprobs=0,
        flat_logprobs=True,
        detokenize=False,
        output_kind=RequestOutputKind.FINAL_ONLY,
    )
    return Call(number, number, tokens.tolist(), params)


def logprobs_of(output: RequestOutput, tokens: NDArray[np.int32]) -> NDArray[np.float32]:
    """Log-probabilities of tokens 1..T-1.

    Raises:
        EngineError: vLLM returned log-probabilities of other tokens.
    """
    return _logprobs(output.prompt_logprobs, tokens[1:], "a scored sequence")


def _logprobs(logprobs: Any, tokens: NDArray[np.int32], name: str) -> NDArray[np.float32]:
    # One entry per position; the first position of a prompt has none.
    if not isinstance(logprobs, FlatLogprobs) or logprobs.token_ids != tokens.tolist():
        raise EngineError(f"vLLM's log-probabilities of {name} are not those of its tokens")
    return np.asarray(logprobs.logprobs, dtype=np.float32)


def _stop_reason(answer: CompletionOutput, request: Request, sampling: Sampling) -> StopReason:
    if answer.finish_reason == "stop":
        return StopReason.STOP if isinstance(answer.stop_reason, str) else StopReason.END
    whole = len(request.response_tokens) + len(answer.token_ids)
    return StopReason.LENGTH if whole == sampling.max_new_tokens else StopReason.SEGMENT
