"""A stage opens its engines in its image, which holds no others."""

import importlib.util

import pytest

from data_schemas import presets
from data_schemas.machine_settings import LayoutSettings, MachineSettings, RolloutKind
from data_schemas.settings import PipelineSettings, RetrainSettings
from tasks.engines import select
from tasks.errors import SettingsError
from tasks.platform.resources import STAGES
from tasks.platform.source import lock_files

OPENS = {
    "sft": ("sft", "general_sft"),
    "grade": ("grading",),
    "rl": ("rl_one", "rl_two", "rl"),
    "evaluate": ("evaluation",),
}
"""Stage -> groups of the settings that it may open its engines by."""
ENGINES = {
    f"{name}: {stage} with {group}": (stage, getattr(preset, group).engines)
    for name, preset in vars(presets).items()
    if isinstance(preset, PipelineSettings | RetrainSettings)
    and preset.evaluation.engines.rollout is RolloutKind.VLLM
    for stage, groups in OPENS.items()
    for group in groups
    if group in type(preset).model_fields
}
"""Engines of every preset for a cluster."""

OPENERS = {
    "rollout": (select.open_rollout, "vllm"),
    "trainer": (select.open_trainer, "megatron"),
}
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("vllm") is not None, reason="an environment without the engines"
)


def in_image(monkeypatch: pytest.MonkeyPatch, image: str) -> None:
    """Let this process find the engines that the lock of an image pins."""
    lock = lock_files()[f"lock_{image}.txt"].read_text()
    names = {"vllm": "vllm==", "megatron": "megatron-core=="}
    here = {name for name, pin in names.items() if pin in lock}
    find_spec = importlib.util.find_spec

    def find(name: str, package: str | None = None) -> object:
        # Anything else as it is here: transformers asks for torch while it is imported.
        if name in names:
            return object() if name in here else None
        return find_spec(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", find)


@pytest.mark.parametrize("name", ENGINES)
def test_every_stage_of_a_cluster_preset_opens_its_engines_in_its_image(
    monkeypatch, tmp_path, name
):
    stage, engines = ENGINES[name]
    in_image(monkeypatch, STAGES[stage].image)

    for part in ("rollout",) if stage in {"grade", "evaluate"} else ("rollout", "trainer"):
        open_engine, package = OPENERS[part]
        with pytest.raises(ModuleNotFoundError) as reached:  # its import: nothing refused before
            open_engine(engines, tmp_path)
        assert package == reached.value.name.partition(".")[0]


def test_an_engine_that_the_image_lacks_is_refused_by_name(monkeypatch, tmp_path):
    engines = presets.FULL_SCALE.rl_one.engines
    in_image(monkeypatch, "rollout")
    with pytest.raises(SettingsError, match=r"engines.trainer 'megatron' is not installed here"):
        select.open_trainer(engines, tmp_path)
    in_image(monkeypatch, "cpu")
    with pytest.raises(SettingsError, match=r"engines.rollout 'vllm' is not installed here"):
        select.open_rollout(engines, tmp_path)


def test_engines_that_are_open_at_once_share_their_part_of_a_gpu():
    layout = LayoutSettings(rollout_memory=0.6)
    here = MachineSettings(rollout=RolloutKind.VLLM, layout=layout)
    own = here.model_copy(
        update={"layout": layout.model_copy(update={"dedicated_rollout_gpus": 1})}
    )

    assert 0.3 == select.sharing_memory(here, 2).layout.rollout_memory
    assert own == select.sharing_memory(own, 2)
    assert MachineSettings() == select.sharing_memory(MachineSettings(), 2)


def test_every_model_gets_an_engine_of_its_own_until_the_block_ends(tiny_moe):
    with select.opened_rollouts(MachineSettings(), (tiny_moe, tiny_moe)) as engines:
        first, second = engines
        assert first is not second
        assert 0 == first.policy_version
