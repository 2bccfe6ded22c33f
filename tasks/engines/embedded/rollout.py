"""Rollouts with a transformers model in this process: the embedded default.

Model, cache and sampling are on the GPU, if there is one; tokens, positions, routes and random
numbers are on the CPU.

Requests are assigned to slots in the order given. All samples of a prompt share one prefill;
waiting sequences fill freed slots, and a rollout is yielded as soon as it is complete.

A prefill pass costs about as much as a few decoding steps, so sequences are admitted in waves:
when the live share falls below REFILL_BELOW, or nothing is left to decode.

A call with many sequences is divided into parts, each of which is decoded by itself, as it would
be alone: by worker processes, a core each, or one after the other (part_workers.py). The number of
parts depends on that of the sequences and on the model, never on the machine.

Memory is bounded whatever is asked at once: the slots hold a bounded number of tokens (slots.py),
and one prefill pass is in memory, that of PREFILL_TOKENS or of one longer prompt.

Letters: B live sequences, P prompts, T tokens, V vocabulary.
"""

import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel

from data_schemas.machine_settings import Precision
from data_schemas.rollouts import Rollout
from tasks.algorithms.digests import weight_digest
from tasks.algorithms.kept_sets import sets_of
from tasks.algorithms.logprobs import scores_from_hidden
from tasks.engines.chat import end_and_pad, load_tokenizer
from tasks.engines.embedded.hf_model import (
    is_small,
    load_on_device,
    weight_bytes,
    weights_in_memory,
    widen_routers,
)
from tasks.engines.embedded.int8 import round_weights
from tasks.engines.embedded.rollout_forward import DecoderForward, Prefill
from tasks.engines.embedded.sampling import draw
from tasks.engines.embedded.slots import TOKEN_BYTES, Seat, Slots, make_seats
from tasks.engines.expert_names import held_tensors, in_memory
from tasks.engines.part_workers import PartWorkers, Twin, workers_here
from tasks.engines.protocols import EngineCounters, Request, Sampling
from tasks.engines.request_queue import CallRequests, Requests
from tasks.engines.shared_tensors import SharedTensors, move_into
from tasks.engines.stop_strings import StopStrings
from tasks.errors import EngineError, SettingsError

MAX_LIVE_SEQUENCES = 512
"""Larger batches decode no faster on a CPU and cost memory."""
CACHE_BYTES = 2**31
"""Memory of the slots on a CPU, a quarter of the smallest machine's (`platform/resources.py`). Not
measured on the machine, so that a resumed phase has the same batches on another one. The shipped
model's 512 slots hold 2,700 tokens each."""
CACHE_SHARE = 0.25
"""Share of a GPU's memory that the slots may take; a trainer and its optimizer may be there too."""
REFILL_BELOW = 0.875
"""Live share of the slots under which waiting sequences are admitted."""
PREFILL_TOKENS = 4096
"""Padded tokens per prefill pass."""
SEQUENCES_A_PART = (96, 32)
"""Fewest sequences of a part, of a small model and of others. A decoding pass costs as much as so
many sequences take in it before it computes any: 48 at 0.8 M weights, where starting kernels
takes the time, and 12 at 135 M, where reading weights does. Twice as many cost a fifth more on
one core, and two parts take 0.6 of the time on two."""
PART_BYTES = 2**29
"""Memory that a part is expected to take."""
MAX_PARTS = 16
"""Most parts of a call: as many cores as one has on a desk."""
DTYPES = {
    Precision.FP32: torch.float32,
    Precision.BF16: torch.bfloat16,
    Precision.FP16: torch.float16,
    Precision.INT8: torch.float32,
}


class HFRolloutEngine:
    """A RolloutEngine on a transformers model in this process."""

    def __init__(
        self,
        folder: Path,
        *,
        precision: Precision = Precision.FP32,
        fp32_router: bool = False,
        slots: int = MAX_LIVE_SEQUENCES,
        workers: PartWorkers | None = None,
    ) -> None:
        """Open a model.

        Args:
            folder: a Hugging Face directory.
            precision: of weights and activations.
            fp32_router: keep the routers' weights in fp32.
            slots: sequences that are decoded at once.
            workers: compute parts of a call; None = those of this process.
        """
        if precision not in DTYPES:
            raise SettingsError(
                f"engines.precision '{precision}' needs engines.rollout 'vllm'; "
                "the embedded engine computes in 'fp32', 'bf16', 'fp16' or 'int8'"
            )
        if slots < 1:
            raise SettingsError(f"a rollout engine needs at least one slot, not {slots}")
        self._model: PreTrainedModel = load_on_device(folder, dtype=DTYPES[precision])
        if fp32_router:
            widen_routers(self._model, folder)
        self._is_rounded = precision is Precision.INT8
        if self._is_rounded:
            round_weights(self._model)
        self._opening = partial(
            _open_twin, folder=folder, precision=precision, fp32_router=fp32_router, slots=slots
        )
        self._workers = workers or workers_here()
        self._twin: Twin | None = None
        self._forward = DecoderForward(self._model)
        self._tokenizer = load_tokenizer(folder)
        self._end_tokens, self._pad_token = end_and_pad(self._tokenizer)
        self._version = self._syncs = 0
        self._slots = slots
        self._room = _cache_tokens(self._forward)
        self._counters = EngineCounters()

    @property
    def policy_version(self) -> int:
        """Version of the installed weights."""
        return self._version

    @property
    def num_experts(self) -> int:
        """Experts per MoE layer; 0 in a dense model."""
        return self._forward.architecture.num_experts

    def slots(self, tokens: float) -> int:
        """Number of sequences decoded concurrently, as many as the cache may hold."""
        return min(self._slots, max(1, int(self._room / max(1.0, tokens))))

    @property
    def counters(self) -> EngineCounters:
        """Work done so far."""
        return self._counters

    def load_weights(self, weights: Iterator[tuple[str, torch.Tensor]], version: int) -> str:
        """Install new weights atomically and return the digest of the received tensors.

        The digest is of the tensors as received, so that it equals the trainer's in any precision;
        that the model then holds these tensors, cast to its dtype, is checked one by one.
        """
        if self._is_rounded:
            raise EngineError("an engine of precision 'int8' takes no new weights")
        own, received = dict(held_tensors(self._model)), dict(weights)
        incoming = in_memory(self._model, received.items())
        wrong = sorted(own.keys() ^ incoming.keys()) or [
            name for name, tensor in own.items() if tensor.shape != incoming[name].shape
        ]
        if wrong:
            raise EngineError(f"weight sync does not fit the rollout model: {wrong[:3]}")
        with torch.no_grad():
            for name, tensor in own.items():
                tensor.copy_(incoming[name])
        for name, tensor in own.items():
            if not torch.equal(tensor, incoming[name].to(tensor)):
                raise EngineError(
                    f"weight sync: {name} differs from the received tensor or contains NaN"
                )
        self._forward.refresh()
        self._version = version
        self._syncs += 1
        return weight_digest(received.items())

    def sleep(self) -> None:
        """Do nothing: the cache of a call ends with it, and the weights stay."""

    def close(self) -> None:
        """Let workers close theirs; the model is freed with its last reference."""
        self._twin = None

    def generate(self, requests: Requests, sampling: Sampling) -> Iterator[Rollout]:
        """Start requests in the order given as slots free up; yield rollouts as they end.

        Raises:
            DataError: a request has no prompt, or no token left to draw.
            SettingsError: a response may need more positions than the model has.
        """
        installed = self._version, self._syncs
        parts = self._workers.each(
            self._open_twin,
            self.generate_elsewhere.__name__,
            self._generated,
            [(part, sampling, installed) for part in self._parts(requests, sampling)],
            nbytes=weight_bytes(self._model) + PART_BYTES,
        )
        for _, one in parts:
            if isinstance(one, EngineCounters):
                self._counters = _sum(self._counters, one)
                continue
            counters = self._counters
            self._counters = replace(
                counters,
                sequences=counters.sequences + 1,
                generated_tokens=counters.generated_tokens + one.num_sampled,
            )
            yield one

    def _parts(self, requests: Requests, sampling: Sampling) -> list[Requests]:
        """Divide requests by their number; in turn, because the first are the longest.

        A call that ends with `Sampling.enough` prompts ends for all at once.
        """
        if (
            not isinstance(requests, Sequence)
            or sampling.enough
            or self._forward.device.type != "cpu"
        ):
            return [requests]
        samples = sum(request.num_samples for request in requests)
        count = samples // SEQUENCES_A_PART[not is_small(self._model)]
        count = max(1, min(count, len(requests), MAX_PARTS))
        return [requests[first::count] for first in range(count)]

    def generate_elsewhere(
        self, requests: Requests, sampling: Sampling, installed: tuple[int, int]
    ) -> Iterator[Rollout | EngineCounters]:
        """Generate a part in a worker: its rollouts, and what it adds to the counters.

        Args:
            requests: of the part.
            sampling: of the call.
            installed: version of the weights, and the number of times that some were installed.
        """
        if installed != (self._version, self._syncs):
            self._forward.refresh()
            self._version, self._syncs = installed
        self._counters = EngineCounters()
        yield from self._generated(requests, sampling, installed)
        yield self._counters

    def _open_twin(self) -> Twin:
        """Share the weights with the workers, once."""
        if self._twin is None:
            own = weights_in_memory(self._model)
            shared = SharedTensors(own)
            move_into(shared, own, fill=True)
            self._forward.refresh()
            self._twin = Twin(self._opening, (shared,))
        return self._twin

    def take_weights(self, file: int) -> None:
        """Compute with the weights of another process from now on, in a worker."""
        own = weights_in_memory(self._model)
        move_into(SharedTensors(own, file), own, fill=False)
        self._forward.refresh()

    @torch.inference_mode()
    def _generated(
        self, requests: Requests, sampling: Sampling, _installed: tuple[int, int]
    ) -> Iterator[Rollout]:
        """Generate a part with the weights that are installed here."""
        intake = CallRequests(requests, sampling, slots=self._slots, cache=self._room)
        waiting: deque[Seat] = deque()
        prefix_of: dict[int, _Prefix] = {}
        stop = StopStrings(self._tokenizer, sampling.stop)
        size = min(self._slots, intake.samples)
        slots = Slots(sampling, size, self._room, self._end_tokens, stop)
        logits_BV = torch.empty(0, self._model.config.vocab_size, device=self._forward.device)
        num_taken = 0
        while waiting or slots.live or intake.open:
            full = slots.live > REFILL_BELOW * self._slots
            new = intake.take(full=full or bool(waiting))
            waiting += self._seats(new, sampling, first=num_taken)
            num_taken += len(new)
            if intake.over:
                waiting.clear()
            if not (waiting or slots.live):
                continue
            seats = [] if full else self._wave(slots, waiting)
            if seats:
                following = waiting[0].number if waiting else None
                logits_BV = torch.cat([logits_BV, *self._admit(slots, seats, prefix_of, following)])
            started = time.perf_counter()
            token_B, logprob_B, over_BV = draw(
                logits_BV,
                sampling.temperature,
                slots.uniforms_B(),
                top_p=sampling.top_p,
                top_k=sampling.top_k,
                min_p=sampling.min_p,
            )
            sets = sets_of(over_BV > -torch.inf) if sampling.record_kept else ()
            ended_B = slots.record(token_B.cpu(), logprob_B.cpu(), sets)
            ended = [
                slots.rollout(slot, self._version) for slot in ended_B.nonzero()[:, 0].tolist()
            ]
            slots.drop(ended_B)
            for rollout in ended:
                intake.end(rollout.problem_id, rollout.sample)
            self._count_decoding(time.perf_counter() - started)
            yield from ended
            if intake.over:
                yield from [slots.rollout(slot, self._version) for slot in range(slots.live)]
                return
            started = time.perf_counter()
            logits_BV = self._decode(slots) if slots.live else logits_BV[:0]
            self._count_decoding(time.perf_counter() - started)

    @torch.inference_mode()
    def score_logprobs(self, tokens: Sequence[NDArray[np.int32]]) -> list[NDArray[np.float32]]:
        """Log-probabilities of tokens 1..T-1 of every sequence, in the order given."""
        scores: list[NDArray[np.float32]] = [np.empty(0, dtype=np.float32)] * len(tokens)
        head_VH = self._model.get_parameter("lm_head.weight")
        for bucket in _buckets([len(one) for one in tokens]):
            tokens_PT = self._padded([tokens[index] for index in bucket])
            hidden_PTH = self._forward.prefill(tokens_PT).hidden_PTH
            for index, row_T, hidden_TH in zip(bucket, tokens_PT, hidden_PTH, strict=True):
                last = len(tokens[index]) - 1
                own_T = row_T[1 : last + 1].to(hidden_TH.device)
                logprobs_T, _ = scores_from_hidden(hidden_TH[:last], head_VH, own_T, 1.0)
                scores[index] = logprobs_T.cpu().numpy()
        return scores

    def _seats(
        self, requests: Sequence[Request], sampling: Sampling, first: int = 0
    ) -> deque[Seat]:
        positions = self._model.config.max_position_embeddings
        return deque(make_seats(requests, sampling, positions, first))

    def _wave(self, slots: Slots, waiting: deque[Seat]) -> list[Seat]:
        """Take the sequences to admit now from those waiting; none if it is too early."""
        fitting = slots.fitting(waiting)
        held_back = fitting < min(self._slots - slots.live, len(waiting))
        if held_back and slots.live > REFILL_BELOW * (slots.live + fitting):
            return []
        return [waiting.popleft() for _ in range(fitting)]

    def _admit(
        self,
        slots: Slots,
        seats: Sequence[Seat],
        prefix_of: dict[int, "_Prefix"],
        following: int | None,
    ) -> Iterator[torch.Tensor]:
        """Assign slots to sequences, prefilling new prompts; yield logits in slot order.

        A pass is dropped when its sequences have slots, but for a prompt with samples to come.

        Args:
            slots: with room for the sequences.
            seats: in their order.
            prefix_of: prompts that are prefilled; afterwards those of them that are needed again.
            following: number of the next request that waits.
        """
        fresh = {seat.number: _fed(seat.request) for seat in seats if seat.number not in prefix_of}
        numbers, longest = list(fresh), max(map(slots.most, seats), default=0)
        passes = [
            [numbers[index] for index in bucket]
            for bucket in _buckets([len(fed) for fed in fresh.values()])
        ]
        place = {number: index for index, bucket in enumerate(passes) for number in bucket}
        by_pass: dict[int | None, list[Seat]] = {}
        for seat in seats:
            by_pass.setdefault(place.get(seat.number), []).append(seat)
        for index, together in by_pass.items():
            started = time.perf_counter()
            fed = {number: fresh[number] for number in passes[index]} if index is not None else {}
            if fed:
                prefix_of |= self._prefill(fed)
            prefixes = [prefix_of[seat.number] for seat in together]
            rows = torch.tensor([prefix.row for prefix in prefixes])
            slots.admit(together, prefixes[0].prefilled, rows, longest)
            logits_BV = prefixes[0].logits_PV[rows]
            # Or this name would keep the pass in memory while the next one is made.
            del prefixes
            for number in prefix_of.keys() - {following}:
                del prefix_of[number]
            self._counters = replace(
                self._counters,
                prompt_tokens=self._counters.prompt_tokens + sum(map(len, fed.values())),
                prefill_seconds=self._counters.prefill_seconds + time.perf_counter() - started,
            )
            yield logits_BV

    def _prefill(self, fed: dict[int, NDArray[np.int32]]) -> dict[int, "_Prefix"]:
        """Run prompts, by the number of their request, in one pass."""
        prefilled = self._forward.prefill(self._padded(list(fed.values())))
        last_P = torch.tensor([len(one) - 1 for one in fed.values()])
        logits_PV = self._forward.logits(prefilled.hidden_PTH[torch.arange(len(fed)), last_P])
        return {number: _Prefix(prefilled, logits_PV, row) for row, number in enumerate(fed)}

    def _decode(self, slots: Slots) -> torch.Tensor:
        """Feed the tokens drawn last and return the logits of the next."""
        logits_BV, experts_BLK = self._forward.decode(slots.token_B, slots.position_B, *slots.cache)
        slots.advance(experts_BLK)
        return logits_BV

    def _padded(self, sequences: Sequence[NDArray[np.int32]]) -> torch.Tensor:
        """Stack sequences, padded on the right."""
        tokens_PT = np.full((len(sequences), max(map(len, sequences))), self._pad_token)
        for row_T, sequence in zip(tokens_PT, sequences, strict=True):
            row_T[: len(sequence)] = sequence
        return torch.from_numpy(tokens_PT)

    def _count_decoding(self, seconds: float) -> None:
        seconds += self._counters.decode_seconds
        self._counters = replace(self._counters, decode_seconds=seconds)


@dataclass(frozen=True, slots=True)
class _Prefix:
    """One row of a prefill: a prompt whose forward pass is done."""

    prefilled: Prefill
    logits_PV: torch.Tensor
    row: int


def _open_twin(files: Sequence[int], folder: Path, **options: Any) -> HFRolloutEngine:
    """Open the engine of another process in a worker."""
    engine = HFRolloutEngine(folder, **options)
    engine.take_weights(files[0])
    return engine


def _sum(one: EngineCounters, other: EngineCounters) -> EngineCounters:
    names = (field.name for field in fields(EngineCounters))
    return EngineCounters(**{name: getattr(one, name) + getattr(other, name) for name in names})


def _fed(request: Request) -> NDArray[np.int32]:
    return np.concatenate([request.prompt_tokens, request.response_tokens])


def _buckets(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Split sequences, shortest first, into passes of at most PREFILL_TOKENS with padding."""
    bucket: list[int] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        if bucket and lengths[index] * (len(bucket) + 1) > PREFILL_TOKENS:
            yield bucket
            bucket = []
        bucket.append(index)
    if bucket:
        yield bucket


def _cache_tokens(forward: DecoderForward) -> int:
    """Tokens that the slots may hold; at least one."""
    allowed = CACHE_BYTES
    if forward.device.type == "cuda":
        allowed = int(CACHE_SHARE * torch.cuda.mem_get_info(forward.device)[1])
    return max(1, allowed // (forward.cache_bytes + TOKEN_BYTES))
