# pyright: reportMissingImports=false
"""Forward and backward passes of this rank's part of a model, micro-batch by micro-batch.

Megatron's schedules (1F1B with pipeline parallelism) decide the order; this module defines one
forward pass, and computes log-probabilities from hidden states at response positions only.

Letters: M packed rows, H hidden, R response positions, V this rank's columns of the vocabulary,
L MoE layers, K experts per token.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial

import torch
from megatron.core.models.gpt import GPTModel
from megatron.core.pipeline_parallel import get_forward_backward_func
from megatron.core.tensor_parallel import gather_from_sequence_parallel_region
from torch import nn

from tasks.engines.process_group import gather_json
from tasks.engines.trainer_megatron.micro_batches import (
    MicroBatch,
    MicroBatches,
    RecordedRoutes,
    held_rows,
    join_parts,
)
from tasks.engines.trainer_megatron.model import attention_inputs
from tasks.engines.trainer_megatron.names import Geometry
from tasks.engines.trainer_megatron.parallel import Ranks
from tasks.engines.trainer_megatron.router_replay import ModelReplay, Routes
from tasks.engines.trainer_megatron.vocabulary import sharded_scores, vocabulary_slice

Scores = tuple[torch.Tensor, torch.Tensor]
"""(logprobs_R, entropy_R) on the CPU"""
Finish = Callable[[MicroBatch, Scores], torch.Tensor]
"""Called by the last pipeline stage with a micro-batch's scores; returns the loss."""


class ForwardBackward:
    """Runs a model. All ranks make the same calls with as many micro-batches each.

    Args:
        model: takes packed rows: the GPTModel, or what wraps it for training.
    """

    def __init__(
        self, gpt: GPTModel, model: nn.Module, geometry: Geometry, ranks: Ranks, replay: ModelReplay
    ) -> None:
        self._gpt, self._model, self._ranks, self._replay = gpt, model, ranks, replay
        group = ranks.tensor_group if ranks.tensor > 1 else None
        columns = geometry.padded_vocab(ranks.tensor) // ranks.tensor
        self._share = vocabulary_slice(geometry.vocab, columns, ranks.tensor_rank, group)
        self.places_L, self.num_layers = _places(replay)

    def run(
        self,
        micros: MicroBatches,
        finish: Finish,
        *,
        temperature: float,
        training: bool,
        with_entropy: bool = True,
        record: bool = False,
    ) -> list[RecordedRoutes]:
        """Run all micro-batches forward, and backward if training.

        Args:
            finish: called on the last pipeline stage, once per micro-batch.
            training: gradients are added to the model's buffers, summed over all ranks.

        Returns:
            If `record`: per micro-batch, the native choices of this rank's rows and layers.
        """
        recorded: list[RecordedRoutes] = []
        self._replay.forget()  # left over from a run that was aborted

        def step(waiting: Iterator[MicroBatch], model: nn.Module):
            micro = next(waiting)
            output = self._forward(model, micro, training=training, record=record)
            if record:
                chosen_MLK = self._replay.recorded()
                recorded.append(RecordedRoutes.of(micro, self.rows(micro), chosen_MLK))
            return output, partial(
                self._finish, micro, finish, temperature=temperature, with_entropy=with_entropy
            )

        with nullcontext() if training else torch.no_grad():
            get_forward_backward_func()(
                forward_step_func=step,
                data_iterator=iter(micros),
                model=[self._model],
                num_microbatches=len(micros),
                seq_length=1,  # unused: stages exchange the shapes of what they send
                micro_batch_size=1,
                forward_only=not training,
            )
        self._replay.finish()
        return recorded

    def rows(self, micro: MicroBatch) -> torch.Tensor:
        """Packed rows [M] that this rank's layers see.

        Context parallelism divides the rows of every sequence; sequence parallelism divides a
        rank's rows among its tensor ranks.
        """
        return self._attention_rows(micro).chunk(self._ranks.tensor)[self._ranks.tensor_rank]

    def _attention_rows(self, micro: MicroBatch) -> torch.Tensor:
        """Packed rows that all tensor ranks of this rank hold together."""
        if self._ranks.context == 1:
            return torch.arange(len(micro.tokens_M))
        return held_rows(micro.parts, self._ranks.context, self._ranks.context_rank)

    def _forward(
        self, model: nn.Module, micro: MicroBatch, *, training: bool, record: bool
    ) -> torch.Tensor:
        """Run this stage's layers; the last stage returns hidden states, not logits."""
        device, tokens_M = self._ranks.device, micro.tokens_M
        inputs = attention_inputs(micro.parts, device, micro.attention_rows())
        routes = self._replay.forward(self._routes(micro), training=training, record=record)
        with routes, _without_head(self._gpt):
            return model(tokens_M[self._attention_rows(micro)][None].to(device), **inputs)

    def _routes(self, micro: MicroBatch) -> Routes:
        """Cut the routes of a micro-batch to this rank's rows; they are of this stage's layers."""
        rows_M, experts_MLK = self.rows(micro), micro.routes_MLK()
        if experts_MLK is not None:
            assert experts_MLK.shape[1] == len(self.places_L), "cut for the layers of another stage"
            experts_MLK = experts_MLK[rows_M].to(self._ranks.device)
        return Routes(experts_MLK, micro.copies_M[rows_M].to(self._ranks.device))

    def _finish(
        self,
        micro: MicroBatch,
        finish: Finish,
        output: torch.Tensor,
        *,
        temperature: float,
        with_entropy: bool,
    ) -> tuple[torch.Tensor, torch.Tensor, dict[str, torch.Tensor]]:
        """Compute the loss from hidden states [M, 1, H] in the form of Megatron's schedules."""
        device = self._ranks.device
        if self._ranks.tensor > 1:
            # True: backward adds up the shares of all tensor ranks, which hold other columns of the
            # head, before it scatters them.
            output = gather_from_sequence_parallel_region(output, tensor_parallel_output_grad=True)
        row_R = self._row_among_held(micro)
        own_R, kept_R = (row_R >= 0).nonzero()[:, 0], micro.batch.kept_R
        scores = sharded_scores(
            output[:, 0].index_select(0, row_R[own_R].to(device)),
            self._head(),
            micro.batch.tokens_R[own_R].to(device),
            temperature,
            self._share,
            with_entropy=with_entropy,
            sets=kept_R and kept_R.take(own_R),
        )
        # The loss is small and reads columns that lie on the CPU.
        logprobs_R, entropy_R = (part.cpu() for part in scores)
        if self._ranks.context > 1:
            size, group = len(row_R), self._ranks.context_group
            logprobs_R = join_parts(logprobs_R, own_R, size, group)
            entropy_R = join_parts(entropy_R, own_R, size, group)
        loss = finish(micro, (logprobs_R, entropy_R))
        # Megatron counts tokens to divide gradients by; `optimizer.replicate` passes no count on.
        return loss.to(device), torch.zeros((), dtype=torch.int, device=device), {}

    def _row_among_held(self, micro: MicroBatch) -> torch.Tensor:
        """Which row of this rank's predicts a response token [R]; -1 if another rank has it."""
        held_M = self._attention_rows(micro)
        place = torch.full((len(micro.tokens_M),), -1)
        place[held_M] = torch.arange(len(held_M))
        return place[micro.before_R]

    def _head(self) -> torch.Tensor:
        head_VH = self._gpt.output_layer.weight
        if self._gpt.share_embeddings_and_output_weights:
            head_VH = self._gpt.shared_embedding_or_output_weight()
        assert head_VH is not None, "only the last stage finishes"
        return head_VH


@contextmanager
def _without_head(gpt: GPTModel) -> Iterator[None]:
    """Let a model return hidden states, which are then gathered at response positions only."""
    before, gpt.post_process = gpt.post_process, False
    try:
        yield
    finally:
        gpt.post_process = before


def _places(replay: ModelReplay) -> tuple[list[int], int]:
    """Indices of this stage's MoE layers, and the number of MoE layers in the model."""
    numbers = [router.layer_number for router in replay.routers]
    order = sorted({number for others in gather_json(numbers) for number in others})
    return [order.index(number) for number in numbers], len(order)
