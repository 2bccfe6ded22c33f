"""From settings to engine: the one place where a machine is chosen."""

from pathlib import Path

from data_schemas.rl_settings import EngineSettings, Precision, RolloutKind, TrainerKind
from tasks.engines.protocols import RolloutEngine, Trainer
from tasks.engines.rollout_hf import HFRolloutEngine
from tasks.engines.trainer_torch import TorchTrainer
from tasks.errors import SettingsError


def require(engines: EngineSettings) -> None:
    """Refuse engines that are not there, before anything expensive.

    Raises:
        SettingsError: names the setting.
    """
    if engines.rollout is not RolloutKind.HF:
        raise _missing("rollout", engines.rollout, RolloutKind.HF)
    if engines.trainer is not TrainerKind.TORCH:
        raise _missing("trainer", engines.trainer, TrainerKind.TORCH)


def open_rollout(
    kind: RolloutKind, folder: Path, precision: Precision = Precision.FP32
) -> RolloutEngine:
    """Open a rollout engine on a model directory.

    Raises:
        SettingsError: the engine is not part of this installation, or lacks the precision.
    """
    match kind:
        case RolloutKind.HF:
            return HFRolloutEngine(folder, precision=precision)
        case RolloutKind.VLLM:
            raise _missing("rollout", kind, RolloutKind.HF)


def open_trainer(kind: TrainerKind, folder: Path, *, weight_decay: float = 0.0) -> Trainer:
    """Open a trainer on a model directory.

    Raises:
        SettingsError: the trainer is not part of this installation.
    """
    match kind:
        case TrainerKind.TORCH:
            return TorchTrainer(folder, weight_decay=weight_decay)
        case TrainerKind.MEGATRON:
            raise _missing("trainer", kind, TrainerKind.TORCH)


def _missing(setting: str, kind: str, instead: str) -> SettingsError:
    return SettingsError(
        f"engines.{setting} '{kind}' has no adapter in this installation; use '{instead}'"
    )
