"""What an update gains by computing the prompt of a group once.

    python -m tests.bench.shared_prompts runs/.../snapshots/000040.npz ...

A snapshot holds a recorded step of RL. Trainers take the first update of that step, with its routes
replayed, on its batch as it is and on one with another first token in every sequence, in which no
two sequences share a row. The two take turns within one run; ratios are of CPU seconds, round by
round (engines.py).
"""

import argparse
import logging
import statistics
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from data_schemas.machine_settings import LayoutSettings, MachineSettings, TrainerKind
from tasks.engines.protocols import TokenBatch, Trainer
from tasks.engines.select import open_trainer
from tasks.engines.support import require
from tasks.engines.trainer_megatron.micro_batches import divide, prompt_lengths
from tasks.errors import SettingsError
from tasks.models.model_folder import SHIPPED
from tasks.platform.command_line import positive, run
from tasks.rl import step_snapshot
from tasks.rl.batch import build
from tests.bench.engines import Turn, compare_paces, take_turns, trainer_turn

APART = "prompt per answer"


def recorded_update(path: Path) -> tuple[TokenBatch, int]:
    """Rebuild the batch of the first update of a recorded step; also returns its vocabulary."""
    snapshot = step_snapshot.decode(path.read_bytes())
    count = int(snapshot.outputs["update_sizes"][0])
    rows = torch.from_numpy(snapshot.outputs["update_rows"][:count])
    return build(snapshot.settings, snapshot.groups).tokens.select(rows), snapshot.vocabulary


def without_sharing(batch: TokenBatch, vocabulary: int) -> TokenBatch:
    """Give every sequence another first token.

    Raises:
        SettingsError: there are more sequences than tokens.
    """
    count = len(batch.lengths_N)
    if count > vocabulary:
        raise SettingsError(f"{count} sequences cannot begin with {vocabulary} different tokens")
    tokens_NT = batch.tokens_NT.clone()
    tokens_NT[:, 0] = torch.arange(count)
    return replace(batch, tokens_NT=tokens_NT)


def packed_rows(batch: TokenBatch, max_tokens: int) -> int:
    """Rows that one rank computes of a batch outside of the core of attention."""
    prefixes = batch.prefixes
    (micros,) = divide(
        batch.lengths_N.tolist(),
        num_ranks=1,
        max_tokens=max_tokens,
        prefixes=prefixes,
        prompts=prompt_lengths(batch),
    )
    return int(batch.lengths_N.sum()) - sum(sum(prefixes.among(micro)) for micro in micros)


def speed_up(trainer: Trainer, batch: TokenBatch, vocabulary: int, rounds: int) -> list[float]:
    """Ratio of the CPU seconds without and with a shared prompt: median, least, largest."""
    sides: dict[str, Turn] = {
        "prompt once": trainer_turn(trainer, batch),
        APART: trainer_turn(trainer, without_sharing(batch, vocabulary)),
    }
    once = compare_paces(take_turns(sides, rounds), APART, by_clock=False)[0]
    return [once.ratio, once.low, once.high]


def main(arguments: Sequence[str]) -> None:
    """Train and print."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.shared_prompts",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("snapshots", type=Path, nargs="+", help="of recorded steps")
    parser.add_argument("--model", type=Path, default=SHIPPED, help="Hugging Face directory")
    parser.add_argument("--rounds", type=positive, default=10, help="counted; one more warms up")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    batches = [recorded_update(path) for path in options.snapshots]
    table = Table(title="updates: CPU seconds of a prompt per answer / prompt once", box=None)
    for head in ("trainer", "tokens", "rows", "ratio", "over the rounds"):
        table.add_column(head, justify="right")
    for kind in TrainerKind:
        engines = MachineSettings(trainer=kind, layout=LayoutSettings())
        try:
            require(engines)
        except SettingsError:
            continue
        ratios = []
        with closing(open_trainer(engines, options.model)) as trainer:
            for batch, vocabulary in batches:
                ratio, low, high = speed_up(trainer, batch, vocabulary, options.rounds)
                tokens = int(batch.lengths_N.sum())
                rows = packed_rows(batch, engines.layout.micro_batch_tokens)
                counts = f"{tokens:,}", f"{rows:,}"
                table.add_row(kind.value, *counts, f"{ratio:.2f}", f"{low:.2f} .. {high:.2f}")
                ratios.append(ratio)
        middle = f"{statistics.median(ratios):.2f}"
        table.add_row(kind.value, "", "", middle, f"{min(ratios):.2f} .. {max(ratios):.2f} (steps)")
    Console(highlight=False).print(table)


if __name__ == "__main__":
    # Of the process, so not in main, which tests call.
    logging.getLogger("tasks").setLevel(logging.ERROR)
    run(main)
