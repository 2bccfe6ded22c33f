import os

import pytest

from tasks.cores import LIMIT, memory_left, num_cores
from tasks.errors import SettingsError


@pytest.fixture(autouse=True)
def eight_cores(monkeypatch):
    monkeypatch.delenv(LIMIT, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)


def group(root, lines):
    """Write the control groups of this process."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(lines)


def limit(root, folder, name, text):
    """Write a limit of a control group."""
    file = root / "sys/fs/cgroup" / folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_without_a_quota_all_cores_of_the_affinity_count(tmp_path):
    assert 8 == num_cores(tmp_path)


@pytest.mark.parametrize(
    ("quota", "cores"), [("max 100000", 8), ("250000 100000", 2), ("50000 100000", 1)]
)
def test_a_containers_quota_counts_in_whole_cores(tmp_path, quota, cores):
    group(tmp_path, "0::/\n")
    limit(tmp_path, ".", "cpu.max", quota + "\n")

    assert cores == num_cores(tmp_path)


def test_the_smallest_quota_on_the_way_to_the_root_counts(tmp_path):
    group(tmp_path, "0::/pods/one\n")
    limit(tmp_path, "pods", "cpu.max", "300000 100000\n")
    limit(tmp_path, "pods/one", "cpu.max", "max 100000\n")

    assert 3 == num_cores(tmp_path)


def test_version_one_is_read_where_the_container_sees_it(tmp_path):
    group(tmp_path, "4:cpu,cpuacct:/docker/ab\n3:memory:/docker/ab\n0::/docker/ab\n")
    limit(tmp_path, "cpu", "cpu.cfs_quota_us", "400000\n")
    limit(tmp_path, "cpu", "cpu.cfs_period_us", "100000\n")
    limit(tmp_path, "memory", "memory.limit_in_bytes", "1000\n")
    limit(tmp_path, "memory", "memory.usage_in_bytes", "400\n")

    assert 4 == num_cores(tmp_path)
    assert [600] == list(memory_left(tmp_path))


def test_the_variable_limits_and_adds_no_core(tmp_path, monkeypatch):
    for text, cores in (("3", 3), ("64", 8), ("1", 1)):
        monkeypatch.setenv(LIMIT, text)
        assert cores == num_cores(tmp_path)


@pytest.mark.parametrize("text", ["0", "-2", "two", "1.5"])
def test_a_limit_that_is_no_count_is_refused_by_name(tmp_path, monkeypatch, text):
    monkeypatch.setenv(LIMIT, text)

    with pytest.raises(SettingsError, match=f"{LIMIT} is '{text}'"):
        num_cores(tmp_path)
