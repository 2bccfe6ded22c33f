"""Opens engines from settings; no other module chooses an engine."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path

from data_schemas.machine_settings import MachineSettings, RolloutKind, TrainerKind, TrainingEngines
from data_schemas.rl_settings import EngineSettings
from tasks.engines.driver import refuse_unusable_gpu
from tasks.engines.lora.merged_rollout import AdapterRollout
from tasks.engines.protocols import RolloutEngine, Trainer
from tasks.engines.request_queue import QueueingEngine
from tasks.engines.support import (
    refuse_lora,
    refuse_megatron,
    refuse_rollout,
    refuse_trainer,
    refuse_vllm,
    require_rollout,
    require_trainer,
)
from tasks.engines.team.controller import current
from tasks.engines.team.member import replicas
from tasks.engines.team.rollout import TeamRollout
from tasks.engines.team.trainer import TeamTrainer
from tasks.errors import SettingsError
from tasks.models.architectures import Architecture, config_in, is_known, read_architecture
from tasks.store.objects import on_every_machine


def open_rollout(
    engines: MachineSettings, folder: Path, *, record_kept: bool = False
) -> RolloutEngine:
    """Open a rollout engine on a model directory; in a team, one per replica.

    Args:
        engines: of the stage.
        folder: the model directory.
        record_kept: calls may have `Sampling.record_kept`, for which vLLM is opened otherwise.

    Raises:
        SettingsError: the engine is not installed, lacks a layer of the model, does not support the
            precision, or the layout does not fit the number of processes.
    """
    require_layers(folder, rollout=engines.rollout, trainer=None, lora_rank=_lora_rank(engines))
    require_rollout(engines)
    team = current()
    if team is None:
        return _rollout_here(engines, partial(Path, folder), record_kept=record_kept)
    here, layout = team.member.rank_info, engines.layout
    require_fit(engines, nodes=here.size // here.local_size, processes=here.local_size)
    dedicated = layout.dedicated_rollout_gpus > 0
    return TeamRollout(
        team,
        partial(_rollout_here, engines, on_every_machine(folder), record_kept=record_kept),
        replicas=replicas(
            here.size, here.local_size, tensor=layout.rollout_tensor, dedicated=dedicated
        ),
        dedicated=dedicated,
        precision=engines.precision,
    )


@contextmanager
def opened_rollouts(
    engines: MachineSettings, folders: Sequence[Path]
) -> Iterator[list[RolloutEngine]]:
    """Open a rollout engine on each of several models, and close them after the block.

    Raises:
        SettingsError: as of `open_rollout`.
    """
    shared = sharing_memory(engines, len(folders))
    with ExitStack() as stack:
        yield [stack.enter_context(closing(open_rollout(shared, one))) for one in folders]


def sharing_memory(engines: MachineSettings, count: int) -> MachineSettings:
    """Divide `layout.rollout_memory` by the number of engines that are open in one process."""
    if engines.rollout is not RolloutKind.VLLM or engines.layout.dedicated_rollout_gpus:
        return engines
    layout = engines.layout
    part = layout.model_copy(update={"rollout_memory": layout.rollout_memory / count})
    return engines.model_copy(update={"layout": part})


def open_trainer(engines: MachineSettings, folder: Path, *, weight_decay: float = 0.0) -> Trainer:
    """Open a trainer on a model directory; in a team, Megatron's spans all ranks.

    Raises:
        SettingsError: the trainer is not installed, lacks a layer of the model, or the layout does
            not fit the number of processes.
    """
    require_layers(folder, rollout=None, trainer=engines.trainer, lora_rank=_lora_rank(engines))
    require_trainer(engines)
    team = current()
    make = partial(_trainer_here, engines, on_every_machine(folder), weight_decay)
    if team is None or engines.trainer is TrainerKind.TORCH:
        # The embedded trainer is one process: the controller trains, all ranks roll out.
        return make()
    here = team.member.rank_info
    require_fit(engines, nodes=here.size // here.local_size, processes=here.local_size)
    return TeamTrainer(team, make)


def require_layers(
    folder: Path,
    *,
    rollout: RolloutKind | None,
    trainer: TrainerKind | None,
    lora_rank: int = 0,
) -> None:
    """Refuse a model with layers that an engine does not have, before anything expensive.

    Args:
        folder: of the model; one without a config.json is refused as it is opened.
        rollout: engine that will open it; None = none will.
        trainer: the same.
        lora_rank: of the adapters; 0 = all weights are trained.

    Raises:
        SettingsError: names the setting and the engine that has the layer.
    """
    if not is_known(config_in(folder)):
        return  # the embedded engines refuse it as they open it; vLLM may screen with it
    architecture = read_architecture(folder)
    try:
        refuse_layers(architecture, rollout=rollout, trainer=trainer, lora_rank=lora_rank)
    except SettingsError as error:
        raise SettingsError(f"{folder}: {error}") from error


def refuse_layers(
    architecture: Architecture,
    *,
    rollout: RolloutKind | None,
    trainer: TrainerKind | None,
    lora_rank: int = 0,
) -> None:
    """Do the same as `require_layers` for a config that was read."""
    if rollout is not None:
        (refuse_vllm if rollout is RolloutKind.VLLM else refuse_rollout)(architecture)
    if trainer is not None:
        (refuse_megatron if trainer is TrainerKind.MEGATRON else refuse_trainer)(architecture)
    refuse_lora(architecture, lora_rank)


def require_fit(engines: MachineSettings, *, nodes: int, processes: int) -> None:
    """Refuse a layout that these processes cannot form, before anything expensive.

    Args:
        engines: of a stage.
        nodes: machines of the stage.
        processes: per machine.

    Raises:
        SettingsError: names the setting and the values that would fit.
    """
    layout, ranks = engines.layout, nodes * processes
    shares = {
        "tensor * pipeline * context": layout.tensor * layout.pipeline * layout.context,
        "expert * pipeline": layout.expert * layout.pipeline,
    }
    for name, share in shares.items():
        if ranks % share:
            raise SettingsError(
                f"engines.layout: {name} is {share}, which does not divide the {ranks} processes "
                f"({processes} on each of {nodes} nodes); start a multiple of {share} "
                "(EACHPROMPT_PROCESSES, EACHPROMPT_NODES) or make the layout smaller"
            )
    in_turn = engines.trainer is TrainerKind.MEGATRON and not layout.dedicated_rollout_gpus
    if ranks > 1 and in_turn and isinstance(engines, EngineSettings) and engines.steps_ahead:
        raise SettingsError(
            f"engines.staleness is {engines.staleness}: rollouts and updates would run at once in "
            "the same processes; set layout.dedicated_rollout_gpus, or staleness 0"
        )
    if not layout.dedicated_rollout_gpus and processes % layout.rollout_tensor:
        raise SettingsError(
            f"engines.layout.rollout_tensor {layout.rollout_tensor} does not divide the "
            f"{processes} processes of a node (EACHPROMPT_PROCESSES); a rollout engine stays "
            "inside a node"
        )


def _rollout_here(
    engines: MachineSettings, find_model: Callable[[], Path], *, record_kept: bool
) -> QueueingEngine:
    """Open this process's engine, or its part of one."""
    refuse_unusable_gpu()
    folder = find_model()
    engine = _plain_rollout(engines, folder, record_kept=record_kept)
    rank = _lora_rank(engines)
    return AdapterRollout(engine, folder, rank) if rank else engine


def _plain_rollout(engines: MachineSettings, folder: Path, *, record_kept: bool) -> QueueingEngine:
    match engines.rollout:
        case RolloutKind.HF:
            # Imported here: whoever opens no engine does not wait for transformers' model code.
            from tasks.engines.embedded.rollout import HFRolloutEngine

            return HFRolloutEngine(
                folder, precision=engines.precision, fp32_router=engines.fp32_router
            )
        case RolloutKind.VLLM:
            # Imported here: only this branch needs vLLM, which takes 15 seconds.
            from tasks.engines.rollout_vllm.engine import VllmRolloutEngine

            return VllmRolloutEngine(
                folder,
                precision=engines.precision,
                layout=engines.layout,
                fp32_router=engines.fp32_router,
                fp8_ignored_layers=engines.fp8_ignored_layers,
                sleeps=isinstance(engines, TrainingEngines),
                record_kept=record_kept,
            )


def _trainer_here(
    engines: MachineSettings, find_model: Callable[[], Path], weight_decay: float
) -> Trainer:
    """Open this process's trainer, or its part of one."""
    refuse_unusable_gpu()
    folder = find_model()
    match engines.trainer:
        case TrainerKind.TORCH:
            from tasks.engines.embedded.trainer import TorchTrainer

            return TorchTrainer(
                folder,
                weight_decay=weight_decay,
                micro_batch_tokens=engines.layout.micro_batch_tokens,
                lora_rank=_lora_rank(engines),
            )
        case TrainerKind.MEGATRON:
            from tasks.engines.trainer_megatron.silent_warnings import silence

            silence()  # on import it warns about everything a CPU lacks
            from tasks.engines.trainer_megatron.trainer import MegatronTrainer

            return MegatronTrainer(
                folder,
                layout=engines.layout,
                weight_decay=weight_decay,
                fp32_router=engines.fp32_router,
            )


def _lora_rank(engines: MachineSettings) -> int:
    """Rank of the adapters; 0 in a stage that trains all weights, or none."""
    return engines.lora.rank if isinstance(engines, TrainingEngines) else 0
