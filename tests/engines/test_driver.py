"""A GPU without a usable CUDA stops a stage in one line."""

import pytest

from data_schemas.machine_settings import MachineSettings
from tasks.curation.harm.text_classifier import TextClassifier
from tasks.curation.meaning.folder_encoder import FolderEncoder
from tasks.engines import driver
from tasks.engines.embedded.hf_model import load_on_device
from tasks.engines.select import open_rollout, open_trainer
from tasks.errors import SettingsError

VERSION = """NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 2023
GCC version:  gcc version 12.3.0 (Ubuntu 12.3.0-1ubuntu1~22.04)
"""


@pytest.fixture
def old_driver(tmp_path, monkeypatch):
    """A machine with a GPU whose driver is older than torch's CUDA."""
    (tmp_path / "version").write_text(VERSION)
    monkeypatch.setattr(driver, "DRIVER", tmp_path / "version")
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.mark.usefixtures("old_driver")
@pytest.mark.parametrize("opened", [open_rollout, open_trainer])
def test_an_engine_on_a_gpu_that_cannot_be_used_is_refused_with_the_driver(opened, tiny_moe):
    with pytest.raises(SettingsError, match=r"driver 535\.104\.05, which torch .* CUDA 13"):
        opened(MachineSettings(), tiny_moe)


@pytest.mark.usefixtures("old_driver")
@pytest.mark.parametrize("loaded", [load_on_device, FolderEncoder, TextClassifier])
def test_no_model_is_loaded_for_the_cpu_beside_a_gpu_that_cannot_be_used(loaded, tiny_moe):
    with pytest.raises(SettingsError, match=r"driver 535\.104\.05, which torch .* CUDA 13"):
        loaded(tiny_moe)


@pytest.mark.usefixtures("old_driver")
@pytest.mark.parametrize("hidden", ["", "-1"])
def test_who_hides_the_gpu_computes_on_the_cpu(hidden, tiny_moe, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)

    open_rollout(MachineSettings(), tiny_moe).close()
