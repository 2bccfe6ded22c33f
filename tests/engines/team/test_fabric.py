"""Several nodes whose fabric NCCL does not use are refused as the stage starts."""

import os
from pathlib import Path

import pytest
import torch
from torch import distributed as dist

from tasks.engines.process_group import join_world
from tasks.engines.team import fabric
from tasks.engines.team.fabric import least_bandwidth, refuse_slow_fabric
from tasks.engines.team.member import join_team
from tasks.errors import SettingsError
from tests.engines.trainer_megatron.gloo_world import run_world


def started(least_gb_s: list[float]) -> list[str]:
    """What a rank says of a fabric of too high a rate, and of one that is fast enough."""
    device = join_world()
    fabric.MEASURED_BYTES = 2**20
    messages = []
    for least in least_gb_s:
        try:
            refuse_slow_fabric(device, least)
        except SettingsError as error:
            messages.append(str(error))
    return messages


def test_all_ranks_refuse_a_fabric_that_is_not_used_and_say_what_to_set():
    one, other = run_world(started, 2, [5000.0, 1e-6, 0.0])

    assert one == other
    (message,) = one
    assert "5e+03 GB/s or more" in message
    for name in ("NET/Socket", "NCCL_IB_HCA", "FI_PROVIDER=efa", "NCCL_NET=Socket"):
        assert name in message
    assert "\n" not in message


def joined(devices: Path) -> str:
    """Join a team of nodes of one GPU each, which is the CPU; why this rank refuses to."""
    zeros, new_group = torch.zeros, dist.new_group
    torch.cuda.is_available, torch.cuda.device_count = lambda: True, lambda: 1
    torch.cuda.set_device = lambda _: None
    torch.zeros = lambda *shape, device=None, **others: zeros(*shape, **others)
    dist.new_group = lambda **others: new_group(**others | {"backend": "gloo"})
    os.environ |= {"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
    fabric.DEVICES, fabric.MEASURED_BYTES = devices, 2**20
    dist.init_process_group("gloo")
    try:
        with join_team():
            return ""
    except SettingsError as error:
        return str(error)


def test_who_joins_a_team_over_a_fabric_that_is_not_used_is_refused(tmp_path, monkeypatch):
    add_port(tmp_path, "efa_0", "1000000 Gb/sec (4X EDR)", "4: ACTIVE")
    monkeypatch.delenv("NCCL_NET", raising=False)
    monkeypatch.delenv("NCCL_IB_DISABLE", raising=False)

    one, other = run_world(joined, 2, tmp_path)

    assert one == other
    assert "their InfiniBand or EFA devices give 3.12e+04 GB/s or more" in one


def add_port(devices: Path, name: str, rate: str, state: str) -> None:
    port = devices / name / "ports" / "1"
    port.mkdir(parents=True)
    (port / "rate").write_text(f"{rate}\n")
    (port / "state").write_text(f"{state}\n")


@pytest.fixture
def node(tmp_path, monkeypatch):
    """A node with four ports of 100 Gb/s, one of them down, and one of 25 Gb/s."""
    for name, rate, state in [
        ("efa_0", "100 Gb/sec (4X EDR)", "4: ACTIVE"),
        ("efa_1", "100 Gb/sec (4X EDR)", "4: ACTIVE"),
        ("efa_2", "100 Gb/sec (4X EDR)", "1: DOWN"),
        ("efa_3", "100 Gb/sec (4X EDR)", "4: ACTIVE"),
        ("mlx5_bond_0", "25 Gb/sec (1X EDR)", "4: ACTIVE"),
    ]:
        add_port(tmp_path, name, rate, state)
    monkeypatch.setattr(fabric, "DEVICES", tmp_path)
    monkeypatch.delenv("NCCL_NET", raising=False)
    monkeypatch.delenv("NCCL_IB_DISABLE", raising=False)


GPU = torch.device("cuda", 0)


@pytest.mark.usefixtures("node")
def test_a_quarter_of_one_port_per_gpu_is_asked_for():
    assert 0.25 * 100 / 8 == least_bandwidth(GPU, ranks=2, local_ranks=1)
    assert 0.25 * 200 / 8 == least_bandwidth(GPU, ranks=4, local_ranks=2)
    assert 0.25 * 325 / 8 == least_bandwidth(GPU, ranks=16, local_ranks=8)


@pytest.mark.usefixtures("node")
def test_nothing_is_measured_on_one_node_or_without_gpus():
    assert 0.0 == least_bandwidth(GPU, ranks=8, local_ranks=8)
    assert 0.0 == least_bandwidth(torch.device("cpu"), ranks=16, local_ranks=8)


@pytest.mark.usefixtures("node")
@pytest.mark.parametrize(("name", "value"), [("NCCL_NET", "Socket"), ("NCCL_IB_DISABLE", "1")])
def test_who_asks_for_tcp_gets_it(name, value, monkeypatch):
    monkeypatch.setenv(name, value)

    assert 0.0 == least_bandwidth(GPU, ranks=16, local_ranks=8)


def test_a_node_without_such_devices_is_not_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(fabric, "DEVICES", tmp_path / "none")

    assert 0.0 == least_bandwidth(GPU, ranks=16, local_ranks=8)
