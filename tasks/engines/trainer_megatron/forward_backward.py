# pyright: reportMissingImports=false
"""Forward and backward passes of this rank's part of a model, micro-batch by micro-batch.

Megatron's schedules (1F1B with pipeline parallelism) decide the order; this module defines one
forward pass, and computes log-probabilities from hidden states at response positions only.

Letters: M packed rows, H hidden, R response positions, V this rank's columns of the vocabulary,
L MoE layers, K experts per token, S kinds of scores.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from megatron.core.models.gpt import GPTModel
from megatron.core.pipeline_parallel import get_forward_backward_func
from megatron.core.tensor_parallel import gather_from_sequence_parallel_region
from torch import nn

from tasks.engines.process_group import gather_json
from tasks.engines.trainer_megatron.gathering import RecordedRoutes, join_parts
from tasks.engines.trainer_megatron.geometry import Geometry
from tasks.engines.trainer_megatron.micro_batches import MicroBatch, MicroBatches
from tasks.engines.trainer_megatron.model import attention_inputs
from tasks.engines.trainer_megatron.parallel import Ranks
from tasks.engines.trainer_megatron.pieces import held_rows
from tasks.engines.trainer_megatron.router_replay import ModelReplay, Routes
from tasks.engines.trainer_megatron.transfers import to_device, wait_for
from tasks.engines.trainer_megatron.vocabulary import sharded_scores, vocabulary_slice

Scores = tuple[torch.Tensor, torch.Tensor]
"""(logprobs_R, entropy_R) on the CPU"""
Loss = Callable[[MicroBatch, Scores], torch.Tensor]
"""Called by the last pipeline stage with a micro-batch's scores, whose gradient it has."""
_Finish = Callable[[MicroBatch, torch.Tensor], torch.Tensor]
"""Makes of the last stage's hidden states [M, 1, H] what backward starts from."""


@dataclass(frozen=True, slots=True)
class ScoredResponses:
    """The response positions of one micro-batch."""

    cells_R: tuple[torch.Tensor, torch.Tensor]
    """Number of the sequence in the batch, and position."""
    scores: Scores


@dataclass(frozen=True, slots=True)
class _OnDevice:
    """The scores of a micro-batch, until all of a pass are copied together."""

    cells_R: tuple[torch.Tensor, torch.Tensor]
    own_R: torch.Tensor
    """Which of the response positions this rank has."""
    scores_2R: torch.Tensor
    """Log-probabilities and entropies of these, in fp32."""


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

    def train(
        self, micros: MicroBatches, loss: Loss, *, temperature: float, with_entropy: bool
    ) -> None:
        """Run all micro-batches forward and backward.

        Gradients are added to the model's buffers, summed over all ranks. The host waits for the
        device once per micro-batch, on the last pipeline stage: the loss reads columns of the host
        and returns numbers. Backward starts from its gradient, and waits for nothing.

        Args:
            loss: called on the last pipeline stage, once per micro-batch.
            with_entropy: False = entropies are zeros.
        """

        def finish(micro: MicroBatch, output: torch.Tensor) -> torch.Tensor:
            own_R, scores = self._own_scores(
                micro, output, temperature=temperature, with_entropy=with_entropy
            )
            own_SR = torch.stack(scores if with_entropy else scores[:1])
            host_SR = own_SR.detach().cpu().requires_grad_()
            size = len(micro.before_R)
            logprobs_R, *entropy = (self._joined(size, own_R, part) for part in host_SR)
            entropy_R = entropy[0] if entropy else torch.zeros_like(logprobs_R)
            (slope_SR,) = torch.autograd.grad(loss(micro, (logprobs_R, entropy_R)), host_SR)
            return (own_SR * to_device(slope_SR, self._ranks.device)).sum()

        self._run(micros, finish, training=True, record=False)

    @torch.no_grad()
    def score(
        self, micros: MicroBatches, *, temperature: float, record: bool
    ) -> tuple[list[ScoredResponses], list[RecordedRoutes]]:
        """Run all micro-batches forward; the host waits for the device once, at the end.

        Until then 8 bytes per response token of this rank lie on the device, and recorded routes in
        pinned memory of the host.

        Returns:
            On the last pipeline stage the scores of every micro-batch. If `record`: per
            micro-batch, the native choices of this rank's rows and layers.
        """
        kept: list[_OnDevice] = []

        def finish(micro: MicroBatch, output: torch.Tensor) -> torch.Tensor:
            own_R, scores = self._own_scores(
                micro, output, temperature=temperature, with_entropy=True
            )
            kept.append(_OnDevice(micro.cells_R, own_R, torch.stack(scores)))
            return self._nothing()

        recorded = self._run(micros, finish, training=False, record=record)
        wait_for(self._ranks.device)
        if not kept:
            return [], recorded
        sizes = [len(one.own_R) for one in kept]
        parts = torch.cat([one.scores_2R for one in kept], dim=1).cpu().split(sizes, dim=1)
        scored = []
        for one, scores_2R in zip(kept, parts, strict=True):
            size = len(one.cells_R[0])
            logprobs_R, entropy_R = (self._joined(size, one.own_R, part) for part in scores_2R)
            scored.append(ScoredResponses(one.cells_R, (logprobs_R, entropy_R)))
        return scored, recorded

    @torch.no_grad()
    def visit_layers(self, micros: MicroBatches) -> None:
        """Run all micro-batches forward for hooks on the layers; nothing is scored."""
        self._run(micros, lambda *_: self._nothing(), training=False, record=False)

    def _run(
        self, micros: MicroBatches, finish: _Finish, *, training: bool, record: bool
    ) -> list[RecordedRoutes]:
        recorded: list[RecordedRoutes] = []
        self._replay.forget()  # left over from a run that was aborted

        def step(waiting: Iterator[MicroBatch], model: nn.Module):
            micro = next(waiting)
            output = self._forward(model, micro, training=training, record=record)
            if record:
                chosen_MLK = self._replay.recorded()
                recorded.append(RecordedRoutes.of(micro, self.rows(micro), chosen_MLK))

            def ended(output: torch.Tensor):
                # Megatron counts tokens to divide gradients by; `optimizer.replicate` passes no
                # count on.
                return finish(micro, output), self._nothing().int(), {}

            return output, ended

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

    def _nothing(self) -> torch.Tensor:
        return torch.zeros((), device=self._ranks.device)

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
            return model(to_device(tokens_M[self._attention_rows(micro)][None], device), **inputs)

    def _routes(self, micro: MicroBatch) -> Routes:
        """Cut the routes of a micro-batch to this rank's rows; they are of this stage's layers."""
        rows_M, experts_MLK = self.rows(micro), micro.routes_MLK()
        if experts_MLK is not None:
            assert experts_MLK.shape[1] == len(self.places_L), "cut for the layers of another stage"
            experts_MLK = to_device(experts_MLK[rows_M], self._ranks.device)
        return Routes(experts_MLK, to_device(micro.copies_M[rows_M], self._ranks.device))

    def _own_scores(
        self, micro: MicroBatch, output: torch.Tensor, *, temperature: float, with_entropy: bool
    ) -> tuple[torch.Tensor, Scores]:
        """Score hidden states [M, 1, H] in the form of Megatron's schedules.

        Returns:
            Which response positions this rank has, and their scores, on the device.
        """
        device = self._ranks.device
        if self._ranks.tensor > 1:
            # True: backward adds up the shares of all tensor ranks, which hold other columns of the
            # head, before it scatters them.
            output = gather_from_sequence_parallel_region(output, tensor_parallel_output_grad=True)
        row_R = self._row_among_held(micro)
        own_R, kept_R = (row_R >= 0).nonzero()[:, 0], micro.batch.kept_R
        scores = sharded_scores(
            output[:, 0].index_select(0, to_device(row_R[own_R], device)),
            self._head(),
            to_device(micro.batch.tokens_R[own_R], device),
            temperature,
            self._share,
            with_entropy=with_entropy,
            sets=kept_R and kept_R.take(own_R),
        )
        return own_R, scores

    def _joined(self, size: int, own_R: torch.Tensor, part: torch.Tensor) -> torch.Tensor:
        """The values of all `size` response positions, from those of all context ranks."""
        if self._ranks.context == 1:
            return part
        return join_parts(part, own_R, size, self._ranks.context_group)

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
