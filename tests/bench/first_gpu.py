"""The first hour on a GPU, in slices that end within minutes: `make gpu`.

Every slice is a command of its own; its result is one JSON file, written when it ends. A call runs
the slices without a result, in order, until its time is over: call it again until it says that
nothing is left. A slice that is cut short is started again by the next call; one that had the whole
time of a call is recorded as cut. Stopping at any moment loses the slice in progress only.

The parts of an RL step are compared with their thresholds; every call prints all comparisons, those
without a result as not measured. The last slices are one run of RL of 30 minutes.

Tier 1 needs torch and transformers (the embedded engines), tier 2 vLLM, Megatron-core and
Transformer Engine (make gpu-environment).
"""

import argparse
import importlib.util
import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from tasks.errors import SettingsError
from tasks.platform.command_line import positive_number, run
from tasks.store.files import write_bytes
from tests.bench.comparisons import Comparison, decide, read_comparisons, written

_LOG = logging.getLogger(__name__)
OUT = Path("runs/first_gpu")
CALL_S = 480.0
"""Eight minutes: machines are lent for ten minutes a command."""
TAIL_CHARS = 6000
"""Characters of the output of a slice, its end is kept."""
RL_MINUTES, RL_SLICE_MINUTES = 30, 5
"""Minutes of steps: the rest of a slice opens engines, compiles and commits."""
TIER_TWO = ("vllm", "megatron", "transformer_engine")
_ENVIRONMENT = """
import importlib.metadata as m, json, torch
names = ["torch", "transformers", "vllm", "megatron-core", "transformer-engine", "triton"]
have = {d.metadata["Name"] for d in m.distributions()}
cuda = torch.cuda.is_available()
print(json.dumps({
    "packages": {name: m.version(name) for name in names if name in have},
    "gpus": [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())],
    "memory_gib": [torch.cuda.get_device_properties(i).total_memory / 2**30
                   for i in range(torch.cuda.device_count())],
    "cuda": torch.version.cuda, "nccl": torch.cuda.nccl.version() if cuda else None,
}))
"""


class Ended(StrEnum):
    """How a slice ended."""

    PASSED = "passed"
    FAILED = "failed"
    CUT = "cut"
    """After all the time of a call."""


@dataclass(frozen=True, slots=True)
class Slice:
    """One command that says one thing about the machine."""

    name: str
    tier: int
    command: tuple[str, ...]
    """Arguments of this Python."""
    compares: bool = False
    """Its output ends with comparisons."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a slice said."""

    name: str
    ended: Ended
    seconds: float
    tail: str
    """The end of its output."""
    comparisons: tuple[Comparison, ...] = ()
    """With thresholds; all of them also if the slice failed or was cut."""


def _tests(name: str, tier: int, *paths: str) -> Slice:
    mark = ("-m", "engines") if tier > 1 else ()
    return Slice(name, tier, ("-m", "pytest", "-q", "-rA", *mark, *paths))


def _rl_minutes(tier: int, *arguments: str) -> list[Slice]:
    """Slices of one run of RL, each of which goes on where the one before ended."""
    command = ("-m", "tests.bench.rl_minutes", *arguments, "--until")
    ends = range(RL_SLICE_MINUTES, RL_MINUTES + 1, RL_SLICE_MINUTES)
    return [Slice(f"rl_{end}_minutes", tier, (*command, str(end))) for end in ends]


def _module(name: str, tier: int, *arguments: str) -> Slice:
    return Slice(name, tier, ("-m", *arguments))


SLICES = (
    Slice("environment", 1, ("-c", _ENVIRONMENT)),
    _module("facts", 1, "tests.bench.gpu_facts"),
    # vLLM and Transformer Engine in one process, with packed sequences and grouped experts: what
    # is known least comes first.
    Slice("rl_step_real_large", 2, ("-m", "tests.bench.rl_on_device", "--engines", "real",
            "--large"), compares=True),
    _module("mismatch_vllm_megatron", 2, "flytekit.clis.sdk_in_container.pyflyte", "run",
            "workflows/lab/mismatch.py", "mismatch", "--engines", "real"),
    _tests("embedded_engines", 1, "tests/engines/embedded"),
    _tests("rollout_contract", 1, "tests/engines/test_rollout_contract.py"),
    _tests("trainer_contract", 1, "tests/engines/test_trainer_contract.py"),
    _module("mismatch_embedded", 1, "flytekit.clis.sdk_in_container.pyflyte", "run",
            "workflows/lab/mismatch.py", "mismatch", "--engines", "embedded"),
    _module("speed_shipped", 1, "tests.bench.engines"),
    _module("speed_random", 1, "tests.bench.engines", "--random"),
    _module("rl_step_embedded", 1, "tests.bench.rl_on_device"),
    _module("rl_step_embedded_large", 1, "tests.bench.rl_on_device", "--large"),
    _module("rl_embedded", 1, "flytekit.clis.sdk_in_container.pyflyte", "run",
            "workflows/post_training.py", "post_training"),
    _tests("vllm_options", 2, "tests/engines/rollout_vllm/test_options.py"),
    _tests("vllm_contract", 2, "tests/engines/test_rollout_contract.py"),
    _tests("vllm_sets", 2, "tests/engines/rollout_vllm/test_second_runner.py"),
    _tests("megatron_one_gpu", 2, "tests/engines/trainer_megatron/test_one_gpu.py"),
    _tests("weight_sync_in_process", 2, "tests/engines/rollout_vllm/test_weight_update.py"),
    _tests("weight_sync_packets", 2, "tests/engines/rollout_vllm/test_broadcast.py"),
    _tests("weight_sync_own_process", 2, "tests/engines/rollout_vllm/test_own_process.py"),
    *_rl_minutes(2, "--engines", "real"),
)  # fmt: skip


def run_slices(
    slices: Sequence[Slice],
    out: Path,
    *,
    call_s: float = CALL_S,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[list[Result], list[Slice]]:
    """Run the slices that have no result in `out`, until the time of this call is over.

    Returns:
        The results of this call, and the slices that are left for the next.
    """
    out.mkdir(parents=True, exist_ok=True)
    started, done = clock(), []
    left = [one for one in slices if not (out / f"{one.name}.json").exists()]
    while left:
        result = _run(left[0], call_s - (clock() - started))
        if result.ended is Ended.CUT and done:
            break  # the next call gives it all of its time
        write_bytes(out / f"{left[0].name}.json", json.dumps(asdict(result), indent=2).encode())
        done.append(result)
        left = left[1:]
        if result.ended is Ended.CUT:
            break
    return done, left


def _run(one: Slice, limit_s: float) -> Result:
    """Run a slice in a process group of its own, of which nothing is left behind."""
    started = time.monotonic()
    with (
        _ended_with_this_process() as group,
        subprocess.Popen(
            [sys.executable, *one.command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            process_group=group,
        ) as process,
        _killed(process, group),  # before anything that an interrupt could end: leaving Popen waits
    ):
        try:
            said, _ = process.communicate(timeout=max(0.0, limit_s))
            ended = Ended.FAILED if process.returncode else Ended.PASSED
        except subprocess.TimeoutExpired:
            os.killpg(group, signal.SIGKILL)
            (said, _), ended = process.communicate(), Ended.CUT
    comparisons = tuple(read_comparisons(said)) if one.compares else ()
    return Result(one.name, ended, time.monotonic() - started, said[-TAIL_CHARS:], comparisons)


@contextmanager
def _killed(process: "subprocess.Popen[str]", group: int) -> Iterator[None]:
    """Kill a process group if its process still runs at the end of the block."""
    try:
        yield
    finally:
        if process.poll() is None:
            os.killpg(group, signal.SIGKILL)


@contextmanager
def _ended_with_this_process() -> Iterator[int]:
    """Open a process group that is killed if this process ends within the block, however it does.

    Its first process waits for the end of a pipe that nobody writes to: it is there before any
    other of the group, so that none is without it.
    """
    code = "import os, sys; sys.stdin.read(); os.killpg(0, 9)"
    with subprocess.Popen(
        [sys.executable, "-S", "-c", code], stdin=subprocess.PIPE, process_group=0
    ) as watch:
        try:
            yield watch.pid
        finally:
            watch.kill()


def comparison_lines(slices: Sequence[Slice], out: Path) -> list[str]:
    """Say every comparison of every slice; without a result of the slice it is not measured."""
    lines = []
    for one in slices:
        if one.compares:
            path = out / f"{one.name}.json"
            kept = json.loads(path.read_text())["comparisons"] if path.exists() else []
            found = decide({each["comparison"]: each["ratio"] for each in kept})
            lines += [f"{one.name}, {written(each)}" for each in found]
    return lines


def slices_of(tier: int) -> list[Slice]:
    """Slices up to a tier.

    Raises:
        SettingsError: tier 2 is not installed.
    """
    missing = [name for name in TIER_TWO if importlib.util.find_spec(name) is None]
    if tier > 1 and missing:
        raise SettingsError(
            f"tier {tier} needs {', '.join(missing)}: make gpu-environment, or --tier 1"
        )
    return [one for one in SLICES if one.tier <= tier]


def main(arguments: Sequence[str]) -> None:
    """Run what is left, and say how it ended."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.first_gpu",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--tier", type=int, choices=(1, 2), default=1)
    parser.add_argument("--seconds", type=positive_number, default=CALL_S, help="of a call")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    done, left = run_slices(slices_of(options.tier), options.out, call_s=options.seconds)
    for result in done:
        _LOG.info("%s: %s after %.0f s", result.name, result.ended.value, result.seconds)
    for line in comparison_lines(SLICES, options.out):
        _LOG.info("%s", line)
    _LOG.info("results in %s; left: %s", options.out, [one.name for one in left] or "nothing")


if __name__ == "__main__":
    run(main)
