"""The layers and the optimizer of a GPU train like those of a CPU, as far as plain torch can show.

Megatron looks for Transformer Engine once in a process, so the tests of the trainer run in another
one, with a stand-in: the layer specification, names of parameters, grouped experts, conversion,
FusedAdam's state and sharded states are those of a GPU, the kernels are not.
"""

import sys
from pathlib import Path

import pytest

from tests.processes import run_process

pytest.importorskip("megatron.core.models.gpt.gpt_layer_specs")

pytestmark = pytest.mark.engines

HERE = Path(__file__).parent
TRAINER = "test_trainer.py::test_scores_gradients_and_updates_equal_the_embedded_trainers"
STATES = "test_checkpoint.py::test_another_layout_takes_up_weights_and_optimizer"
CASES = (
    f"{TRAINER}[tensor2_expert2]",
    f"{STATES}[one-expert2]",
    "test_te_stand_in.py::test_layers_are_transformer_engines",
    "test_plain_loop.py::test_on_a_gpu_the_loop_differs_from_the_trainer_in_the_named_settings_alone",
)


@pytest.mark.skipif("transformer_engine" in sys.modules, reason="this is the other process")
@pytest.mark.timeout(600)
def test_the_trainers_tests_hold_for_the_layers_of_a_gpu():
    plugin = f"{__package__}.te_installed"
    done = run_process(
        [
            *(sys.executable, "-m", "pytest", "-m", "engines", "-p", "no:cacheprovider"),
            *("-p", plugin, *(str(HERE / case) for case in CASES)),
        ],
        variables={"PYTHONPATH": str(HERE.parents[2])},
    )
    assert f"{len(CASES)} passed" in done.stdout


@pytest.mark.skipif("transformer_engine" not in sys.modules, reason="needs the stand-in")
def test_layers_are_transformer_engines(tiny_moe):
    from data_schemas.machine_settings import LayoutSettings
    from tasks.engines.trainer_megatron.trainer import MegatronTrainer

    gpt = MegatronTrainer(tiny_moe, layout=LayoutSettings())._gpt
    kinds = {type(module).__name__ for module in gpt.modules()}

    assert {"TELayerNormColumnParallelLinear", "TERowParallelLinear", "TEGroupedMLP"} <= kinds
    assert {"TEColumnParallelGroupedLinear", "TEDotProductAttention"} <= kinds
    assert not {"SequentialMLP", "PackedAttention"} & kinds
    assert gpt.config.moe_permute_fusion
