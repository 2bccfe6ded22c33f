"""The default group carries tensors of a CPU, and every process has a GPU of its own."""

import os
import sys
from datetime import timedelta
from pathlib import Path

import pytest
import torch
from torch import distributed

from tasks.engines.process_group import (
    COLLECTIVE_LIMIT,
    NCCL_ENVIRONMENT,
    gather_json,
    join_world,
)
from tasks.errors import SettingsError
from tests.engines.trainer_megatron.gloo_world import run_world
from tests.processes import run_process


def joined() -> tuple[float, timedelta]:
    """The sum over all ranks, and the timeout of the group."""
    assert join_world() == join_world() == torch.device("cpu")
    ones = torch.ones(1)
    distributed.all_reduce(ones)
    assert distributed.group.WORLD is not None
    backend = distributed.group.WORLD._get_backend(torch.device("cpu"))
    return float(ones), backend.options._timeout


def joined_alone() -> tuple[float, timedelta]:
    """The same in a process that nobody gave a rank."""
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        del os.environ[name]
    return joined()


def test_all_ranks_share_a_group_and_its_timeout():
    assert [(2.0, COLLECTIVE_LIMIT)] * 2 == run_world(joined, 2)


def test_a_process_without_torchrun_is_a_world_of_its_own():
    assert [(1.0, COLLECTIVE_LIMIT)] == run_world(joined_alone, 1)


def gathered() -> list[object]:
    """What the ranks say, which differs in length."""
    join_world()
    rank = distributed.get_rank()
    return gather_json({"loss": 0.1 + rank, "of": ["a" * 40, float("inf")] * rank})


def test_every_rank_reads_what_all_say_exactly():
    said = [{"loss": 0.1, "of": []}, {"loss": 1.1, "of": ["a" * 40, float("inf")]}]

    assert [said, said] == run_world(gathered, 2)


def nccl_environment() -> list[str]:
    """The variables of NCCL's watchdog, of which one is set before."""
    os.environ["TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC"] = "30"
    join_world()
    return [os.environ[name] for name in NCCL_ENVIRONMENT]


def test_a_collective_of_nccl_that_hangs_ends_its_process():
    assert [["3", "30"]] == run_world(nccl_environment, 1)
    assert "600" == NCCL_ENVIRONMENT["TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC"]


def test_more_processes_than_gpus_are_refused_by_name(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setenv("LOCAL_RANK", "1")

    with pytest.raises(SettingsError, match="set EACHPROMPT_PROCESSES to at most 1"):
        join_world()


def test_on_gpus_tensors_of_a_cpu_are_carried_as_well_and_every_process_has_its_own(monkeypatch):
    opened, chosen = [], []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    monkeypatch.setattr(distributed, "is_initialized", lambda: False)
    monkeypatch.setattr(
        distributed, "init_process_group", lambda backend, **_: opened.append(backend)
    )
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("LOCAL_RANK", "1")
    for name in NCCL_ENVIRONMENT:
        monkeypatch.setenv(name, "7")

    assert torch.device("cuda", 1) == join_world()
    assert (["cpu:gloo,cuda:nccl"], [1]) == (opened, chosen)


@pytest.mark.slow
@pytest.mark.attack
def test_a_world_of_one_meets_itself_without_listening_for_others():
    script = (
        "import os; from pathlib import Path; from tasks.engines.process_group import join_world\n"
        "join_world()\n"
        "mine = {os.readlink(f'/proc/self/fd/{fd}') for fd in os.listdir('/proc/self/fd')"
        " if os.path.islink(f'/proc/self/fd/{fd}')}\n"
        "lines = [line.split() for name in ('tcp', 'tcp6')"
        " for line in Path(f'/proc/net/{name}').read_text().splitlines()[1:]]\n"
        "open_to_all = [line[1] for line in lines if line[3] == '0A'"
        " and f'socket:[{line[9]}]' in mine and set(line[1].partition(':')[0]) == {'0'}]\n"
        "assert not open_to_all, open_to_all\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "RANK"}
    run_process(
        [sys.executable, "-c", script],
        env=environment | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )
