import pytest

from data_schemas import presets
from data_schemas.rl_settings import AuxiliarySettings, LossSettings, RouterReplay
from tasks.errors import SettingsError
from tasks.settings.options import require_router


def of(folder, **rl):
    phase = {"router_replay": RouterReplay.OFF} | rl
    return presets.CPU_SMOKE.model_copy(
        update={
            "base_model": str(folder),
            "rl_one": presets.CPU_SMOKE.rl_one.model_copy(update=phase),
            "rl_two": presets.CPU_SMOKE.rl_two.model_copy(update=phase),
        }
    )


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"router_replay": RouterReplay.R3}, "router_replay is 'r3'"),
        ({"router_replay": RouterReplay.R2}, "router_replay is 'r2'"),
        ({"loss": LossSettings(auxiliary=AuxiliarySettings(balance=1e-5))}, "balance is 1e-05"),
        ({"loss": LossSettings(auxiliary=AuxiliarySettings(router_z=1e-7))}, "router_z is 1e-07"),
    ],
)
def test_settings_of_a_router_are_refused_for_a_dense_base(tiny_dense, changes, field):
    with pytest.raises(SettingsError, match=rf"^rl_one\.\S*{field}, but .* is a dense model"):
        require_router(of(tiny_dense, **changes))


def test_a_dense_base_without_them_and_any_mixture_of_experts_are_accepted(tiny_dense, tiny_moe):
    require_router(of(tiny_dense))
    require_router(of(tiny_moe, router_replay=RouterReplay.R3))
    require_router(presets.CPU_SMOKE)
