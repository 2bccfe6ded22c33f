"""Training with plain torch in this process: the embedded default.

The model is on the GPU, if there is one. Batches are planned and losses computed on the CPU: tokens
and routes go to the model one micro-batch at a time, and log-probabilities come back.

The loss is passed in as a function. No padding is computed, and common prefixes of sequences are
computed once (tasks/algorithms/packing.py). Logits are computed at response positions only, so
prompts need no vocabulary matmul.

Letters: N sequences, T tokens, M packed rows, R response positions, H hidden, V vocabulary,
L layers, E experts, K experts per token.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from transformers import PreTrainedModel

from data_schemas.rollouts import MISSING_ROUTE
from tasks.algorithms.digests import weight_digest
from tasks.algorithms.logprobs import scores_from_hidden, trainable_scores
from tasks.algorithms.packing import Packing, pack, token_buckets
from tasks.algorithms.router_shift import OLD_SCORES, SHIFT, chosen_scores, log_shift
from tasks.algorithms.terms.protocol import Auxiliary
from tasks.engines.chat import ends_of, load_tokenizer
from tasks.engines.embedded.hf_model import load_on_device
from tasks.engines.embedded.lora import LoRAAdapter
from tasks.engines.embedded.packed_attention import PackedLayout, layout, use_packed_attention
from tasks.engines.embedded.router_losses import RouterTerms
from tasks.engines.embedded.router_replay import recording, replaying, routing_of, watching
from tasks.engines.expert_names import named_tensors
from tasks.engines.protocols import (
    NO_AUXILIARY,
    PACKED_ROWS,
    PADDING_ROWS,
    LossFn,
    TokenBatch,
    TokenScores,
)
from tasks.errors import DataError, EngineError
from tasks.models.weights import copy_mtp, write_config, write_ends

ADAM_BETAS = (0.9, 0.95)
GRAD_CLIP = 1.0
"""Both as GPT-3 and LLaMA were trained; those of the Megatron trainer, too."""
STATE_FILE = "trainer.pt"


class TorchTrainer:
    """A Trainer on a transformers model in this process."""

    def __init__(
        self,
        folder: Path,
        *,
        weight_decay: float = 0.0,
        micro_batch_tokens: int = 8192,
        lora_rank: int = 0,
    ) -> None:
        """Open a model.

        Args:
            folder: a Hugging Face directory.
            weight_decay: of matrices.
            micro_batch_tokens: packed rows of a forward pass; a longer sequence is one by itself.
            lora_rank: of the factors that are trained; 0 = all weights are.
        """
        self._source = folder
        self._model: PreTrainedModel = load_on_device(folder)
        self._tokenizer = load_tokenizer(folder)
        self._micro_batch_tokens = micro_batch_tokens
        self._adapter = LoRAAdapter(self._model, lora_rank) if lora_rank else None
        self._frozen = ""
        self._trained: list[torch.nn.Parameter] = list(
            self._adapter.factors.values() if self._adapter else self._model.parameters()
        )
        self._optimizer = torch.optim.AdamW(
            _decay_groups(self._trained, weight_decay), lr=0.0, betas=ADAM_BETAS, fused=True
        )

    def score(
        self, batch: TokenBatch, *, temperature: float, record_routes: bool = False
    ) -> TokenScores:
        """Log-probabilities, entropies and native routes without gradient."""
        logprobs_NT = torch.zeros(batch.tokens_NT.shape)
        entropy_NT = torch.zeros(batch.tokens_NT.shape)
        experts_NTLK: torch.Tensor | None = None
        for micro in _micro_batches(batch, self._micro_batch_tokens):
            with torch.inference_mode():
                if record_routes:
                    with recording(self._model) as record:
                        hidden_MH = self._hidden(micro)
                        native_NTLK = record.take().cpu()[micro.packing.rows_NT]
                    if experts_NTLK is None:
                        shape = (*batch.tokens_NT.shape, *native_NTLK.shape[2:])
                        experts_NTLK = torch.full(shape, MISSING_ROUTE, dtype=torch.int16)
                    width = native_NTLK.shape[1]
                    native_NTLK[~micro.batch.real_NT] = MISSING_ROUTE
                    experts_NTLK[micro.rows_N, :width] = native_NTLK.to(torch.int16)
                else:
                    hidden_MH = self._hidden(micro)
                logprobs_R, entropy_R = scores_from_hidden(
                    hidden_MH[micro.before_R],
                    self._head(),
                    micro.batch.tokens_R.to(self._model.device),
                    temperature,
                    micro.batch.kept_R,
                )
            sequence_R, position_R = micro.batch.at
            logprobs_NT[micro.rows_N[sequence_R], position_R] = logprobs_R.cpu()
            entropy_NT[micro.rows_N[sequence_R], position_R] = entropy_R.cpu()
        return TokenScores(logprobs_NT, entropy_NT, experts_NTLK)

    def router_scores(self, batch: TokenBatch) -> torch.Tensor:
        """Log scores [N, T, L, K] of the batch's experts that predict each response token."""
        assert batch.route_shape is not None, "settings ask for replayed routes"
        scores_NTLK = torch.zeros(*batch.tokens_NT.shape, *batch.route_shape)
        for micro in _micro_batches(batch, self._micro_batch_tokens):
            with torch.inference_mode(), watching(self._model) as logits_LME:
                self._hidden(micro)
                scores_RLK = self._chosen_scores(micro, logits_LME)
            sequence_R, position_R = micro.batch.at
            scores_NTLK[micro.rows_N[sequence_R], position_R] = scores_RLK
        return scores_NTLK

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
        device = self._model.device
        micros = _micro_batches(batch, self._micro_batch_tokens)
        routing = self._router_terms(batch, micros, auxiliary)
        num_responses = max(1, int(batch.response_NT.sum()))
        # Sequences are packed end to end, so that no row is padding.
        packed = float(sum(len(micro.packing.cells_M) for micro in micros))
        totals: dict[str, float] = {"loss": 0.0, PACKED_ROWS: packed, PADDING_ROWS: 0.0}
        by_shift = OLD_SCORES in batch.columns
        for micro in micros:
            watched = watching(self._model) if by_shift else nullcontext([])
            with routing.collect_logits(self._model) as logits_LME, watched as seen_LME:
                hidden_MH = self._hidden(micro)
            logprobs_R, entropy_R = trainable_scores(
                hidden_MH.index_select(0, micro.before_R.to(device)),
                self._head(),
                micro.batch.tokens_R.to(device),
                temperature,
                with_entropy=auxiliary.entropy > 0.0,
                sets=micro.batch.kept_R,
            )
            shape = micro.batch.tokens_NT.shape
            logprobs_NT = torch.zeros(shape).index_put(micro.batch.at, logprobs_R.cpu())
            inputs = self._with_shift(micro, seen_LME) if by_shift else micro.batch
            value, metrics = loss(logprobs_NT, inputs)
            extra, extra_metrics = routing.loss(logits_LME, micro.packing.copies_M.to(device))
            if auxiliary.entropy > 0.0:
                mean = entropy_R.sum() / num_responses
                extra = extra - auxiliary.entropy * mean
                extra_metrics["auxiliary/entropy_nats"] = float(mean.detach())
            (value + extra.cpu()).backward()
            for name, amount in ({"loss": float(value.detach())} | metrics | extra_metrics).items():
                totals[name] = totals.get(name, 0.0) + amount
        norm = torch.nn.utils.clip_grad_norm_(self._trained, GRAD_CLIP)
        if not torch.isfinite(norm):
            self._optimizer.zero_grad(set_to_none=True)
            raise EngineError(f"gradient norm is {float(norm)}; the update was not applied")
        for group in self._optimizer.param_groups:
            group["lr"] = learning_rate
        self._optimizer.step()
        return totals | {"grad_norm": float(norm)}

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
        """Do nothing: the model is freed with its last reference."""

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

    def _head(self) -> torch.Tensor:
        return self._model.get_parameter("lm_head.weight")

    def _hidden(self, micro: "_MicroBatch") -> torch.Tensor:
        """Hidden states of the packed rows [M, H]."""
        batch, cells_M = micro.batch, micro.packing.cells_M
        device, routes = self._model.device, nullcontext()
        if (experts_NTLK := batch.padded_routes_NTLK) is not None:
            experts_MLK = experts_NTLK.flatten(0, 1)[cells_M].to(device)
            routes = replaying(self._model, experts_MLK.long())
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
        routing = routing_of(self._model)
        layers = [
            chosen_scores(logits_ME.detach()[micro.before_R].cpu(), experts_RLK[:, layer], routing)
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
        self, batch: TokenBatch, micros: list["_MicroBatch"], auxiliary: Auxiliary
    ) -> RouterTerms:
        """The router losses of an update.

        The balance loss is a product of two means over the update, so its loads are counted in a
        separate forward pass, which is run only if the loss is on.
        """
        terms = RouterTerms(auxiliary, num_tokens=int(batch.lengths_N.sum()))
        if auxiliary.balance > 0.0:
            for micro in micros:
                # Not inference_mode: the loads are multiplied in a loss with gradient, and autograd
                # saves no tensor that was made there.
                with torch.no_grad(), terms.collect_logits(self._model) as logits_LME:
                    self._hidden(micro)
                terms.count(self._model, logits_LME, micro.packing.copies_M.to(self._model.device))
        return terms


@dataclass(frozen=True, slots=True)
class _MicroBatch:
    """Some sequences of a batch and their packing."""

    rows_N: torch.Tensor
    """Indices of its sequences in the batch."""
    batch: TokenBatch
    packing: Packing
    layout: PackedLayout

    @property
    def before_R(self) -> torch.Tensor:
        """Packed row that predicts a response token."""
        sequence_R, position_R = self.batch.at
        return self.packing.rows_NT[sequence_R, position_R - 1]


def _micro_batches(batch: TokenBatch, max_tokens: int) -> list[_MicroBatch]:
    """Split a batch so that sequences with a common prefix are together, and pack each part."""
    prefixes = batch.prefixes
    rows_N = torch.tensor(prefixes.order, dtype=torch.int64)
    lengths_N, shared_N = batch.lengths_N[rows_N].numpy(), np.array(prefixes.shared)
    micros = []
    for bucket in token_buckets(lengths_N, shared_N, max_tokens):
        part = batch.select(rows_N[bucket])
        packing = pack(lengths_N[bucket], shared_N[bucket], part.tokens_NT.shape[1])
        micros.append(_MicroBatch(rows_N[bucket], part, packing, layout(packing, part.lengths_N)))
    return micros


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
