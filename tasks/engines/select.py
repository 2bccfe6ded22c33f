"""From settings to engine: the one place where a machine is chosen."""

import importlib.util
from pathlib import Path

from data_schemas.machine_settings import MachineSettings, RolloutKind, TrainerKind
from tasks.engines.protocols import RolloutEngine, Trainer
from tasks.engines.rollout_hf import HFRolloutEngine
from tasks.engines.trainer_torch import TorchTrainer
from tasks.errors import SettingsError


def require(engines: MachineSettings) -> None:
    """Refuse engines that are not installed, before anything expensive.

    Raises:
        SettingsError: names the setting and what to install.
    """
    if engines.rollout is RolloutKind.VLLM:
        _find("vllm", "rollout", engines.rollout, RolloutKind.HF)
    if engines.trainer is TrainerKind.MEGATRON:
        _find("megatron", "trainer", engines.trainer, TrainerKind.TORCH)


def open_rollout(engines: MachineSettings, folder: Path) -> RolloutEngine:
    """Open a rollout engine on a model directory.

    Raises:
        SettingsError: the engine is not part of this installation, or lacks the precision.
    """
    require(engines)
    match engines.rollout:
        case RolloutKind.HF:
            return HFRolloutEngine(folder, precision=engines.precision)
        case RolloutKind.VLLM:
            # Imported here: only this branch needs vLLM, which takes 15 seconds.
            from tasks.engines.rollout_vllm.engine import VllmRolloutEngine

            return VllmRolloutEngine(folder, precision=engines.precision, layout=engines.layout)


def open_trainer(engines: MachineSettings, folder: Path, *, weight_decay: float = 0.0) -> Trainer:
    """Open a trainer on a model directory.

    Raises:
        SettingsError: the trainer is not part of this installation.
    """
    require(engines)
    match engines.trainer:
        case TrainerKind.TORCH:
            return TorchTrainer(folder, weight_decay=weight_decay)
        case TrainerKind.MEGATRON:
            from tasks.engines.trainer_megatron.trainer import MegatronTrainer

            return MegatronTrainer(folder, layout=engines.layout, weight_decay=weight_decay)


def _find(package: str, setting: str, kind: str, instead: str) -> None:
    if importlib.util.find_spec(package) is None:
        raise SettingsError(
            f"engines.{setting} '{kind}' is not installed here: build the environment of "
            f"lock_engines.txt (make test-engines does), or use '{instead}'"
        )
