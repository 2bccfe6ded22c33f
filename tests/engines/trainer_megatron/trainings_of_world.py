# pyright: reportMissingImports=false
"""What one rank of a world does with a MegatronTrainer: run by gloo_world."""

import gc
import logging
from dataclasses import dataclass, replace
from functools import partial
from logging.handlers import BufferingHandler
from pathlib import Path
from typing import Any

import torch
from torch import distributed

from data_schemas.machine_settings import LayoutSettings
from tasks.algorithms.terms.protocol import Auxiliary
from tasks.engines.partial_batch import Share, outline
from tasks.engines.protocols import (
    PACKED_ROWS,
    PADDING_ROWS,
    TokenBatch,
    TokenScores,
    Trainer,
)
from tasks.engines.team.controller import current
from tasks.engines.team.in_team import in_team
from tasks.engines.team.trainer import TeamTrainer
from tasks.engines.trainer_megatron.gathering import RecordedRoutes, gather_routes
from tasks.engines.trainer_megatron.micro_batches import MicroBatch
from tasks.engines.trainer_megatron.trainer import MegatronTrainer
from tasks.errors import EngineError

TEMPERATURE = 0.7
AUXILIARY = Auxiliary(entropy=0.01, balance=0.1, router_z=0.01)
LEARNING_RATE = 1e-3
DECAY = 0.1
FIRST = torch.tensor([0])
LARGE = 1e6
"""AdamW with this epsilon and learning rate subtracts the clipped gradient itself."""


@dataclass(frozen=True, slots=True)
class Trained:
    """What one rank saw."""

    replayed: TokenScores
    native: TokenScores
    gradient: dict[str, torch.Tensor]
    updates: list[dict[str, float]]
    weights: dict[str, torch.Tensor]


def weighted(logprobs_NT: torch.Tensor, batch: TokenBatch) -> tuple[torch.Tensor, dict[str, float]]:
    """A loss that every sequence adds to, one more than another."""
    tokens_NT = batch.response_NT.float() * batch.columns["weights"][:, None]
    loss = -(logprobs_NT * tokens_NT).sum() / 100
    return loss, {"tokens": float(batch.response_NT.sum())}


def overflowing(
    logprobs_NT: torch.Tensor, batch: TokenBatch
) -> tuple[torch.Tensor, dict[str, float]]:
    """The same, too large for gradients in fp16."""
    loss, metrics = weighted(logprobs_NT, batch)
    return 1e7 * loss, metrics


def without_rows(metrics: dict[str, float]) -> dict[str, float]:
    """Leave out the rows: a layout aligns their ends, and shares prompts within a micro-batch."""
    return {name: metrics[name] for name in metrics.keys() - {PACKED_ROWS, PADDING_ROWS}}


def train(folder: Path, layout: LayoutSettings, batch: TokenBatch) -> Trained:
    """Score, look at the gradient, and train from the start."""
    graded = MegatronTrainer(folder, layout=layout)
    trainer = MegatronTrainer(folder, layout=layout, weight_decay=DECAY)
    return report(graded, graded._for_training().optimizer.param_groups, trainer, batch)


def train_in_team(
    folder: Path, layout: LayoutSettings, batch: TokenBatch
) -> tuple[Trained, list[dict[str, float]]] | None:
    """The same where rank 0 alone has the batch; and an update on its first sequence alone."""

    def lead() -> tuple[Trained, list[dict[str, float]]]:
        graded, trainer, other = (
            TeamTrainer(current(), partial(open_trainer, folder, layout, plain_sgd=plain_sgd))
            for plain_sgd in (True, False, False)
        )
        return report(graded, [], trainer, batch), updates(other, batch.select(FIRST), 1)

    return in_team(lead)()


def open_trainer(folder: Path, layout: LayoutSettings, *, plain_sgd: bool) -> MegatronTrainer:
    """Open a trainer; with `plain_sgd` its step is the clipped gradient."""
    trainer = MegatronTrainer(folder, layout=layout, weight_decay=0.0 if plain_sgd else DECAY)
    if plain_sgd:
        make_plain_sgd(trainer._for_training().optimizer.param_groups)
    return trainer


def shares(folder: Path, layout: LayoutSettings, batch: TokenBatch) -> Share:
    """What this rank computes of a batch of which it holds nothing."""
    found = MegatronTrainer(folder, layout=layout).share(outline(batch))
    distributed.barrier()  # no rank leaves while another still connects to it
    return found


def report(
    graded: Trainer, groups: list[dict[str, Any]], trainer: Trainer, batch: TokenBatch
) -> Trained:
    """Do the same with any two trainers on the same model.

    Args:
        groups: of the optimizer of `graded`.
    """
    native = replace(batch, experts_NTLK=None)
    return Trained(
        replayed=trainer.score(batch, temperature=TEMPERATURE, record_routes=True),
        native=trainer.score(native, temperature=TEMPERATURE, record_routes=True),
        gradient=gradient(graded, groups, batch),
        updates=updates(trainer, batch, 3),
        weights=weights(trainer),
    )


def gradient(
    trainer: Trainer, groups: list[dict[str, Any]], batch: TokenBatch
) -> dict[str, torch.Tensor]:
    """The clipped gradient of a loss with all terms, under Hugging Face names."""
    make_plain_sgd(groups)
    before = weights(trainer)
    trainer.update(
        batch, weighted, temperature=TEMPERATURE, learning_rate=LARGE, auxiliary=AUXILIARY
    )
    return {name: before[name] - tensor for name, tensor in trainer.weights()}


def make_plain_sgd(groups: list[dict[str, Any]]) -> None:
    """Make an optimizer subtract the clipped gradient."""
    for group in groups:
        group["eps"], group["weight_decay"] = LARGE, 0.0


def updates(trainer: Trainer, batch: TokenBatch, count: int) -> list[dict[str, float]]:
    """Update with all terms of the loss."""
    return [
        trainer.update(
            batch,
            weighted,
            temperature=TEMPERATURE,
            learning_rate=LEARNING_RATE,
            auxiliary=AUXILIARY,
        )
        for _ in range(count)
    ]


def weights(trainer: Trainer) -> dict[str, torch.Tensor]:
    """A copy of all tensors."""
    return {name: tensor.clone() for name, tensor in trainer.weights()}


@dataclass(frozen=True, slots=True)
class Replayed:
    """Routes of one model that another one was made to use."""

    recorded: torch.Tensor
    used: torch.Tensor
    native: torch.Tensor
    """What the other one would have chosen."""
    calls: list[int]
    """Calls of every router of this rank in an update on the recorded routes."""
    strange: int
    """How many of these used other experts than recorded."""


def replay(folder: Path, other: Path, layout: LayoutSettings, batch: TokenBatch) -> Replayed:
    """Record with one model, replay with another, and watch its routers."""
    plain = replace(batch, experts_NTLK=None)
    recorder = MegatronTrainer(folder, layout=layout)
    recorded = recorder.score(plain, temperature=1.0, record_routes=True).experts_NTLK
    assert recorded is not None
    trainer = MegatronTrainer(other, layout=layout)
    native = trainer.score(plain, temperature=1.0, record_routes=True).experts_NTLK
    assert native is not None
    replaying = replace(batch, experts_NTLK=recorded)
    seen = _watch(trainer)
    trainer.score(replaying, temperature=1.0)
    used = _gathered(trainer, replaying, seen)
    expected = [[_wanted(trainer, micro)] for micro in trainer._micro_batches(replaying)]
    for calls in seen:
        calls.clear()
    trainer.update(replaying, weighted, temperature=1.0, learning_rate=0.0)
    wanted = [micro[0] for micro in expected]
    strange = sum(
        not any(torch.equal(call, one[:, layer]) for one in wanted)
        for layer, calls in enumerate(seen)
        for call in calls
    )
    return Replayed(recorded, used, native, [len(calls) for calls in seen], strange)


def router_rows(folder: Path, layout: LayoutSettings, batch: TokenBatch) -> set[int]:
    """Numbers of rows that the routers of this rank see in a pass of an update."""
    trainer, seen = MegatronTrainer(folder, layout=layout), set[int]()
    for router in trainer._replay.routers:
        router.register_forward_hook(lambda _, __, output: seen.add(len(output[1])))
    updates(trainer, batch, 1)
    return seen


def micro_batches_in_memory(folder: Path, layout: LayoutSettings, batch: TokenBatch) -> list[int]:
    """Number of all micro-batches of this rank, and of those in memory at every loss."""
    trainer = MegatronTrainer(folder, layout=layout)
    counts = [len(trainer._micro_batches(batch))]

    def look(logprobs_NT: torch.Tensor, micro: TokenBatch):
        counts.append(sum(isinstance(one, MicroBatch) for one in gc.get_objects()))
        return weighted(logprobs_NT, micro)

    trainer.update(batch, look, temperature=TEMPERATURE, learning_rate=LEARNING_RATE)
    return counts


def score_together_and_alone(
    folder: Path, layout: LayoutSettings, batch: TokenBatch
) -> tuple[TokenScores, list[TokenScores]]:
    """Scores of a batch, and of each of its sequences in a batch by itself."""
    trainer = MegatronTrainer(folder, layout=layout)
    alone = [batch.select(torch.tensor([row])) for row in range(len(batch.lengths_N))]
    together, *others = [
        trainer.score(one, temperature=TEMPERATURE, record_routes=True) for one in (batch, *alone)
    ]
    return together, others


def _watch(trainer: MegatronTrainer) -> list[list[torch.Tensor]]:
    """Note the experts [M, K] that every router gives its tokens to, sorted, call by call."""
    seen: list[list[torch.Tensor]] = [[] for _ in trainer._replay.routers]
    for calls, router in zip(seen, trainer._replay.routers, strict=True):
        router.register_forward_hook(
            lambda _, __, output, calls=calls: calls.append(
                output[1].nonzero()[:, 1].view(len(output[1]), -1)
            )
        )
    return seen


def _gathered(
    trainer: MegatronTrainer, batch: TokenBatch, seen: list[list[torch.Tensor]]
) -> torch.Tensor:
    micros = trainer._micro_batches(batch)
    parts = [
        RecordedRoutes.of(micro, trainer._passes.rows(micro), torch.stack(layers, dim=1))
        for micro, layers in zip(micros, zip(*seen, strict=True), strict=True)
    ]
    found = gather_routes(
        batch,
        parts,
        places_L=trainer._passes.places_L,
        num_layers=trainer._passes.num_layers,
        k=2,
    )
    assert found is not None
    return found


def _wanted(trainer: MegatronTrainer, micro: Any) -> torch.Tensor:
    """Experts [M, L, K] that this rank's routers replay, sorted."""
    routes = trainer._passes._routes(micro).experts_MLK
    assert routes is not None
    return routes.sort(dim=2).values


def leak(folder: Path, layout: LayoutSettings, batch: TokenBatch) -> list[bool]:
    """Whether a second model in the process is the same before and after the first replays."""
    from megatron.core.transformer.moe.router_replay import RouterReplay

    plain = replace(batch, experts_NTLK=None)
    reference = MegatronTrainer(folder, layout=layout)
    before = reference.score(plain, temperature=1.0)
    trainer = MegatronTrainer(folder, layout=layout)
    trainer.score(batch, temperature=1.0)
    during = []

    def score_in_between(logprobs_NT: torch.Tensor, micro: TokenBatch):
        during.append(reference.score(plain, temperature=1.0).logprobs_NT)
        return weighted(logprobs_NT, micro)

    trainer.update(batch, score_in_between, temperature=1.0, learning_rate=0.0)
    after = reference.score(plain, temperature=1.0)
    own = trainer.score(plain, temperature=1.0)
    return [
        torch.equal(before.logprobs_NT, other)
        for other in (*during, after.logprobs_NT, own.logprobs_NT)
    ] + [not RouterReplay.global_router_replay_instances]


def warnings_of_saving(folder: Path, layout: LayoutSettings, target: Path) -> list[str]:
    """Messages that Megatron logs on this rank while a trainer saves its state."""
    trainer, watched = MegatronTrainer(folder, layout=layout), BufferingHandler(capacity=1000)
    logging.getLogger("megatron.core").addHandler(watched)
    trainer.save(target)
    return [record.getMessage() for record in watched.buffer]


def learn(folder: Path, layout: LayoutSettings, batch: TokenBatch) -> list[float]:
    """Losses of ten updates."""
    trainer = MegatronTrainer(folder, layout=layout)
    return [
        trainer.update(batch, weighted, temperature=1.0, learning_rate=3e-3)["loss"]
        for _ in range(10)
    ]


@dataclass(frozen=True, slots=True)
class Buffers:
    """Bytes of gradient buffers."""

    before: int
    during: set[int]
    after: int
    after_an_error: int
    allocated: int
    """What they have if they are never freed."""


def buffers(folder: Path, layout: LayoutSettings, batch: TokenBatch) -> Buffers:
    """Look at the gradient buffers before, during and after updates."""
    trainer, seen = MegatronTrainer(folder, layout=layout), set[int]()
    replica = trainer._for_training().replica
    parts = [*replica.buffers, *replica.expert_parallel_buffers]

    def held() -> int:
        return sum(part.grad_data.untyped_storage().nbytes() for part in parts)

    def look(scale: float, logprobs_NT: torch.Tensor, rows: TokenBatch) -> Any:
        seen.add(held())
        return scale * logprobs_NT.sum(), {}

    settings = {"temperature": TEMPERATURE, "learning_rate": LEARNING_RATE}
    before = held()
    trainer.update(batch, partial(look, 1.0), **settings)
    after = held()
    try:
        trainer.update(batch, partial(look, float("nan")), **settings)
    except EngineError:
        return Buffers(
            before, seen, after, held(), sum(4 * part.grad_data.numel() for part in parts)
        )
    raise AssertionError("a loss that is not a number was accepted")
