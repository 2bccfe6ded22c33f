"""What one core could do, beside what the embedded engines reach: `python -m tests.bench.bounds`.

The bounds are measured in the same run: operations per second of a product of two large matrices,
and bytes per second of a copy between two arrays larger than any cache. A rollout or an update
cannot be faster than its products at that rate; a pass of decoding cannot be faster than its
weights are read. Both models and the engines' turns are those of `tests.bench.engines`. One thread
of one process, CPU seconds, median of the rounds.
"""

import argparse
import json
import logging
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from transformers.utils import logging as transformers_logging

from data_schemas.machine_settings import MachineSettings
from tasks.cores import LIMIT
from tasks.engines.chat import load_tokenizer
from tasks.engines.embedded.hf_model import load_on_device
from tasks.engines.protocols import Sampling
from tasks.engines.select import open_rollout, open_trainer
from tasks.lab.study import evidence_file
from tasks.models.model_folder import SHIPPED
from tasks.platform.command_line import positive, run
from tasks.platform.tables import markdown_table
from tasks.store.files import write_bytes
from tests.bench.engines import (
    Load,
    endless_copy,
    engine_turn,
    random_model,
    requests_of,
    take_turns,
    trainer_turn,
    training_batch,
)

SIDE = 1024
"""Rows and columns of the matrices whose product is timed."""
COPIED = 1 << 27
"""Bytes of each array of the copy."""
FORWARD, TRAINING = 2, 6
"""Operations of a weight for a token: forward; forward and backward."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What one core can do."""

    products_per_s: float
    """Floating-point operations of a matrix product in fp32."""
    bytes_per_s: float
    """Read by a copy, which writes as many."""


@dataclass(frozen=True, slots=True)
class Reached:
    """What a turn of an engine does of that."""

    tokens_cpu_s: float
    of_products: float
    """Share of the operations per second."""
    of_bytes: float | None
    """Share of the bytes per second at which the weights are read; None of an update."""


def least_cpu_s(work: Callable[[], object], times: int = 7) -> float:
    """Return the CPU seconds of the fastest of a few calls."""
    found = list[float]()
    for _ in range(times):
        started = time.process_time()
        work()
        found.append(time.process_time() - started)
    return min(found)


def machine() -> Machine:
    """Measure a core."""
    one, other = torch.randn(SIDE, SIDE), torch.randn(SIDE, SIDE)
    source = torch.zeros(COPIED // 4)
    target = torch.ones_like(source)
    return Machine(
        products_per_s=2 * SIDE**3 / least_cpu_s(lambda: one @ other),
        bytes_per_s=COPIED / least_cpu_s(lambda: target.copy_(source)),
    )


def acting_weights(weights: Iterable[tuple[str, torch.Tensor]], top_share: float) -> float:
    """Count the weights that act on a token.

    Args:
        weights: of a model, by name.
        top_share: experts per token by experts.

    Returns:
        The embedding is read, not multiplied, and counts only where it is the head as well.
    """
    return sum(
        tensor.numel() * (top_share if ".experts." in name else 1.0)
        for name, tensor in weights
        if "embed_tokens" not in name
    )


def reached(model: Path, load: Load, rounds: int, core: Machine) -> dict[str, Reached]:
    """Time rollouts and updates of one model."""
    network = load_on_device(model)
    config = network.config
    weights = list(network.state_dict().items())
    acting = acting_weights(weights, config.num_experts_per_tok / config.num_experts)
    read_bytes = sum(tensor.nbytes for name, tensor in weights if "embed_tokens" not in name)
    del network, weights
    requests = requests_of(load, len(load_tokenizer(model)) // 2)
    with (
        closing(open_rollout(MachineSettings(), model)) as engine,
        closing(open_trainer(MachineSettings(), model)) as trainer,
    ):
        batch = training_batch(list(engine.generate(requests, Sampling(load.new_tokens, 1.0, 0))))
        paces = take_turns(
            {
                "rollouts": engine_turn(engine, requests, load),
                "updates": trainer_turn(trainer, batch),
            },
            rounds,
        )
    speed = {
        name: statistics.median(one.tokens_cpu_s for one in found) for name, found in paces.items()
    }
    passes_s = speed["rollouts"] / (load.prompts * load.samples)
    return {
        "rollouts": Reached(
            speed["rollouts"],
            speed["rollouts"] * FORWARD * acting / core.products_per_s,
            passes_s * read_bytes / core.bytes_per_s,
        ),
        "updates": Reached(
            speed["updates"], speed["updates"] * TRAINING * acting / core.products_per_s, None
        ),
    }


def main(arguments: Sequence[str]) -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.bounds",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rounds", type=positive, default=5, help="counted; one more warms up")
    parser.add_argument("--out", type=Path, help="a JSON file of the numbers")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    os.environ[LIMIT] = "1"  # only this process is counted
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    core, found = machine(), dict[str, dict[str, Reached]]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sources = {"shipped": SHIPPED, "random, 99 M": random_model(folder / "random")}
        for title, source in sources.items():
            model = endless_copy(source, folder / f"{source.name}-endless")
            found[title] = reached(model, Load(16, 8, 64), options.rounds, core)
    rows = [
        (
            *(title, part, f"{one.tokens_cpu_s:,.0f}", f"{one.of_products:.0%}"),
            "" if one.of_bytes is None else f"{one.of_bytes:.0%}",
        )
        for title, parts in found.items()
        for part, one in parts.items()
    ]
    heads = ("model", "part", "tokens per CPU s", "of the products", "of the bytes")
    sys.stdout.write(
        f"one core: {core.products_per_s / 1e9:.0f} GFLOP/s, {core.bytes_per_s / 1e9:.1f} GB/s\n"
        f"{markdown_table(heads, rows)}\n"
    )
    if options.out:
        command = f"python -m tests.bench.bounds --rounds {options.rounds}"
        content = {
            **evidence_file.origin(command, "tasks.engines.embedded.trainer"),
            "machine": asdict(core),
            "reached": {
                title: {part: asdict(one) for part, one in parts.items()}
                for title, parts in found.items()
            },
        }
        write_bytes(options.out, (json.dumps(content, indent=1) + "\n").encode())


if __name__ == "__main__":
    # Of the process, so not in main: warnings would tear the table.
    logging.getLogger("tasks").setLevel(logging.ERROR)
    run(main)
