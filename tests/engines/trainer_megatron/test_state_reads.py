"""How often the ranks of a restart read a state to load it, after it was read once to check it."""

import pickle

import pytest

pytest.importorskip("megatron.core.models.gpt.gpt_layer_specs")

from data_schemas.machine_settings import LayoutSettings
from tests.engines.trainer_megatron.gloo_world import run_world
from tests.engines.trainer_megatron.reads_of_world import saved_and_loaded
from tests.engines.trainer_megatron.small_models import configs, write_model

pytestmark = pytest.mark.engines

PIECE_BYTES = 2**16
"""More than what torch reads of the archive around a tensor, buffers of Python included."""


@pytest.fixture(scope="module")
def model(tiny_moe, tmp_path_factory):
    """Large enough that its tensors outweigh what is read around them."""
    config = configs()["moe"]
    config.hidden_size, config.moe_intermediate_size = 128, 256
    return write_model(config, tiny_moe, tmp_path_factory.mktemp("model"))


@pytest.mark.parametrize(
    ("layout", "times"),
    [
        pytest.param(LayoutSettings(), 1, id="data 2"),
        pytest.param(LayoutSettings(tensor=2, expert=2), 1, id="tensor 2, expert 2"),
        pytest.param(LayoutSettings(tensor=2), 2, id="tensor 2, whose ranks have all experts"),
    ],
)
def test_ranks_that_have_the_same_read_it_once_unless_tensor_ranks_have_the_same_experts(
    model, tmp_path, layout, times
):
    reads = run_world(saved_and_loaded, 2, model, tmp_path, layout, timeout_s=300)

    size = sum(path.stat().st_size for path in tmp_path.rglob("*.distcp"))
    pieces = len(pickle.loads((tmp_path / "trainer_state/.metadata").read_bytes()).storage_data)
    low = 1 + 0.9 * (times - 1)
    assert low * size <= sum(reads) <= times * (size + PIECE_BYTES * pieces)
