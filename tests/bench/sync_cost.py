# pyright: reportMissingImports=false
"""CPU seconds that one tensor takes in a weight sync, whatever its size.

    python -m tests.bench.sync_cost [--layers 4] [--experts 128] [--rounds 9] [--out FILE]

A Qwen3-MoE with as many experts a layer as Qwen3-30B-A3B, but so narrow that its bytes take next to
nothing, in vLLM on a CPU. Four ways of a sync are measured:

    direct    vLLM's `load_weights` alone, as frameworks call it that leave out its update path
    update    the same between start and end of vLLM's update path, which loads a layer twice: once
              to count its elements, and once it is complete
    sync      a weight sync of the engine, with names, checks and the digests of both sides
    sending   what the owner of an engine in another process does, without the transfer

Counted is the time that the thread which loads, or sends, has a core, and that of the whole
process, whose other threads hash. Of several rounds the least counts: threads that wait for each
other on a loaded machine only add to it. Packing experts for vLLM's CPU kernel, a hundredth of
`sync`, is in no other way. On a GPU a tensor also takes the launches of its copies.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from data_schemas.machine_settings import LayoutSettings, MachineSettings, RolloutKind
from tasks.engines.embedded.trainer import TorchTrainer
from tasks.engines.rollout_vllm.broadcast import PacketSender
from tasks.engines.rollout_vllm.staging import Staging
from tasks.engines.select import open_rollout
from tasks.engines.weight_sync import Outgoing
from tasks.lab.study import evidence_file
from tasks.models.model_folder import SHIPPED
from tasks.platform.command_line import positive, run
from tests.engines.families import COMMON, CONFIGS, write_model

CLOCKS = ("thread", "process")
MEASURED = ("tasks.engines.rollout_vllm.in_process", "tasks.engines.rollout_vllm.receive")
Cost = dict[str, float]
"""Seconds of one sync, or of one tensor of it, by CLOCKS."""
NARROW = {
    "architectures": ["Qwen3MoeForCausalLM"],
    "head_dim": 32,
    "hidden_size": 64,
    "mlp_only_layers": [],
    "moe_intermediate_size": 32,
    "num_experts_per_tok": 8,
}
"""An expert's matrix has 8 KiB in fp32: copying and hashing it takes a few microseconds."""


def write_narrow(layers: int, experts: int, folder: Path) -> Path:
    """Write the model."""
    base = json.loads((SHIPPED / "config.json").read_text())
    sizes = {
        "num_hidden_layers": layers,
        "num_experts": experts,
        "vocab_size": base["vocab_size"],
    }
    published = COMMON | CONFIGS["qwen3_moe mixed"] | NARROW | sizes
    return write_model(published, SHIPPED, folder)


def cost_of(call: Callable[[], object]) -> Cost:
    """Count the CPU seconds of a call."""
    thread, process = time.thread_time(), time.process_time()
    call()
    return {"thread": time.thread_time() - thread, "process": time.process_time() - process}


def measure(model: Path, rounds: int) -> tuple[int, dict[str, list[Cost]]]:
    """Sync a model this many times each way; return its tensors, and what a tensor took.

    The first round of each way is not counted: it allocates.
    """
    trainer = TorchTrainer(model)
    weights = list(trainer.weights())
    engines = MachineSettings(rollout=RolloutKind.VLLM, layout=LayoutSettings(rollout_memory=0.2))
    with closing(open_rollout(engines, model)) as opened:
        engine: Any = opened
        vllm = engine._backend._engine
        config = vllm.vllm_config.model_config

        def sync() -> None:
            sent = Outgoing(trainer.weights())
            received = engine.load_weights(sent, version=1)
            assert sent.digest() == received

        ways: dict[str, Callable[[], Cost]] = {
            "update": lambda: vllm.apply_model(lambda one: update(one, weights, config))[0],
            "sync": lambda: cost_of(sync),
            "sending": lambda: sending(model, trainer),
        }
        costs = {name: [way() for _ in range(rounds + 1)][1:] for name, way in ways.items()}
        # Last, because the engine cannot compute with what it leaves.
        direct = vllm.apply_model(lambda one: direct_loads(one, weights, rounds + 1))[0]
    costs = {"direct": direct[1:], **costs}
    return len(weights), {
        name: [{clock: one[clock] / len(weights) for clock in CLOCKS} for one in several]
        for name, several in costs.items()
    }


def update(model: Any, weights: list[tuple[str, torch.Tensor]], config: Any) -> Cost:
    """Load tensors in vLLM's update path, in a worker."""
    from vllm.model_executor.model_loader.reload import (
        finalize_layerwise_reload,
        initialize_layerwise_reload,
    )

    def load() -> None:
        initialize_layerwise_reload(model)
        model.load_weights(iter(weights))
        finalize_layerwise_reload(model, config)

    return cost_of(load)


def direct_loads(model: Any, weights: list[tuple[str, torch.Tensor]], times: int) -> list[Cost]:
    """Load tensors without that path, in a worker whose tensors are first as files have them."""
    from vllm.model_executor.model_loader.reload.layerwise import get_layerwise_info
    from vllm.model_executor.model_loader.reload.meta import (
        materialize_layer,
        restore_layer_on_meta,
    )

    for layer in model.modules():
        info = get_layerwise_info(layer)
        restore_layer_on_meta(layer, info)
        materialize_layer(layer, info)
    return [cost_of(lambda: model.load_weights(iter(weights))) for _ in range(times)]


def sending(model: Path, trainer: TorchTrainer) -> Cost:
    """Hash, check, write and pack tensors as for an engine in another process."""
    with closing(Staging(model)) as staging:

        def send() -> None:
            outbox = PacketSender(
                lambda _entries, _packet: None, torch.device("cpu"), staging.chunk_bytes
            )
            sent = Outgoing(trainer.weights())
            staging.write(sent, outbox=outbox)
            sent.digest()

        return cost_of(send)


def table(least: Mapping[str, Cost], median: Mapping[str, Cost], tensors: int) -> Table:
    """Show microseconds of a tensor."""
    result = Table(
        title=f"CPU microseconds of one tensor of {tensors}",
        title_justify="left",
        title_style="",
        box=None,
    )
    for head in ("way", "thread", "median", "process", "median"):
        result.add_column(head, justify="left" if head == "way" else "right")
    for name in least:
        costs = (by[name][clock] for clock in CLOCKS for by in (least, median))
        result.add_row(name, *(f"{1e6 * seconds:.0f}" for seconds in costs))
    return result


def _of_rounds(
    pick: Callable[[list[float]], float], costs: dict[str, list[Cost]]
) -> dict[str, Cost]:
    return {
        name: {clock: pick([one[clock] for one in several]) for clock in CLOCKS}
        for name, several in costs.items()
    }


def main(arguments: Sequence[str]) -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.sync_cost",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--layers", type=positive, default=4)
    parser.add_argument("--experts", type=positive, default=128)
    parser.add_argument("--rounds", type=positive, default=9)
    parser.add_argument("--out", type=Path, help="a JSON file of the numbers")
    options = parser.parse_args(arguments)
    command = " ".join(["python -m tests.bench.sync_cost", *arguments])
    origin = evidence_file.origin(command, *MEASURED)
    with tempfile.TemporaryDirectory() as folder:
        model = write_narrow(options.layers, options.experts, Path(folder) / "model")
        tensors, costs = measure(model, options.rounds)
    least, median = (_of_rounds(pick, costs) for pick in (min, statistics.median))
    Console(highlight=False, width=120).print(table(least, median, tensors))
    if options.out:
        content = {
            **origin,
            "layers": options.layers,
            "experts": options.experts,
            "tensors": tensors,
            "rounds": options.rounds,
            "cpu_s_a_tensor": least,
            "median_cpu_s_a_tensor": median,
        }
        options.out.write_text(json.dumps(content, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    run(main)
