"""What vLLM's CUDA wheel makes of every preset, without a GPU: `make test-cuda-wheels`."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tasks.capacity.model_shape import ModelShape
from tasks.capacity.plan import PRESETS
from tests.engines.families import BAILING, COMMON
from tests.test_layout import ROOT

pytestmark = [pytest.mark.cuda_wheels, pytest.mark.timeout(1800)]
PYTHON = ROOT / ".venv-cuda" / "bin" / "python"
HERE = Path(__file__).parent
POSITIONS = 2**18


def config_of(shape: ModelShape) -> dict[str, object]:
    """config.json of a published family with these sizes."""
    config = COMMON | {
        "head_dim": shape.head_size,
        "hidden_size": shape.hidden,
        "intermediate_size": shape.width,
        "max_position_embeddings": POSITIONS,
        "num_attention_heads": shape.heads,
        "num_hidden_layers": shape.layers,
        "num_key_value_heads": shape.key_value_heads,
        "rope_theta": 1e6,
        "vocab_size": shape.vocabulary,
    }
    if not shape.experts:
        return config | {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2"}
    routed = {
        "moe_intermediate_size": shape.width,
        "norm_topk_prob": True,
        "num_experts": shape.experts,
        "num_experts_per_tok": shape.experts_per_token,
    }
    qwen = {"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe"}
    return (BAILING if shape.shared_width else qwen) | config | routed


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """By preset and stage: the fields of vLLM's configuration that routes and speed depend on."""
    folder = tmp_path_factory.mktemp("cuda")
    for name in ("libnvidia-ml.so.1", "libcuda.so.1"):
        compiler = ("cc", "-shared", "-fPIC", "-o", folder / name)
        subprocess.run([*compiler, HERE / "cuda_stub.c"], check=True)
    plan = {}
    for name, (_, shape, _) in PRESETS.items():
        plan[name] = str(folder / name)
        (folder / name).mkdir()
        (folder / name / "config.json").write_text(json.dumps(config_of(shape)))
    (folder / "plan.json").write_text(json.dumps(plan))
    asked = {"LD_LIBRARY_PATH": str(folder), "PYTORCH_NVML_BASED_CUDA_CHECK": "1"}
    done = subprocess.run(
        [PYTHON, HERE / "cuda_tool.py", folder / "plan.json"],
        env=os.environ | asked | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("stage", ["grading", "rl_one"])
def test_every_preset_runs_with_graphs_chunks_and_recorded_routes(found, preset, stage):
    settings, shape, _ = PRESETS[preset]
    engines = getattr(settings, stage).engines
    quantized = "fp8_per_block" if engines.precision == "fp8" else None

    assert {
        "async_scheduling": True,  # under torchrun too
        "chunked_prefill": True,
        "cudagraph_mode": "FULL_AND_PIECEWISE",
        "dtype": "torch.bfloat16",
        "executor": "external_launcher",
        "max_model_len": POSITIONS,  # before vLLM knows what its cache holds
        "moe_backend": "triton" if shape.experts else "auto",
        "prefix_caching": True,
        "quantization": quantized,
        "records_routes": shape.experts > 0,
        "records_sets": False,
        "second_runner": False,
        "sleep_mode": stage == "rl_one",
        "tensor": engines.layout.rollout_tensor,
    } == found[f"{preset} {stage}"]


@pytest.mark.parametrize("preset", PRESETS)
def test_an_engine_that_records_sets_differs_in_its_model_runner_alone(found, preset):
    plain = found[f"{preset} rl_one"]

    recording = plain | {"records_sets": True, "second_runner": True}
    assert recording == found[f"{preset} rl_one with sets"]


@pytest.mark.parametrize("stage", ["grading", "rl_one"])
def test_an_engine_without_torchrun_differs_in_its_executor_alone(found, stage):
    launched = found[f"single_node {stage}"]

    assert launched | {"executor": "mp"} == found[f"single_node {stage} alone"]


def test_what_a_gpu_cannot_compute_or_a_node_does_not_have_is_refused(found):
    refusals = found["refusals"]

    assert "a share must be a multiple of 128" in refusals["fp8 blocks"]
    assert "larger than the number of available GPUs (8)" in refusals["sixteen GPUs"]
    assert "gather does not forward sampling masks" in refusals["sharded sets"]
    assert "replay does not support speculative decoding" in refusals["drafts with sets"]
    assert "unexpected keyword argument 'no_option'" in refusals["unknown option"]


def test_the_stub_is_what_vllm_takes_for_eight_gpus(found):
    assert ["NVIDIA H100 80GB HBM3", 8] == found["devices"]
