"""Training with plain torch on this machine: the embedded default.

The model is on the GPU, if there is one. Batches are planned and losses computed on the CPU: tokens
and routes go to the model one micro-batch at a time, and log-probabilities come back.

The loss is passed in as a function. No padding is computed, and common prefixes of sequences are
computed once (tasks/algorithms/packing.py). Logits are computed at response positions only, so
prompts need no vocabulary matmul.

A batch is divided into parts by its number of rows. Each is a pass by itself, by worker processes,
a core each, or one after the other (part_workers.py); gradients are added in the order of the
parts, in fp32. So no bit depends on who computed them.

Letters: N sequences, T tokens, M packed rows, R response positions, H hidden, V vocabulary,
L layers, E experts, K experts per token.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel

from data_schemas.rollouts import MISSING_ROUTE
from data_schemas.routing import Routing
from tasks.algorithms.digests import weight_digest
from tasks.algorithms.logprobs import scores_from_hidden, trainable_scores
from tasks.algorithms.packing import Packing, even_buckets, pack
from tasks.algorithms.router_shift import OLD_SCORES, SHIFT, chosen_scores, log_shift
from tasks.algorithms.terms.protocol import Auxiliary
from tasks.engines.chat import ends_of, load_tokenizer
from tasks.engines.embedded.hf_model import (
    is_small,
    load_on_device,
    weight_bytes,
    weights_in_memory,
)
from tasks.engines.embedded.lora import LoRAAdapter
from tasks.engines.embedded.packed_attention import PackedLayout, layout, use_packed_attention
from tasks.engines.embedded.router_losses import RouterTerms
from tasks.engines.embedded.router_replay import recording, replaying, routing_of, watching
from tasks.engines.expert_names import named_tensors
from tasks.engines.part_workers import PartWorkers, Twin, workers_here
from tasks.engines.protocols import (
    NO_AUXILIARY,
    PACKED_ROWS,
    PADDING_ROWS,
    LossFn,
    TokenBatch,
    TokenScores,
)
from tasks.engines.recording_loss import LossCall, RecordingLoss
from tasks.engines.shared_tensors import SharedTensors, move_into
from tasks.errors import DataError, EngineError
from tasks.models.weights import copy_mtp, write_config, write_ends

ADAM_BETAS = (0.9, 0.95)
GRAD_CLIP = 1.0
"""Both as GPT-3 and LLaMA were trained; those of the Megatron trainer, too."""
STATE_FILE = "trainer.pt"
GRADIENT_ROWS, SCORE_ROWS = 192, 512
"""Fewest packed rows of a part. Starting the kernels of a pass with gradients takes as long as 150
rows of a model of 0.8 M weights, and as 30 of one of 135 M."""
FEW_PARTS = (2, 4)
"""Parts of a batch, of a small model and of others, unless it has ROWS_OF_MORE for each of more:
one core should not pay for cores that it lacks."""
ROWS_OF_MORE, MAX_PARTS = 1024, 16
PART_BYTES = 2**29
"""Memory that a part is expected to take."""
COPIES_BYTES = 2**30
"""Memory of the gradients that wait to be added; at least a copy per worker."""


class TorchTrainer:
    """A Trainer on a transformers model in this process."""

    def __init__(
        self,
        folder: Path,
        *,
        weight_decay: float = 0.0,
        micro_batch_tokens: int = 8192,
        lora_rank: int = 0,
        workers: PartWorkers | None = None,
    ) -> None:
        """Open a model.

        Args:
            folder: a Hugging Face directory.
            weight_decay: of matrices.
            micro_batch_tokens: packed rows of a forward pass; a longer sequence is one by itself.
            lora_rank: of the factors that are trained; 0 = all weights are.
            workers: compute parts of a batch; None = those of this process.
        """
        self._opening = partial(
            _open_twin,
            folder=folder,
            weight_decay=weight_decay,
            micro_batch_tokens=micro_batch_tokens,
            lora_rank=lora_rank,
        )
        self._workers = workers or workers_here()
        self._twin: Twin | None = None
        self._source = folder
        self._model: PreTrainedModel = load_on_device(folder)
        self._tokenizer = load_tokenizer(folder)
        self._micro_batch_tokens = micro_batch_tokens
        self._few_parts = FEW_PARTS[not is_small(self._model)]
        self._nbytes = 2 * weight_bytes(self._model) + PART_BYTES
        """Memory that a worker takes."""
        self._adapter = LoRAAdapter(self._model, lora_rank) if lora_rank else None
        self._frozen = ""
        self._trained: dict[str, torch.nn.Parameter] = dict(
            self._adapter.factors if self._adapter else self._model.named_parameters()
        )
        trained_bytes = sum(one.nbytes for one in self._trained.values())
        most = max(self._workers.count, COPIES_BYTES // max(1, trained_bytes))
        self._copies = min(MAX_PARTS, most)
        """Gradients that wait to be added, at most."""
        groups = _decay_groups(list(self._trained.values()), weight_decay)
        self._optimizer = torch.optim.AdamW(groups, lr=0.0, betas=ADAM_BETAS, fused=True)

    def score(
        self, batch: TokenBatch, *, temperature: float, record_routes: bool = False
    ) -> TokenScores:
        """Log-probabilities, entropies and native routes without gradient."""
        logprobs_NT = torch.zeros(batch.tokens_NT.shape)
        entropy_NT = torch.zeros(batch.tokens_NT.shape)
        experts_NTLK: torch.Tensor | None = None
        parts = self._divided(batch, SCORE_ROWS)
        calls = [(part, temperature, record_routes) for part in parts]
        for number, scores in self._each(self.score_part, self.score_part, calls):
            part = parts[number]
            sequence_R, position_R = part.batch.at
            logprobs_NT[part.rows_N[sequence_R], position_R] = scores.logprobs_R
            entropy_NT[part.rows_N[sequence_R], position_R] = scores.entropy_R
            if (native_NTLK := scores.experts_NTLK) is not None:
                if experts_NTLK is None:
                    shape = (*batch.tokens_NT.shape, *native_NTLK.shape[2:])
                    experts_NTLK = torch.full(shape, MISSING_ROUTE, dtype=torch.int16)
                experts_NTLK[part.rows_N, : native_NTLK.shape[1]] = native_NTLK
        return TokenScores(logprobs_NT, entropy_NT, experts_NTLK)

    def score_part(
        self, part: "_Part", temperature: float, record_routes: bool
    ) -> Iterator["_PartScores"]:
        """Score a part of a batch."""
        micro, native_NTLK = part.packed(), None
        with torch.inference_mode():
            if record_routes:
                with recording(self._model) as record:
                    hidden_MH = self._hidden(micro)
                    native_NTLK = record.take().cpu()[micro.packing.rows_NT].to(torch.int16)
                native_NTLK[~part.batch.real_NT] = MISSING_ROUTE
            else:
                hidden_MH = self._hidden(micro)
            logprobs_R, entropy_R = scores_from_hidden(
                hidden_MH[micro.before_R],
                self._head(),
                part.batch.tokens_R.to(self._model.device),
                temperature,
                part.batch.kept_R,
            )
        yield _PartScores(logprobs_R.cpu(), entropy_R.cpu(), native_NTLK)

    def router_scores(self, batch: TokenBatch) -> torch.Tensor:
        """Log scores [N, T, L, K] of the batch's experts that predict each response token."""
        assert batch.route_shape is not None, "settings ask for replayed routes"
        scores_NTLK = torch.zeros(*batch.tokens_NT.shape, *batch.route_shape)
        parts = self._divided(batch, SCORE_ROWS)
        for number, scores_RLK in self._each(
            self.route_part, self.route_part, [(part,) for part in parts]
        ):
            sequence_R, position_R = parts[number].batch.at
            scores_NTLK[parts[number].rows_N[sequence_R], position_R] = scores_RLK
        return scores_NTLK

    def route_part(self, part: "_Part") -> Iterator[torch.Tensor]:
        """Score the experts of a part of a batch."""
        micro = part.packed()
        with torch.inference_mode(), watching(self._model) as logits_LME:
            self._hidden(micro)
            scores_RLK = self._chosen_scores(micro, logits_LME)
        yield scores_RLK

    def hidden_states(self, batch: TokenBatch) -> list[torch.Tensor]:
        """Last hidden states [R, H], float32, that predict the response tokens of each sequence."""
        states = [torch.empty(0)] * len(batch.lengths_N)
        parts = self._divided(batch, SCORE_ROWS)
        calls = [(part,) for part in parts]
        for number, states_RH in self._each(self.read_part, self.read_part, calls):
            part = parts[number]
            counts = part.batch.response_NT.sum(dim=1).tolist()
            for row, one in zip(part.rows_N.tolist(), states_RH.split(counts), strict=True):
                states[row] = one
        return states

    def read_part(self, part: "_Part") -> Iterator[torch.Tensor]:
        """Compute the hidden states of a part of a batch, sequence after sequence."""
        micro = part.packed()
        with torch.inference_mode():
            states_RH = self._hidden(micro)[micro.before_R]
        yield states_RH.float().cpu()

    def update(
        self,
        batch: TokenBatch,
        loss: LossFn,
        *,
        temperature: float,
        learning_rate: float,
        auxiliary: Auxiliary = NO_AUXILIARY,
    ) -> dict[str, float]:
        """One optimizer step on the whole batch.

        Raises:
            EngineError: the loss or the gradient is not finite; no weight was changed.
        """
        self._optimizer.zero_grad(set_to_none=True)
        parts = self._divided(batch, GRADIENT_ROWS)
        terms = _UpdateTerms(
            temperature,
            auxiliary,
            self._router_terms(batch, parts, auxiliary),
            num_responses=max(1, int(batch.response_NT.sum())),
        )
        # Sequences are packed end to end, so that no row is padding.
        totals: dict[str, float] = {"loss": 0.0, PACKED_ROWS: 0.0, PADDING_ROWS: 0.0}
        # Without its calls so far: a part returns those that it adds.
        fresh = loss.afresh() if isinstance(loss, RecordingLoss) else loss
        for first in range(0, len(parts), self._copies):
            some = parts[first : first + self._copies]
            calls = [(part, fresh, terms, copy) for copy, part in enumerate(some)]
            learned: dict[int, _PartUpdate] = dict(
                self._each(self.learn_elsewhere, self.learn, calls)
            )
            # In their order, whoever was first: sums round alike.
            for copy in range(len(some)):
                self._take(learned[copy], copy, loss, totals)
        norm = torch.nn.utils.clip_grad_norm_(self._trained.values(), GRAD_CLIP)
        if not torch.isfinite(norm):
            self._optimizer.zero_grad(set_to_none=True)
            raise EngineError(f"gradient norm is {float(norm)}; the update was not applied")
        for group in self._optimizer.param_groups:
            group["lr"] = learning_rate
        self._optimizer.step()
        return totals | {"grad_norm": float(norm)}

    def _take(self, one: "_PartUpdate", copy: int, loss: LossFn, totals: dict[str, float]) -> None:
        """Add what a part gave; gradients that a worker computed as autograd would have here."""
        for name, amount in one.metrics.items():
            totals[name] = totals.get(name, 0.0) + amount
        if isinstance(loss, RecordingLoss):
            loss.calls.extend(one.calls)
        if one.names is None:
            return
        gradients = self._open_twin().shared[1].tensors(copy)
        for name in one.names:
            parameter, gradient = self._trained[name], gradients[name]
            if parameter.grad is None:
                parameter.grad = gradient.clone()
            else:
                parameter.grad.add_(gradient)

    def learn_elsewhere(
        self, part: "_Part", loss: LossFn, terms: "_UpdateTerms", copy: int
    ) -> Iterator["_PartUpdate"]:
        """Compute the gradients of a part in a worker, and leave them where its parent adds them.

        Args:
            part: of the batch.
            loss: of the update.
            terms: of the update.
            copy: place of the gradients.
        """
        self._optimizer.zero_grad(set_to_none=True)
        for update in self.learn(part, loss, terms, copy):
            gradients, names = self._open_twin().shared[1].tensors(copy), list[str]()
            for name, parameter in self._trained.items():
                if parameter.grad is not None:
                    gradients[name].copy_(parameter.grad)
                    names.append(name)
            yield replace(update, names=tuple(names))

    def learn(
        self, part: "_Part", loss: LossFn, terms: "_UpdateTerms", _copy: int
    ) -> Iterator["_PartUpdate"]:
        """Add the gradients of a part to those of the parameters."""
        if isinstance(loss, RecordingLoss):
            loss = loss.afresh()
        micro, device, auxiliary = part.packed(), self._model.device, terms.auxiliary
        by_shift = OLD_SCORES in part.batch.columns
        watched = watching(self._model) if by_shift else nullcontext([])
        with terms.routing.collect_logits(self._model) as logits_LME, watched as seen_LME:
            hidden_MH = self._hidden(micro)
        logprobs_R, entropy_R = trainable_scores(
            hidden_MH.index_select(0, micro.before_R.to(device)),
            self._head(),
            part.batch.tokens_R.to(device),
            terms.temperature,
            with_entropy=auxiliary.entropy > 0.0,
            sets=part.batch.kept_R,
        )
        shape = part.batch.tokens_NT.shape
        logprobs_NT = torch.zeros(shape).index_put(part.batch.at, logprobs_R.cpu())
        inputs = self._with_shift(micro, seen_LME) if by_shift else part.batch
        value, metrics = loss(logprobs_NT, inputs)
        extra, extra_metrics = terms.routing.loss(logits_LME, micro.packing.copies_M.to(device))
        if auxiliary.entropy > 0.0:
            mean = entropy_R.sum() / terms.num_responses
            extra = extra - auxiliary.entropy * mean
            extra_metrics["auxiliary/entropy_nats"] = float(mean.detach())
        (value + extra.cpu()).backward()
        rows = {PACKED_ROWS: float(len(micro.packing.cells_M))}
        metrics = {"loss": float(value.detach())} | rows | metrics | extra_metrics
        yield _PartUpdate(metrics, tuple(loss.calls) if isinstance(loss, RecordingLoss) else ())

    def weights(self) -> Iterator[tuple[str, torch.Tensor]]:
        """The policy's tensors under Hugging Face names; with LoRA, the factors only."""
        if self._adapter is None:
            yield from named_tensors(self._model)
        else:
            yield from self._adapter.named_factors()

    def probing(self) -> AbstractContextManager[None]:
        """Give all factors random values, while the block runs; without LoRA, do nothing."""
        return nullcontext() if self._adapter is None else self._adapter.probing()

    def save(self, folder: Path) -> None:
        """Write weights and optimizer state; with LoRA, factors and their optimizer state."""
        state = {
            "config": self._geometry(),
            "model": self._adapter.state() if self._adapter else self._model.state_dict(),
            "optimizer": self._optimizer.state_dict(),
        }
        torch.save(state, folder / STATE_FILE)

    def restore(self, folder: Path) -> None:
        """Restore exactly the state that `save` wrote.

        Raises:
            DataError: it is of another architecture or, with LoRA, of another frozen model or rank.
        """
        state = torch.load(folder / STATE_FILE, map_location="cpu", weights_only=True)
        if state["config"] != self._geometry():
            raise DataError(f"{folder} holds the state of another architecture: {state['config']}")
        if self._adapter:
            self._adapter.load(state["model"])
        else:
            self._model.load_state_dict(state["model"])
        self._optimizer.load_state_dict(state["optimizer"])

    def export(self, folder: Path) -> None:
        """Write the policy as a Hugging Face directory with its tokenizer; with LoRA, merged."""
        state = self._adapter.merged_state() if self._adapter else None
        self._model.save_pretrained(folder, state_dict=state)
        self._tokenizer.save_pretrained(folder)
        # transformers renames keys of config.json, and drops what the model does not use
        # (findings/transformers_5_config_hides_rope_theta_from_4.sh).
        write_config(self._source, folder, self._model.dtype)
        write_ends(self._source, folder, ends_of(self._tokenizer)[0])
        copy_mtp(self._source, folder)

    def close(self) -> None:
        """Let workers close theirs; the model is freed with its last reference."""
        self._twin = None

    def _divided(self, batch: TokenBatch, least_rows: int) -> list["_Part"]:
        """Divide a batch by its number of packed rows; on a GPU, by what fits a pass alone."""
        if self._model.device.type != "cpu":
            return divide(batch, self._micro_batch_tokens, 0, 1)
        return divide(batch, self._micro_batch_tokens, least_rows, self._few_parts)

    def _each(
        self, method: Callable[..., Any], here: Callable[..., Iterator[Any]], calls: Sequence[Any]
    ) -> Iterator[tuple[int, Any]]:
        """Yield what each part yields, from workers or from here, with its number."""
        return self._workers.each(
            self._open_twin, method.__name__, here, calls, nbytes=self._nbytes
        )

    def _in_memory(self) -> dict[str, torch.Tensor]:
        factors = self._adapter.factors if self._adapter else {}
        return weights_in_memory(self._model) | {f"factor {one}": factors[one] for one in factors}

    def _open_twin(self) -> Twin:
        """Share weights and places for gradients with the workers, once."""
        if self._twin is None:
            own = self._in_memory()
            shared = SharedTensors(own)
            move_into(shared, own, fill=True)
            gradients = SharedTensors(self._trained, copies=self._copies)
            opening = partial(self._opening, copies=self._copies)
            self._twin = Twin(opening, (shared, gradients))
        return self._twin

    def take_weights(self, files: Sequence[int], copies: int) -> None:
        """Compute with the weights of another process from now on, in a worker."""
        own = self._in_memory()
        shared = SharedTensors(own, files[0])
        move_into(shared, own, fill=False)
        gradients = SharedTensors(self._trained, files[1], copies=copies)
        self._twin = Twin(partial(self._opening, copies=copies), (shared, gradients))

    def _geometry(self) -> str:
        """What two trainers must share for one to load the other's state.

        A frozen model is no part of the state, so its digest is.
        """
        shapes: dict[str, object] = {
            name: list(parameter.shape) for name, parameter in self._model.named_parameters()
        }
        if self._adapter is not None:
            shapes = {name: list(factor.shape) for name, factor in self._adapter.factors.items()}
            if not self._frozen:
                self._frozen = weight_digest(named_tensors(self._model))
            shapes["frozen model"] = self._frozen
        return json.dumps(shapes)

    @cached_property
    def _routing(self) -> Routing:
        """How the routers turn logits into gates.

        Raises:
            SettingsError: the model is dense.
        """
        return routing_of(self._model)

    def _head(self) -> torch.Tensor:
        return self._model.get_parameter("lm_head.weight")

    def _hidden(self, micro: "_MicroBatch") -> torch.Tensor:
        """Hidden states of the packed rows [M, H]."""
        batch, cells_M = micro.batch, micro.packing.cells_M
        device, routes = self._model.device, nullcontext()
        if (experts_NTLK := batch.padded_routes_NTLK) is not None:
            experts_MLK = experts_NTLK.flatten(0, 1)[cells_M].to(device)
            routes = replaying(self._model, experts_MLK.long(), self._routing)
        with routes, use_packed_attention(self._model):
            output = self._model.get_decoder()(
                input_ids=batch.tokens_NT.flatten()[cells_M][None].to(device),
                position_ids=(cells_M % batch.tokens_NT.shape[1])[None].to(device),
                use_cache=False,
                packed=micro.layout.to(device),
            )
        return output.last_hidden_state[0]

    def _chosen_scores(
        self, micro: "_MicroBatch", logits_LME: Sequence[torch.Tensor]
    ) -> torch.Tensor:
        """Log scores [R, L, K] of the replayed experts that predict each response token."""
        experts_NTLK, (sequence_R, position_R) = micro.batch.padded_routes_NTLK, micro.batch.at
        assert experts_NTLK is not None
        experts_RLK = experts_NTLK[sequence_R, position_R - 1].long()
        layers = [
            chosen_scores(
                logits_ME.detach()[micro.before_R].cpu(), experts_RLK[:, layer], self._routing
            )
            for layer, logits_ME in enumerate(logits_LME)
        ]
        return torch.stack(layers, dim=1)

    def _with_shift(self, micro: "_MicroBatch", logits_LME: Sequence[torch.Tensor]) -> TokenBatch:
        """Replace the old scores of a micro-batch by log gamma of its response tokens."""
        columns = dict(micro.batch.columns)
        old_RLK = columns.pop(OLD_SCORES)[micro.batch.at]
        shift_R = log_shift(self._chosen_scores(micro, logits_LME), old_RLK)
        columns[SHIFT] = torch.zeros(micro.batch.tokens_NT.shape).index_put(micro.batch.at, shift_R)
        return replace(micro.batch, columns=columns)

    def _router_terms(
        self, batch: TokenBatch, parts: Sequence["_Part"], auxiliary: Auxiliary
    ) -> RouterTerms:
        """The router losses of an update.

        The balance loss is a product of two means over the update, so its loads are counted in a
        separate forward pass, which is run only if the loss is on.
        """
        terms = RouterTerms(auxiliary, num_tokens=int(batch.lengths_N.sum()))
        if auxiliary.balance > 0.0:
            calls = [(part, terms) for part in parts]
            loads = dict(self._each(self.count_part, self.count_part, calls))
            for number in range(len(parts)):
                terms.count(self._model, loads[number])
        return terms

    def count_part(self, part: "_Part", terms: RouterTerms) -> Iterator[list[torch.Tensor]]:
        """Count the expert loads of a part."""
        micro = part.packed()
        # Not inference_mode: the loads are multiplied in a loss with gradient, and autograd
        # saves no tensor that was made there.
        with torch.no_grad(), terms.collect_logits(self._model) as logits_LME:
            self._hidden(micro)
        copies_M = micro.packing.copies_M.to(self._model.device)
        yield terms.loads(self._model, logits_LME, copies_M)


def _open_twin(files: Sequence[int], copies: int, **options: Any) -> TorchTrainer:
    """Open the trainer of another process in a worker."""
    trainer = TorchTrainer(**options)
    trainer.take_weights(files, copies)
    return trainer


@dataclass(frozen=True, slots=True)
class _UpdateTerms:
    """What an update has beside its loss."""

    temperature: float
    auxiliary: Auxiliary
    routing: RouterTerms
    num_responses: int
    """Response tokens of the batch."""


@dataclass(frozen=True, slots=True)
class _PartUpdate:
    """What a part of an update gave, beside its gradients."""

    metrics: dict[str, float]
    calls: tuple[LossCall, ...]
    """Empty unless the loss records them."""
    names: tuple[str, ...] | None = None
    """Parameters that have a gradient, where a worker computed it."""


@dataclass(frozen=True, slots=True)
class _PartScores:
    """Scores of a part, at its response tokens."""

    logprobs_R: torch.Tensor
    entropy_R: torch.Tensor
    experts_NTLK: torch.Tensor | None
    """int16, if routes are recorded."""


@dataclass(frozen=True, slots=True)
class _Part:
    """Some sequences of a batch, of which one pass computes all."""

    rows_N: torch.Tensor
    """Indices of its sequences in the batch."""
    batch: TokenBatch
    shared_N: NDArray[np.int64]
    """Positions that each shares with the one before it."""

    def packed(self) -> "_MicroBatch":
        """Pack it."""
        lengths_N, width = self.batch.lengths_N, self.batch.tokens_NT.shape[1]
        packing = pack(lengths_N.numpy(), self.shared_N, width)
        return _MicroBatch(self.batch, packing, layout(packing, lengths_N))


@dataclass(frozen=True, slots=True)
class _MicroBatch:
    """Sequences of a pass and their packing."""

    batch: TokenBatch
    packing: Packing
    layout: PackedLayout

    @property
    def before_R(self) -> torch.Tensor:
        """Packed row that predicts a response token."""
        sequence_R, position_R = self.batch.at
        return self.packing.rows_NT[sequence_R, position_R - 1]


def divide(batch: TokenBatch, max_tokens: int, least_rows: int, few: int) -> list[_Part]:
    """Divide a batch so that sequences with a common prefix are together.

    Args:
        batch: to be divided.
        max_tokens: packed rows of a part.
        least_rows: of a part; 0 = as few parts as fit.
        few: parts unless each of more has ROWS_OF_MORE; MAX_PARTS at most.
    """
    prefixes = batch.prefixes
    rows_N = torch.tensor(prefixes.order, dtype=torch.int64)
    lengths_N, shared_N = batch.lengths_N[rows_N].numpy(), np.array(prefixes.shared)
    count, rows = 1, int(lengths_N.sum() - shared_N.sum())
    if least_rows:
        count = max(1, min(rows // least_rows, few), min(rows // ROWS_OF_MORE, MAX_PARTS))
    return [
        _Part(rows_N[bucket], batch.select(rows_N[bucket]), shared_N[bucket])
        for bucket in even_buckets(lengths_N, shared_N, max_tokens, count)
    ]


def _decay_groups(
    parameters: Sequence[torch.nn.Parameter], weight_decay: float
) -> list[dict[str, object]]:
    """Decay matrices, not norms or biases."""
    matrices = [parameter for parameter in parameters if parameter.ndim >= 2]
    vectors = [parameter for parameter in parameters if parameter.ndim < 2]
    return [
        {"params": matrices, "weight_decay": weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
