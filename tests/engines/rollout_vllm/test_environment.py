"""What vLLM and its processes find in the environment."""

import os

import pytest
import torch

from tasks.engines.rollout_vllm.environment import (
    LAUNCHER,
    changed_environment,
    group_with,
    last_devices,
    opening,
    prepare_environment,
    separate_environment,
)
from tasks.errors import SettingsError


@pytest.fixture
def own_environment():
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.mark.usefixtures("own_environment")
def test_what_is_set_already_is_left_alone():
    os.environ["VLLM_LOGGING_LEVEL"] = "DEBUG"
    os.environ.pop("VLLM_NO_USAGE_STATS", None)

    prepare_environment()

    assert "DEBUG" == os.environ["VLLM_LOGGING_LEVEL"]
    assert "1" == os.environ["VLLM_NO_USAGE_STATS"]


@pytest.mark.engines
@pytest.mark.usefixtures("own_environment")
def test_the_model_runner_is_the_one_that_the_tests_run(tiny_moe):
    pytest.importorskip("vllm")
    os.environ.pop("VLLM_USE_V2_MODEL_RUNNER", None)
    prepare_environment()
    from vllm import EngineArgs, envs

    assert envs.VLLM_USE_V2_MODEL_RUNNER is False  # None leaves the choice to vLLM
    config = EngineArgs(model=str(tiny_moe)).create_engine_config()
    assert config.use_v2_model_runner is False


@pytest.mark.engines
@pytest.mark.usefixtures("own_environment")
def test_an_engine_that_records_sets_alone_has_the_second_model_runner():
    """Whatever vLLM kept of the environment of an engine before it."""
    pytest.importorskip("vllm")
    prepare_environment()
    from vllm import envs

    found = []
    for options in ({}, {"return_sampling_mask": True}, {}):
        with opening(options, {"CUDA_VISIBLE_DEVICES": "7"}):
            found.append(envs.VLLM_USE_V2_MODEL_RUNNER)
            assert "7" == os.environ["CUDA_VISIBLE_DEVICES"]
            envs.enable_envs_cache()  # as an engine does at the end of its start
    envs.disable_envs_cache()

    assert [False, True, False] == found
    assert "0" == os.environ["VLLM_USE_V2_MODEL_RUNNER"]


@pytest.mark.usefixtures("own_environment")
def test_a_child_is_no_part_of_the_launch_and_sees_its_gpus_only():
    os.environ |= {"RANK": "3", "WORLD_SIZE": "8", "CUDA_VISIBLE_DEVICES": "0,1,2,3"}
    before = dict(os.environ)

    with changed_environment(separate_environment(["2", "3"])):
        assert not set(LAUNCHER) & os.environ.keys()
        assert "2,3" == os.environ["CUDA_VISIBLE_DEVICES"]

    assert before == dict(os.environ)
    assert "CUDA_VISIBLE_DEVICES" not in separate_environment([])


@pytest.mark.usefixtures("own_environment")
def test_a_dedicated_engine_has_the_last_gpus_and_receives_weights_by_nccl(monkeypatch):
    os.environ["CUDA_VISIBLE_DEVICES"] = "4,5,6,7"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)

    assert ["6", "7"] == last_devices(2)
    assert "nccl" == group_with(["6", "7"])
    assert not group_with(["5", "6"]), "this process computes on 5"
    with pytest.raises(
        SettingsError, match="dedicated_rollout_gpus is 5, but this process sees 4 GPUs"
    ):
        last_devices(5)


def test_without_gpus_weights_go_in_files():
    assert not group_with([])
