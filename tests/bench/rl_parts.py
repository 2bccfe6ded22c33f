"""What takes the CPU seconds of a step of RL: `python -m tests.bench.rl_parts`.

The steps are those of `tests.bench.rl_step`, on our side alone: the loop of production with the
shipped model, in one thread of one process. A timer of CPU seconds interrupts the process; what it
used since the interrupt before counts for the functions on its stack then, of which the innermost
that is known names the work and the outermost the part of the step. A profiler that counts calls
would make a step of many small ones half as long again.
"""

import argparse
import json
import logging
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import torch

from tasks.cores import LIMIT
from tasks.lab.study import evidence_file
from tasks.models.model_folder import SHIPPED
from tasks.platform.command_line import positive, run
from tasks.platform.tables import markdown_table
from tasks.rl.phase import Phase, train
from tasks.store.files import write_bytes
from tests.bench.rl_job import InlineScorer, problems
from tests.bench.rl_step import settings_of

INTERVAL_S = 0.002
"""CPU seconds between two interrupts."""
SHOWN = 10
PARTS = {
    "tasks.rl.collector.Collector.collect": "rollouts",
    "tasks.rl.step.old_scores": "old log-probs",
    "tasks.rl.step.update": "update",
    "tasks.rl.step.sync_weights": "weight sync",
}
"""Functions that are a part of a step."""
RECORDS = "batch, ledger, metrics and state"
"""The part of a step that is none of those."""
ROLLOUT, TRAINER = "tasks.engines.embedded.rollout_forward", "tasks.engines.embedded.trainer"
WORK = {
    f"{ROLLOUT}.DecoderForward.decode": "attention over the cache",
    f"{ROLLOUT}.DecoderForward.prefill": "attention of prompts",
    f"{ROLLOUT}.DecoderForward.logits": "logits",
    f"{ROLLOUT}._Layer.project": "queries, keys and values",
    f"{ROLLOUT}._Layer.finish": "output of attention",
    f"{ROLLOUT}._Layer.feed": "routers and norms",
    "tasks.algorithms.expert_products": "experts",
    "tasks.engines.embedded.sampling": "drawing tokens",
    "tasks.engines.embedded.slots": "slots",
    "tasks.engines.embedded.packed_attention": "attention, forward",
    "transformers.integrations.moe": "experts, forward",
    f"{TRAINER}.TorchTrainer._hidden": "other layers, forward",
    "tasks.algorithms.logprobs": "output layer and its gradient",
    "torch.autograd.graph": "backward",
    "torch.optim.adamw": "optimizer",
    "torch.optim.optimizer": "optimizer",
    "torch.nn.utils.clip_grad": "optimizer",
    "tasks.algorithms.packing": "packing",
    f"{TRAINER}.divide": "packing",
}
"""Functions, or modules with all of theirs, by what they do."""
OTHER = "other"


def names_on(frame: FrameType | None) -> Iterator[str]:
    """Yield the full names of the functions on a stack, innermost first."""
    while frame is not None:
        yield f"{frame.f_globals.get('__name__', '')}.{frame.f_code.co_qualname}"
        frame = frame.f_back


def item_of(names: Sequence[str]) -> str:
    """Name part and work of a stack.

    Args:
        names: full names of its functions, innermost first.
    """
    part, work = RECORDS, OTHER
    for name in names:
        part = PARTS.get(name, part)
        if work == OTHER:
            # The longest name that is known: a class or a module stands for all inside of it.
            pieces = name.split(".")
            known = (WORK.get(".".join(pieces[:end])) for end in range(len(pieces), 0, -1))
            work = next(filter(None, known), OTHER)
    return part if part == RECORDS else f"{part}: {work}"


@contextmanager
def sampling(seconds: Counter[str]) -> Iterator[None]:
    """Add the CPU seconds of the block to their items.

    Python handles an interrupt when torch's kernel has ended, and several as one: so what was used
    since the one before is added, not the interval.
    """
    before = time.process_time()

    def add(_signal: int, frame: FrameType | None) -> None:
        nonlocal before
        now = time.process_time()
        seconds[item_of(list(names_on(frame)))] += now - before
        before = now

    earlier = signal.signal(signal.SIGPROF, add)
    signal.setitimer(signal.ITIMER_PROF, INTERVAL_S, INTERVAL_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, earlier)


def measure(steps: int) -> Counter[str]:
    """Return the CPU seconds of steps by item; one step before them warms up."""
    seconds = Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        phase = Phase(settings_of(steps + 1), SHIPPED, problems(256), Path(folder), "bench")
        records = train(phase, InlineScorer(SHIPPED))
        next(records)
        with sampling(seconds):
            for _ in range(steps):
                next(records)
        records.close()
    return seconds


def rows_of(shares: dict[str, float]) -> list[tuple[str, str]]:
    """Lay out the dearest items and the sum of the others."""
    dearest = sorted(shares.items(), key=lambda item: -item[1])
    rows = [(name, f"{share:.1%}") for name, share in dearest[:SHOWN]]
    return [*rows, ("the others", f"{sum(share for _, share in dearest[SHOWN:]):.1%}")]


def main(arguments: Sequence[str]) -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.rl_parts",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--steps", type=positive, default=20)
    parser.add_argument("--out", type=Path, help="a JSON file of the numbers")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    os.environ[LIMIT] = "1"  # only this process is counted
    seconds = measure(options.steps)
    whole = seconds.total()
    shares = {name: one / whole for name, one in seconds.most_common()}
    sys.stdout.write(
        f"{whole / options.steps:.2f} CPU seconds a step\n"
        f"{markdown_table(('of a step', 'share'), rows_of(shares))}\n"
    )
    if options.out:
        command = f"python -m tests.bench.rl_parts --steps {options.steps}"
        content = {
            **evidence_file.origin(command, "tasks.rl.phase"),
            "steps": options.steps,
            "step_cpu_s": whole / options.steps,
            "rows": rows_of(shares),
            "shares": shares,
        }
        write_bytes(options.out, (json.dumps(content, indent=1) + "\n").encode())


if __name__ == "__main__":
    # Of the process, so not in main: warnings would tear the table.
    logging.getLogger("tasks").setLevel(logging.ERROR)
    run(main)
