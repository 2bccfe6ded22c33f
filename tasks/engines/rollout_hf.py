"""Rollouts with transformers on the machine at hand: the embedded default.

One prefill per prompt serves all its samples. Finished sequences leave the batch, so
a step costs what its live sequences cost. Routes are recorded by forward hooks.

Letters: B live sequences, P prompts, T prompt tokens, V vocabulary, L MoE layers, K experts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from transformers import DynamicCache, PreTrainedModel

from data_schemas.rollouts import Rollout, RouterTrace, StopReason
from tasks.algorithms.digests import weight_digest
from tasks.engines.chat import end_and_pad, load_tokenizer
from tasks.engines.hf_model import load_model
from tasks.engines.protocols import Request, Sampling
from tasks.engines.router_replay import Recording, recording
from tasks.errors import EngineError

MAX_LIVE_SEQUENCES = 512
"""Larger batches decode no faster on a CPU and cost memory."""
COMPACT_BELOW = 0.75
"""Live share of the batch under which finished sequences are cut out of the cache."""


class HFRolloutEngine:
    """A RolloutEngine on a transformers model in this process."""

    def __init__(
        self, folder: Path, *, dtype: torch.dtype = torch.float32, version: int = 0
    ) -> None:
        self._model: PreTrainedModel = load_model(folder, dtype=dtype)
        tokenizer = load_tokenizer(folder)
        self._end_token, self._pad_token = end_and_pad(tokenizer)
        self._version = version

    @property
    def policy_version(self) -> int:
        """Version of the installed weights."""
        return self._version

    @property
    def num_experts(self) -> int:
        """Experts per MoE layer."""
        return int(self._model.config.num_experts)

    def load_weights(self, weights: Iterator[tuple[str, torch.Tensor]], version: int) -> str:
        """Install new weights; all of them or an error."""
        own = dict(self._model.named_parameters())
        incoming = dict(weights)
        wrong = sorted(own.keys() ^ incoming.keys()) or [
            name for name, tensor in own.items() if tensor.shape != incoming[name].shape
        ]
        if wrong:
            raise EngineError(f"weight hand-over does not fit the rollout model: {wrong[:3]}")
        with torch.no_grad():
            for name, tensor in own.items():
                tensor.copy_(incoming[name])
        self._version = version
        return weight_digest(self._model.named_parameters())

    @torch.inference_mode()
    def generate(self, requests: Sequence[Request], sampling: Sampling) -> Iterator[Rollout]:
        """Answer prompts, longest first so that a batch pads little."""
        generator = torch.Generator().manual_seed(sampling.seed)
        order = sorted(
            requests, key=lambda request: (-len(request.prompt_tokens), request.problem_id)
        )
        for batch in _batches(order):
            with recording(self._model) as routes:
                yield from self._generate_batch(batch, sampling, generator, routes)

    def _generate_batch(
        self,
        requests: list[Request],
        sampling: Sampling,
        generator: torch.Generator,
        routes: Recording,
    ) -> Iterator[Rollout]:
        state = self._prefill(requests, routes)
        rows = [(request, sample) for request in requests for sample in range(request.num_samples)]
        steps: list[_Step] = []
        alive_B = torch.arange(len(rows))  # row number of every sequence still in the batch
        ended = torch.zeros(len(rows), dtype=torch.bool)
        for _ in range(sampling.max_new_tokens):
            token_B, logprob_B = _sample(state.logits_BV, sampling.temperature, generator)
            steps.append(_Step(alive_B, token_B, logprob_B))
            ended[alive_B] |= token_B == self._end_token
            running_B = ~ended[alive_B]
            if not running_B.any() or len(steps) == sampling.max_new_tokens:
                break
            if running_B.double().mean() < COMPACT_BELOW:
                keep = running_B.nonzero()[:, 0]
                state = state.select(keep)
                alive_B, token_B = alive_B[keep], token_B[keep]
            steps[-1].fed_B = alive_B
            state = self._decode(state, token_B)
            steps[-1].experts_BLK = routes.take()
        yield from self._assemble(rows, steps, state, sampling)

    def _prefill(self, requests: list[Request], routes: Recording) -> "_State":
        width = max(len(request.prompt_tokens) for request in requests)
        tokens_PT = torch.full((len(requests), width), self._pad_token)
        mask_PT = torch.zeros((len(requests), width), dtype=torch.long)
        for row, request in enumerate(requests):
            tokens_PT[row, width - len(request.prompt_tokens) :] = torch.from_numpy(
                request.prompt_tokens.astype(np.int64)
            )
            mask_PT[row, width - len(request.prompt_tokens) :] = 1
        positions_PT = (mask_PT.cumsum(dim=1) - 1).clamp(min=0)
        cache = DynamicCache(config=self._model.config)
        output = self._model(
            input_ids=tokens_PT,
            attention_mask=mask_PT,
            position_ids=positions_PT,
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        recorded_PTLK = routes.take().unflatten(0, (len(requests), width)).to(torch.uint8)
        repeats = torch.tensor([request.num_samples for request in requests])
        source = torch.repeat_interleave(torch.arange(len(requests)), repeats)
        cache.batch_select_indices(source)
        return _State(
            cache=cache,
            mask_BT=mask_PT[source],
            position_B=positions_PT[source, -1] + 1,
            logits_BV=output.logits[source, -1].float(),
            prompt_routes_PTLK=recorded_PTLK,
        )

    def _decode(self, state: "_State", token_B: torch.Tensor) -> "_State":
        mask_BT = torch.cat([state.mask_BT, torch.ones_like(state.mask_BT[:, :1])], dim=1)
        output = self._model(
            input_ids=token_B[:, None],
            attention_mask=mask_BT,
            position_ids=state.position_B[:, None],
            past_key_values=state.cache,
            use_cache=True,
        )
        return _State(
            cache=state.cache,
            mask_BT=mask_BT,
            position_B=state.position_B + 1,
            logits_BV=output.logits[:, -1].float(),
            prompt_routes_PTLK=state.prompt_routes_PTLK,
        )

    def _assemble(
        self,
        rows: list[tuple[Request, int]],
        steps: list["_Step"],
        state: "_State",
        sampling: Sampling,
    ) -> Iterator[Rollout]:
        tokens_RS, logprobs_RS, experts_RSLK = _columns(rows, steps, state.prompt_routes_PTLK)
        ends_RS = tokens_RS == self._end_token
        prompt_row = -1
        previous: Request | None = None
        for row, (request, sample) in enumerate(rows):
            if request is not previous:
                prompt_row, previous = prompt_row + 1, request
            ended = bool(ends_RS[row].any())
            length = int(ends_RS[row].argmax()) + 1 if ended else tokens_RS.shape[1]
            trace = None
            if sampling.record_routes:
                prompt_routes = state.prompt_routes_PTLK[prompt_row, -len(request.prompt_tokens) :]
                trace = RouterTrace(
                    np.concatenate([prompt_routes.numpy(), experts_RSLK[row, : length - 1]])
                )
            yield Rollout(
                problem_id=request.problem_id,
                sample=sample,
                prompt_tokens=request.prompt_tokens,
                response_tokens=tokens_RS[row, :length].astype(np.int32),
                logprobs=logprobs_RS[row, :length],
                trace=trace,
                stop_reason=StopReason.END if ended else StopReason.LENGTH,
                policy_version=self._version,
            )


@dataclass(slots=True)
class _Step:
    """What one decoding step produced; row numbers say whose."""

    rows_B: torch.Tensor
    token_B: torch.Tensor
    logprob_B: torch.Tensor
    fed_B: torch.Tensor | None = None
    experts_BLK: torch.Tensor | None = None


@dataclass(frozen=True, slots=True)
class _State:
    """The decoding batch between two steps."""

    cache: DynamicCache
    mask_BT: torch.Tensor
    position_B: torch.Tensor
    logits_BV: torch.Tensor
    prompt_routes_PTLK: torch.Tensor

    def select(self, keep: torch.Tensor) -> "_State":
        """Cut the batch down to some of its rows."""
        self.cache.batch_select_indices(keep)
        return _State(
            cache=self.cache,
            mask_BT=self.mask_BT[keep],
            position_B=self.position_B[keep],
            logits_BV=self.logits_BV,
            prompt_routes_PTLK=self.prompt_routes_PTLK,
        )


def _batches(requests: Sequence[Request]) -> Iterator[list[Request]]:
    batch: list[Request] = []
    size = 0
    for request in requests:
        if batch and size + request.num_samples > MAX_LIVE_SEQUENCES:
            yield batch
            batch, size = [], 0
        batch.append(request)
        size += request.num_samples
    if batch:
        yield batch


def _sample(
    logits_BV: torch.Tensor, temperature: float, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw one token per row (Gumbel-max) and return it with its log-probability."""
    if temperature == 0.0:
        logprobs_BV = torch.log_softmax(logits_BV, dim=1)
        token_B = logits_BV.argmax(dim=1)
    else:
        logprobs_BV = torch.log_softmax(logits_BV / temperature, dim=1)
        noise_BV = torch.empty_like(logprobs_BV).exponential_(generator=generator).log_()
        token_B = (logprobs_BV - noise_BV).argmax(dim=1)
    return token_B, logprobs_BV.gather(1, token_B[:, None])[:, 0]


def _columns(
    rows: list[tuple[Request, int]], steps: list[_Step], prompt_routes_PTLK: torch.Tensor
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scatter the steps into one row per sequence: tokens, log-probs, routes."""
    num_layers, k = prompt_routes_PTLK.shape[2:]
    tokens_RS = torch.full((len(rows), len(steps)), -1)
    logprobs_RS = torch.zeros((len(rows), len(steps)))
    experts_RSLK = torch.zeros((len(rows), len(steps), num_layers, k), dtype=torch.uint8)
    for index, step in enumerate(steps):
        tokens_RS[step.rows_B, index] = step.token_B
        logprobs_RS[step.rows_B, index] = step.logprob_B
        if step.fed_B is not None and step.experts_BLK is not None:
            experts_RSLK[step.fed_B, index] = step.experts_BLK.to(torch.uint8)
    return tokens_RS.numpy(), logprobs_RS.numpy(), experts_RSLK.numpy()
