# pyright: reportMissingImports=false
"""Training with Megatron-core, on a cluster or in gloo processes on a laptop.

SPMD: every rank makes the same calls with the same batch, computes its share of it, and gets the
same complete result. A rank may hold its share only: it then gets all results but the routes of
all sequences. A rank alone is a world of one.

Letters: N sequences, T tokens, R response positions, L MoE layers, K experts per token.
"""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from megatron.core.distributed import DistributedDataParallel
from megatron.core.optimizer import MegatronOptimizer

from data_schemas.machine_settings import LayoutSettings
from tasks.algorithms.packing import Prefixes
from tasks.algorithms.terms.protocol import Auxiliary
from tasks.engines.partial_batch import AnyBatch, Share
from tasks.engines.protocols import (
    NO_AUXILIARY,
    PACKED_ROWS,
    PADDING_ROWS,
    LossFn,
    TokenScores,
)
from tasks.engines.trainer_megatron import checkpoint, convert, model, optimizer, parallel
from tasks.engines.trainer_megatron.auxiliary import RouterAuxiliaryLoss
from tasks.engines.trainer_megatron.forward_backward import ForwardBackward, Scores
from tasks.engines.trainer_megatron.gathering import ResponseValues, add, gather_routes, sum_metrics
from tasks.engines.trainer_megatron.geometry import read_geometry
from tasks.engines.trainer_megatron.micro_batches import (
    MicroBatch,
    MicroBatches,
    cut,
    divide,
    prompt_lengths,
)
from tasks.engines.trainer_megatron.router_replay import ModelReplay
from tasks.engines.trainer_megatron.silent_warnings import silence
from tasks.errors import DataError, SettingsError


@dataclass(frozen=True, slots=True)
class _Training:
    """Objects needed for updates only; a reference model never creates them."""

    replica: DistributedDataParallel
    optimizer: MegatronOptimizer
    forward_backward: ForwardBackward


class MegatronTrainer:
    """A Trainer on this rank's part of a GPTModel.

    Args:
        folder: a Hugging Face model directory, the same on all ranks.
        fp32_router: routers have weights in fp32 also where the layout's precision is below.

    Raises:
        SettingsError: the layout does not fit the model or the number of ranks, or the model is
            not supported.
    """

    def __init__(
        self,
        folder: Path,
        *,
        layout: LayoutSettings,
        weight_decay: float = 0.0,
        fp32_router: bool = False,
    ) -> None:
        silence()
        self._source, self._layout, self._weight_decay = folder, layout, weight_decay
        self._ranks = parallel.initialise(layout)
        self._geometry = read_geometry(folder)
        self._gpt = model.build(self._geometry, layout, self._ranks, with_fp32_router=fp32_router)[
            0
        ]
        convert.load(self._gpt, folder, self._geometry, self._ranks)
        self._replay = ModelReplay(self._gpt)
        self._passes = self._passes_of(self._gpt)
        self._training: _Training | None = None

    def share(self, batch: AnyBatch) -> Share:
        """Micro-batches of this data-parallel rank, MoE layers of this pipeline stage.

        Raises:
            SettingsError, DataError: the routes are of another model.
        """
        self._check(batch, record_routes=False)
        divided = self._divide_sequences(batch, self._prefixes(batch))
        return Share(tuple(divided), tuple(self._passes.places_L))

    def score(
        self, batch: AnyBatch, *, temperature: float, record_routes: bool = False
    ) -> TokenScores:
        """Log-probabilities, entropies and native routes without gradient."""
        self._check(batch, record_routes=record_routes)
        logprobs, entropies = ResponseValues(batch), ResponseValues(batch)
        if not len(batch.lengths_N):
            return TokenScores(logprobs.gather(), entropies.gather(), None)

        scored, recorded = self._passes.score(
            self._micro_batches(batch), temperature=temperature, record=record_routes
        )
        for one in scored if self._reports else ():
            logprobs.put(one.cells_R, one.scores[0])
            entropies.put(one.cells_R, one.scores[1])
        experts_NTLK = None
        if record_routes:
            experts_NTLK = gather_routes(
                batch,
                recorded,
                places_L=self._passes.places_L,
                num_layers=self._passes.num_layers,
                k=self._geometry.top_k,
            )
        return TokenScores(logprobs.gather(), entropies.gather(), experts_NTLK)

    def update(
        self,
        batch: AnyBatch,
        loss: LossFn,
        *,
        temperature: float,
        learning_rate: float,
        auxiliary: Auxiliary = NO_AUXILIARY,
    ) -> dict[str, float]:
        """One optimizer step on the whole batch.

        Returns:
            Summed metrics and 'grad_norm'; in fp16 also what `optimizer.apply` says.

        Raises:
            EngineError: the loss or the gradient is not finite, or too many updates overflowed in
                fp16; no weight was changed.
        """
        self._check(batch, record_routes=auxiliary.balance > 0.0 or auxiliary.router_z > 0.0)
        training = self._for_training()
        micros = self._micro_batches(batch)
        terms = self._counted_terms(batch, micros, auxiliary)
        totals: dict[str, float] = {}
        num_responses = max(1, int(batch.response_NT.sum()))

        def compute_loss(micro: MicroBatch, scores: Scores) -> torch.Tensor:
            logprobs_R, entropy_R = scores
            if self._reports:
                rows, padding = float(len(micro.tokens_M)), float(micro.num_padding)
                add(totals, {PACKED_ROWS: rows, PADDING_ROWS: padding})
            if micro.is_filler:
                return logprobs_R.sum()
            shape = micro.batch.tokens_NT.shape
            logprobs_NT = torch.zeros(shape).index_put(micro.batch.at, logprobs_R)
            value, metrics = loss(logprobs_NT, micro.batch)
            metrics = {"loss": float(value.detach())} | metrics
            if auxiliary.entropy > 0.0:
                mean = entropy_R.sum() / num_responses
                value = value - auxiliary.entropy * mean
                metrics["auxiliary/entropy_nats"] = float(mean.detach())
            if self._reports:
                add(totals, metrics)
            return value

        with optimizer.allocated_gradients(training.replica):
            training.optimizer.zero_grad()
            with terms.attach_losses():
                training.forward_backward.train(
                    micros,
                    compute_loss,
                    temperature=temperature,
                    with_entropy=auxiliary.entropy > 0.0,
                )
            add(totals, terms.metrics())
            totals = {"loss": 0.0} | sum_metrics(totals)
            return totals | optimizer.apply(training.optimizer, learning_rate)

    def weights(self) -> Iterator[tuple[str, torch.Tensor]]:
        """The policy's tensors under Hugging Face names; all ranks iterate to the end."""
        yield from convert.export(self._gpt, self._geometry, self._ranks)

    def save(self, folder: Path) -> None:
        """Write weights and optimizer state; all ranks write to the same folder."""
        training = self._for_training()
        checkpoint.save(folder, self._state(training))

    def restore(self, folder: Path) -> None:
        """Restore exactly the state that `save` wrote, on this layout or another."""
        training = self._for_training()
        checkpoint.restore(folder, self._state(training))

    def export(self, folder: Path) -> None:
        """Write the policy as a Hugging Face directory with its tokenizer."""
        convert.save(self._gpt, self._geometry, self._ranks, source=self._source, folder=folder)

    def close(self) -> None:
        """Free the memory; the process groups stay for the next trainer of this process."""
        vars(self).clear()
        parallel.free_memory()

    @property
    def _reports(self) -> bool:
        """Whether this rank contributes its scores; ranks with the same micro-batches do not."""
        return self._ranks.tensor_rank == 0 and self._ranks.context_rank == 0

    def _state(self, training: _Training) -> checkpoint.TrainerState:
        return checkpoint.TrainerState(
            self._gpt, training.optimizer, self._geometry, self._layout, self._ranks
        )

    def _passes_of(self, runs: torch.nn.Module) -> ForwardBackward:
        return ForwardBackward(self._gpt, runs, self._geometry, self._ranks, self._replay)

    def _for_training(self) -> _Training:
        """Make gradient buffers, without memory, and the optimizer when they are first needed."""
        if self._training is None:
            replica = optimizer.replicate(self._gpt)
            updater = optimizer.make_optimizer(self._gpt, replica, self._weight_decay)
            optimizer.free_gradients(replica)
            self._training = _Training(replica, updater, self._passes_of(replica))
        return self._training

    def _divide_sequences(
        self, batch: AnyBatch, prefixes: Prefixes | None
    ) -> list[tuple[int, ...]]:
        """Sequences of this data-parallel rank's micro-batches, as many as every other's."""
        dealt = divide(
            batch.lengths_N.tolist(),
            num_ranks=self._ranks.data,
            max_tokens=self._layout.micro_batch_tokens,
            prefixes=prefixes,
            prompts=prompt_lengths(batch),
        )
        return dealt[self._ranks.data_rank]

    def _prefixes(self, batch: AnyBatch) -> Prefixes | None:
        """Prefixes that sequences share; none where context parallelism cuts them."""
        return batch.prefixes if self._ranks.context == 1 else None

    def _micro_batches(self, batch: AnyBatch) -> MicroBatches:
        """This rank's share of a batch in its micro-batches."""
        prefixes = self._prefixes(batch)
        cut_one = partial(
            cut,
            batch,
            prefixes=prefixes,
            layers=self._passes.places_L,
            tensor=self._ranks.tensor,
            context=self._ranks.context,
        )
        return MicroBatches(self._divide_sequences(batch, prefixes), cut_one)

    def _counted_terms(
        self,
        batch: AnyBatch,
        micros: MicroBatches,
        auxiliary: Auxiliary,
    ) -> RouterAuxiliaryLoss:
        """The router losses of an update, with loads counted in a separate pass if needed."""
        terms = RouterAuxiliaryLoss(
            self._replay,
            auxiliary,
            num_tokens=int(batch.lengths_N.sum()),
            routing=self._geometry.routing,
            places_L=self._passes.places_L,
            num_layers=self._passes.num_layers,
        )
        with terms.count_loads() if terms.needs_counts else nullcontext():
            if terms.needs_counts:
                self._passes.visit_layers(micros)
        return terms

    def _check(self, batch: AnyBatch, *, record_routes: bool) -> None:
        """Refuse routes that do not fit this model's routers.

        Raises:
            SettingsError: the model has no router.
            DataError: the routes are of another model.
        """
        if not self._geometry.experts:
            if record_routes or batch.route_shape is not None:
                raise SettingsError(
                    "the model has no MoE router; set router_replay to 'off', "
                    "and leave the terms balance and router_z out"
                )
        elif batch.route_shape is not None:
            shape = (self._passes.num_layers, self._geometry.top_k)
            if batch.route_shape != shape:
                raise DataError(
                    f"routes are of {batch.route_shape[0]} layers and {batch.route_shape[1]} "
                    f"experts per token, the model needs {shape[0]} and {shape[1]}"
                )
