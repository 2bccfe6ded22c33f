# pyright: reportMissingImports=false
"""A trainer's state as a Megatron distributed checkpoint, which any layout can load.

    trainer.json              architecture and precision of the state
    trainer_state/            weights and optimizer state, written by all ranks in parallel

Weights and optimizer state are stored by parameter, not by rank, so that another number of
pipeline, tensor, expert or data-parallel ranks reads its own shares.

Megatron's writer forks processes, which wait forever if one of them fails, and spawns one that
imports the caller's main module again. Here torch's own writer writes the same format in this
process.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from megatron.core import dist_checkpointing
from megatron.core.dist_checkpointing import LocalNonpersistentObject
from megatron.core.dist_checkpointing.strategies.fully_parallel import (
    FullyParallelLoadStrategyWrapper,
)
from megatron.core.dist_checkpointing.strategies.torch import (
    MCoreSavePlanner,
    TorchDistLoadShardedStrategy,
    TorchDistSaveShardedStrategy,
    _replace_state_dict_keys_with_sharded_keys,
    mcore_to_pyt_state_dict,
)
from megatron.core.models.gpt import GPTModel
from megatron.core.optimizer import ChainedOptimizer, MegatronOptimizer
from megatron.core.optimizer.distrib_optimizer import DistributedOptimizer
from torch import distributed
from torch.distributed.checkpoint.filesystem import FileSystemWriter
from torch.distributed.checkpoint.state_dict_saver import save as write_shares

from data_schemas.machine_settings import LayoutSettings
from tasks.engines.trainer_megatron.geometry import Geometry
from tasks.engines.trainer_megatron.parallel import Ranks
from tasks.engines.trainer_megatron.wide_routers import are_wide
from tasks.errors import DataError, EngineError

DESCRIPTION = "trainer.json"
STATE = "trainer_state"


@dataclass(frozen=True, slots=True)
class TrainerState:
    """The objects that are saved or restored in place, and their description."""

    gpt: GPTModel
    optimizer: MegatronOptimizer
    geometry: Geometry
    layout: LayoutSettings
    ranks: Ranks


def save(folder: Path, state: TrainerState) -> None:
    """Write the state; a collective call with the same folder on all ranks.

    Raises:
        EngineError: the folder is not shared by all machines.
    """
    target = folder / STATE
    if state.ranks.rank == 0:
        target.mkdir(parents=True)
        (folder / DESCRIPTION).write_text(json.dumps(_description(state), sort_keys=True))
    # The folder is there before another rank looks for it.
    distributed.barrier()
    _check_shared(target)
    for one in _optimizers(state.optimizer):
        _prime(one)
    dist_checkpointing.save(
        _sharded(state, loading=False), str(target), sharded_strategy=_Writer("torch_dist", 1)
    )


def restore(folder: Path, state: TrainerState) -> None:
    """Restore a saved state; a collective call.

    Raises:
        DataError: it is missing, or of another architecture or precision.
    """
    _check_fits(folder, state)
    for one in _optimizers(state.optimizer):
        _prime(one)
    # What data-parallel ranks have in common one of them reads, and sends to the others.
    once = FullyParallelLoadStrategyWrapper(
        TorchDistLoadShardedStrategy(), state.ranks.data_context_group
    )
    loaded = dist_checkpointing.load(_sharded(state, loading=True), str(folder / STATE), once)
    assert isinstance(loaded, dict)
    state.gpt.load_state_dict(loaded["model"], strict=False)
    for number, one in enumerate(_optimizers(state.optimizer)):
        _take_up(one, loaded["optimizer"][number])


class _Writer(TorchDistSaveShardedStrategy):
    """Writes the shares of this rank in this process, and makes them durable."""

    def save(self, sharded_state_dict: dict[str, Any], checkpoint_dir: str | Path) -> None:
        """Write every tensor from the one rank that Megatron considers its owner."""
        keyed, _, _ = _replace_state_dict_keys_with_sharded_keys(sharded_state_dict, True)
        write_shares(
            mcore_to_pyt_state_dict(keyed, False),
            storage_writer=FileSystemWriter(checkpoint_dir),
            planner=MCoreSavePlanner(dedup_replicated_tensors=False, flatten_state_dict=False),
        )


def _sharded(state: TrainerState, *, loading: bool) -> dict[str, Any]:
    """Name every tensor and this rank's share of it."""
    weights = state.gpt.sharded_state_dict()
    metadata = {
        "distrib_optim_sharding_type": "fully_reshardable",
        # Gathered on the CPU of one data-parallel rank, not on all their GPUs.
        "distrib_optim_fully_reshardable_mem_efficient": True,
    }
    optimizers: dict[int, dict[str, Any]] = {}
    # Not the chained optimizer's own sharded_state_dict: its names contain optimizer indices.
    for number, one in enumerate(_optimizers(state.optimizer)):
        shards: dict[str, Any] = one.sharded_state_dict(
            weights, is_loading=loading, metadata=metadata
        )
        # None where another rank writes; Megatron warns of a common entry that rank 0 has not.
        shards["param_state"] = shards["param_state"] or LocalNonpersistentObject({})
        optimizers[number] = shards
    return {"model": weights, "optimizer": optimizers}


def _optimizers(optimizer: MegatronOptimizer) -> list[DistributedOptimizer]:
    """The optimizers of dense and of expert parameters; one alone in a dense model."""
    assert isinstance(optimizer, ChainedOptimizer)
    chain = optimizer.chained_optimizers
    return [one for one in chain if isinstance(one, DistributedOptimizer)]


def _prime(optimizer: DistributedOptimizer) -> None:
    """Create the state that AdamW creates in its first step, if there was none yet."""
    inner = optimizer.optimizer
    for group in inner.param_groups:
        for parameter in group["params"]:
            state = inner.state[parameter]
            if state:
                continue
            if isinstance(inner, torch.optim.AdamW):  # Transformer Engine's has it per group
                state["step"] = torch.tensor(0.0)
            state["exp_avg"] = torch.zeros_like(parameter.data)
            state["exp_avg_sq"] = torch.zeros_like(parameter.data)


def _take_up(optimizer: DistributedOptimizer, loaded: dict[str, Any]) -> None:
    """Install loaded optimizer state.

    Megatron 0.16.1 with torch's AdamW gives all parameters the same `step` tensor, which every
    parameter would advance; and it fails on `step` when it copies the other tensors.
    """
    tensors = loaded.pop("param_state")
    loaded.pop("param_state_sharding_type")
    optimizer.load_state_dict(loaded)
    states = [state for state in optimizer.optimizer.state.values() if "step" in state]
    steps = [state.pop("step").clone() for state in states]
    optimizer.load_parameter_state_from_fully_reshardable(tensors)
    for state, step in zip(states, steps, strict=True):
        state["step"] = step


def _description(state: TrainerState) -> dict[str, Any]:
    """The properties two trainers must share for one to load the other's state."""
    geometry = asdict(state.geometry)
    del geometry["dtype"], geometry["positions"]  # of the files it was read from
    routers = ", routers in fp32" if are_wide(state.gpt) else ""
    described = {"geometry": geometry, "precision": state.layout.precision.value + routers}
    # As a file has it, in which a tuple is a list: what was written equals what is expected.
    return json.loads(json.dumps(described, sort_keys=True))


def _check_fits(folder: Path, state: TrainerState) -> None:
    path, expected = folder / DESCRIPTION, _description(state)
    try:
        recorded = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise DataError(f"{folder} holds no state of engines.trainer 'megatron'") from error
    if recorded.get("geometry") != expected["geometry"]:
        raise DataError(
            f"{folder} holds the state of another architecture: {recorded.get('geometry')}"
        )
    if recorded.get("precision") != expected["precision"]:
        raise DataError(
            f"{folder} holds a state in {recorded.get('precision')}, but the trainer is in "
            f"{expected['precision']} (layout.precision, fp32_router); set it back, or start from "
            "the exported model"
        )


def _check_shared(target: Path) -> None:
    """Refuse a folder that not all ranks see.

    Raises:
        EngineError: on all ranks alike.
    """
    exists = torch.tensor([float(target.is_dir())])
    distributed.all_reduce(exists, distributed.ReduceOp.MIN)
    if not exists.item():
        raise EngineError(f"{target} is not on a disk that all ranks share")
