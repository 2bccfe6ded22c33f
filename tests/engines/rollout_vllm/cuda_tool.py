"""Runs where vLLM's CUDA wheel is installed: what it makes of every preset, as JSON.

    python cuda_tool.py plan.json

The plan has model folders by preset. No device is touched: NVML is a stub.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import torch

from data_schemas.machine_settings import LayoutSettings, Precision, TrainingEngines
from tasks.capacity.plan import PRESETS
from tasks.engines.rollout_vllm.environment import opening, prepare_environment

prepare_environment()

from vllm import EngineArgs  # noqa: E402
from vllm.platforms import current_platform  # noqa: E402

from tasks.engines.rollout_vllm.options import engine_options, model_facts, refuse  # noqa: E402
from tasks.errors import SettingsError  # noqa: E402

STAGES = ("grading", "rl_one")
ALONE = "single_node"
"""Preset that is tried without torchrun too."""
LAUNCHED = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "8"}


def configured(options: dict[str, Any]) -> dict[str, Any]:
    """What vLLM decides of what routes and speed depend on."""
    with opening(options):
        config = EngineArgs(**options).create_engine_config()
        second_runner = config.use_v2_model_runner
    model, parallel = config.model_config, config.parallel_config
    return {
        "async_scheduling": config.scheduler_config.async_scheduling,
        "chunked_prefill": config.scheduler_config.enable_chunked_prefill,
        "cudagraph_mode": config.compilation_config.cudagraph_mode.name,
        "dtype": str(model.dtype),
        "executor": parallel.distributed_executor_backend,
        "max_model_len": model.max_model_len,
        "moe_backend": config.kernel_config.moe_backend,
        "prefix_caching": config.cache_config.enable_prefix_caching,
        "quantization": model.quantization,
        "records_routes": model.enable_return_routed_experts,
        "records_sets": model.return_sampling_mask,
        "second_runner": second_runner,
        "sleep_mode": model.enable_sleep_mode,
        "tensor": parallel.tensor_parallel_size,
    }


def options_of(
    preset: str, folder: Path, stage: str, *, record_kept: bool = False
) -> dict[str, Any]:
    """The options that a stage of a preset opens vLLM with."""
    engines, facts = getattr(PRESETS[preset][0], stage).engines, model_facts(folder)
    refuse(facts, engines.precision, engines.layout, record_kept=record_kept)
    return engine_options(
        folder,
        facts,
        precision=engines.precision,
        layout=engines.layout,
        fp32_router=engines.fp32_router,
        fp8_ignored_layers=engines.fp8_ignored_layers,
        sleeps=isinstance(engines, TrainingEngines),
        record_kept=record_kept,
    )


def refusals(folder: Path) -> Iterator[tuple[str, str]]:
    """What is refused, and in which words."""
    options = options_of(ALONE, folder, "grading")
    recording = options_of(ALONE, folder, "rl_one", record_kept=True) | {"tensor_parallel_size": 2}
    drafts = {"speculative_config": {"method": "ngram", "num_speculative_tokens": 2}}
    narrow = LayoutSettings(rollout_tensor=4)
    tries: dict[str, Callable[[], object]] = {
        "fp8 blocks": lambda: refuse(model_facts(folder), Precision.FP8, narrow),
        "sixteen GPUs": lambda: configured(options | {"tensor_parallel_size": 16}),
        "sharded sets": lambda: configured(recording | {"enable_batch_sharded_sampling": True}),
        "drafts with sets": lambda: configured(recording | drafts),
        "unknown option": lambda: configured(options | {"no_option": 1}),
    }
    for name, attempt in tries.items():
        try:
            attempt()
        except (SettingsError, ValueError, TypeError) as error:
            yield name, str(error)


def main(plan: Path) -> None:
    """Print what vLLM makes of every preset."""
    folders = {name: Path(folder) for name, folder in json.loads(plan.read_text()).items()}
    found: dict[str, Any] = {
        "devices": [current_platform.get_device_name(0), torch.cuda.device_count()],
        "refusals": dict(refusals(folders[ALONE])),
    }
    for stage in STAGES:
        found[f"{ALONE} {stage} alone"] = configured(options_of(ALONE, folders[ALONE], stage))
    os.environ.update(LAUNCHED)
    for preset, folder in folders.items():
        for stage, record_kept in (*product(STAGES, (False,)), ("rl_one", True)):
            options = options_of(preset, folder, stage, record_kept=record_kept)
            options["distributed_executor_backend"] = "external_launcher"
            name = f"{preset} {stage}{' with sets' * record_kept}"
            found[name] = configured(options)
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
