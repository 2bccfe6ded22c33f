"""What vLLM and its processes find in the environment."""

import os

import pytest

from tasks.engines.rollout_vllm.environment import (
    LAUNCHER,
    apart_environment,
    changed_environment,
    prepare_environment,
)


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


@pytest.mark.usefixtures("own_environment")
def test_a_child_is_no_part_of_the_launch_and_sees_its_gpus_only():
    os.environ |= {"RANK": "3", "WORLD_SIZE": "8", "CUDA_VISIBLE_DEVICES": "0,1,2,3"}
    before = dict(os.environ)

    with changed_environment(apart_environment(["2", "3"])):
        assert not set(LAUNCHER) & os.environ.keys()
        assert "2,3" == os.environ["CUDA_VISIBLE_DEVICES"]

    assert before == dict(os.environ)
    assert "CUDA_VISIBLE_DEVICES" not in apart_environment([])
