"""The parts of one RL step of a random MoE on this machine, each beside what it should be.

    python -m tests.bench.rl_on_device [--engines real] [--large]

One line of JSON per part, printed when it ends, so that a run which is cut short keeps the others:
rollouts, old log-probs, update, weight sync. Each has tokens per second, the peak memory of torch's
allocator, and the bytes that `make budget` counts for it without contexts and workspaces; the
update also has its share of the GPU's peak (MFU). From old log-probs on, what the sleeping engine
holds is left out of both: torch counts its memory as allocated, although it is not there. Tokens
are those of whole sequences; for the MFU, those that answers share with others count once.

Two parts are by the libraries alone. `megatron_loop` takes a step on the same batch by Megatron's
own loop with its own settings (plain_loop.py): plain cross-entropy, no replayed routes, a prompt
once per answer. `vllm_bench` is `vllm bench throughput` under the same load, without routes; beside
the embedded engine, `generate` of transformers rolls it out. The last lines are the comparisons,
each with its ratio and outcome.

The peak is that of dense bf16. The embedded trainer computes in fp32, so its share is small.
"""

import argparse
import json
import logging
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from data_schemas.machine_settings import (
    LayoutSettings,
    MachineSettings,
    Precision,
    RolloutKind,
    TrainerKind,
    TrainingEngines,
)
from data_schemas.rollouts import Rollout
from tasks.capacity.memory import FIXED_BYTES, H100_BYTES, Workload, budget
from tasks.capacity.plan import read_shape
from tasks.engines.chat import load_tokenizer
from tasks.engines.protocols import Request, Sampling
from tasks.engines.select import open_rollout, open_trainer
from tasks.lab.simulator.rates import forward_flops
from tasks.platform.command_line import positive, run
from tests.bench.comparisons import BENCH, OWN_LOOP, Part, compare, line_of
from tests.bench.engines import (
    Load,
    endless_copy,
    generate_turn,
    random_model,
    random_moe,
    requests_of,
    trainer_turn,
    training_batch,
)

PEAKS = {"A100": 312e12, "H100": 989e12, "H200": 989e12, "B200": 2250e12}
"""Dense bf16 operations per second by a part of the GPU's name (NVIDIA's data sheets)."""
PROMPT_TOKENS = 48
"""Tokens of the longest prompt of the load."""
LARGE = {
    "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 16, "head_dim": 128,
    "num_key_value_heads": 4, "moe_intermediate_size": 512, "initializer_range": 0.06,
    "max_position_embeddings": 4096,
}  # fmt: skip
"""1.8 B parameters, 0.37 B active: with its optimizer 27 GiB in fp32."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What is asked of a device; a test has one of its own."""

    peak_flops: float | None
    """None if it is not known."""
    clock: Callable[[], float]
    """Seconds, when the device has ended its work."""
    reset_peak: Callable[[], None]
    peak_bytes: Callable[[], int | None]
    held_bytes: Callable[[], int]
    """Allocated now."""


def this_machine() -> Machine:
    """Return the GPU of this process; without one there is no peak of anything."""
    if not torch.cuda.is_available():
        return Machine(None, time.perf_counter, lambda: None, lambda: None, lambda: 0)
    name = torch.cuda.get_device_name()

    def clock() -> float:
        torch.cuda.synchronize()
        return time.perf_counter()

    return Machine(
        next((peak for known, peak in PEAKS.items() if known in name), None),
        clock,
        torch.cuda.reset_peak_memory_stats,
        torch.cuda.max_memory_allocated,
        torch.cuda.memory_allocated,
    )


def step_parts(
    engines: MachineSettings, model: Path, load: Load, rounds: int, machine: Machine
) -> Iterator[Part]:
    """Yield the parts of a step as they end; the first round of each is not counted."""
    requests = requests_of(load, len(load_tokenizer(model)) // 2)
    budgeted = budget_bytes(engines, model, load)
    with closing(open_rollout(engines, model)) as engine:
        rollouts: list[Rollout] = []

        def roll_out(number: int) -> int:
            rollouts[:] = engine.generate(requests, Sampling(load.new_tokens, 1.0, number))
            return sum(len(rollout.response_tokens) for rollout in rollouts)

        yield _measured("rollouts", roll_out, rounds, machine, budgeted)
        batch = training_batch(rollouts)
        tokens = float(batch.lengths_N.float().mean())
        computed = 1.0 - sum(batch.prefixes.shared) / float(batch.lengths_N.sum())
        flops = 3.0 * forward_flops(read_shape(model), tokens) * computed
        engine.sleep()
        held = machine.held_bytes()
        with closing(open_trainer(engines, model)) as trainer:

            def score(_: int) -> int:
                trainer.score(batch, temperature=1.0, record_routes=False)
                return int(batch.lengths_N.sum())

            def sync(number: int) -> int:
                engine.load_weights(trainer.weights(), number + 1)
                return int(batch.lengths_N.sum())

            yield _measured("old_logprobs", score, rounds, machine, budgeted, held=held)
            update = trainer_turn(trainer, batch)
            yield _measured("update", update, rounds, machine, budgeted, flops=flops, held=held)
            yield _measured("weight_sync", sync, rounds, machine, budgeted, held=held)
        if engines.trainer is TrainerKind.MEGATRON:
            # Imported here: only this branch needs Megatron.
            from tests.bench.plain_loop import PlainLoop

            engine.sleep()
            held = machine.held_bytes()
            with closing(PlainLoop(model, engines.layout)) as loop:

                def learn(_: int) -> int:
                    loop.update(batch, learning_rate=1e-6)
                    return int(batch.lengths_N.sum())

                yield _measured(OWN_LOOP, learn, rounds, machine, {}, flops=flops, held=held)


def all_parts(
    engines: MachineSettings, model: Path, load: Load, rounds: int, machine: Machine
) -> Iterator[Part]:
    """Yield the parts of a step, and the rollouts by the library alone when engines are closed."""
    yield from step_parts(engines, model, load, rounds, machine)
    yield plain_part(engines, model, load, rounds, machine)


def plain_part(
    engines: MachineSettings, model: Path, load: Load, rounds: int, machine: Machine
) -> Part:
    """Roll out the same load with the library alone."""
    if engines.rollout is RolloutKind.VLLM:
        return vllm_bench(model, load, engines.layout.rollout_memory)
    requests: list[Request] = requests_of(load, len(load_tokenizer(model)) // 2)
    turn = generate_turn(model, engines.precision, requests, load)
    return _measured("plain", turn, rounds, machine, {})


def vllm_bench(
    model: Path,
    load: Load,
    memory: float,
    call: Callable[[Sequence[str]], object] = lambda command: subprocess.run(command, check=True),
) -> Part:
    """Run vLLM's own benchmark in a process of its own, with prompts of the same mean length.

    Args:
        memory: share of the GPU that vLLM claims; this process still holds some of the rest.
    """
    count, prompt = load.prompts * load.samples, (16 + PROMPT_TOKENS) // 2
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "throughput.json"
        call([
            sys.executable, "-m", "vllm.entrypoints.cli.main", "bench", "throughput",
            "--model", str(model), "--dtype", "bfloat16", "--dataset-name", "random",
            "--random-input-len", str(prompt), "--random-output-len", str(load.new_tokens),
            "--num-prompts", str(count), "--gpu-memory-utilization", str(memory),
            "--output-json", str(found),
        ])  # fmt: skip
        seconds = float(json.loads(found.read_text())["elapsed_time"])
    tokens = count * load.new_tokens
    return Part(BENCH, tokens, seconds, tokens / seconds)


def budget_bytes(engines: MachineSettings, model: Path, load: Load) -> dict[str, int]:
    """Bytes that the budget of one GPU counts for each part, without its fixed share.

    The weights of the rollout engine, which it holds all the time, are left out as well.
    """
    work = Workload(PROMPT_TOKENS, load.new_tokens, load.prompts * load.samples)
    gpu = H100_BYTES
    if torch.cuda.is_available():
        gpu = torch.cuda.get_device_properties(torch.cuda.current_device()).total_memory
    counted = budget(read_shape(model), engines.layout, engines.precision, work, gpus=1, gpu=gpu)
    phases = {"update": counted.phases["update"] - FIXED_BYTES}
    if engines.rollout is RolloutKind.VLLM:  # the cache of an embedded engine grows as needed
        phases["weight_sync"] = (
            counted.phases["weight sync"] - FIXED_BYTES - counted.rollout.weights
        )
    return phases


def _measured(
    name: str,
    turn: Callable[[int], int],
    rounds: int,
    machine: Machine,
    budgeted: Mapping[str, int],
    *,
    flops: float | None = None,
    held: int = 0,
) -> Part:
    """Take the median of the rounds after the first.

    Args:
        flops: operations per token.
        held: bytes that were allocated before and are not the part's own.
    """
    tokens, seconds = 0, []
    machine.reset_peak()
    for number in range(rounds + 1):
        started = machine.clock()
        tokens = turn(number)
        seconds.append(machine.clock() - started)
    middle = statistics.median(seconds[1:])
    mfu = None
    if flops is not None and machine.peak_flops is not None:
        mfu = flops * tokens / middle / machine.peak_flops
    peak = machine.peak_bytes()
    own = None if peak is None else peak - held
    return Part(name, tokens, middle, tokens / middle, mfu, own, budgeted.get(name))


def report(parts: Iterable[Part]) -> None:
    """Print every part when it ends, and then the comparisons, also if a part fails."""
    done: dict[str, Part] = {}
    try:
        for part in parts:
            done[part.part] = part
            print(json.dumps(asdict(part)), flush=True)  # noqa: T201 - the output of a command
    finally:
        for comparison in compare(done):
            print(line_of(comparison), flush=True)  # noqa: T201 - the output of a command


def engines_of(name: str) -> TrainingEngines:
    """Return engines of a stage that trains: its rollout engine sleeps while the trainer works."""
    if name == "embedded":
        return TrainingEngines(precision=Precision.BF16)
    return TrainingEngines(
        rollout=RolloutKind.VLLM,
        trainer=TrainerKind.MEGATRON,
        precision=Precision.BF16,
        layout=LayoutSettings(precision=Precision.BF16, rollout_memory=0.3),
    )


def main(arguments: Sequence[str]) -> None:
    """Measure, and print every part when it ends."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.rl_on_device",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--engines", choices=("embedded", "real"), default="embedded")
    parser.add_argument("--large", action="store_true", help="1.8B instead of 99M parameters")
    parser.add_argument("--rounds", type=positive, default=2, help="counted; one more warms up")
    parser.add_argument("--prompts", type=positive, default=16)
    parser.add_argument("--samples", type=positive, default=8, help="answers to a prompt")
    parser.add_argument("--tokens", type=positive, default=128, help="of an answer")
    options = parser.parse_args(arguments)
    load = Load(options.prompts, options.samples, options.tokens)
    with tempfile.TemporaryDirectory() as name:
        config = random_moe(**LARGE) if options.large else random_moe()
        random_model(Path(name) / "random", config)
        model, machine = endless_copy(Path(name) / "random", Path(name) / "model"), this_machine()
        report(all_parts(engines_of(options.engines), model, load, options.rounds, machine))


if __name__ == "__main__":
    logging.getLogger("tasks").setLevel(logging.ERROR)
    run(main)
