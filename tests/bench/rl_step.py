"""One full RL step against TRL's GRPOTrainer.

    python -m tests.bench.rl_step [steps] [threads]
    python -m tests.bench.rl_step [steps] --clock

Same model, questions, group size, limit on the answers, rule of reward and number of updates. The
two take turns within one run, step by step. TRL gets its best: grouped expert products, no
checkpointing, no logs, no saves; what it does between two steps is not counted. Ours is the loop of
production, ledger included.

What counts are the CPU seconds of this process, which hardly depend on what else the machine does;
both have the same threads and this process alone. With `--clock` it is seconds by the clock, and
each has the cores in its own way: TRL threads, ours processes of one thread.

Tokens are generated tokens: the two draw differently, so their answers differ in length.
"""

import argparse
import json
import logging
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from transformers import (
    PrinterCallback,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)

from data_schemas.rl_settings import NO_SKIPS, RLSettings, ZeroVarianceSettings
from data_schemas.rows import Domain
from tasks.cores import LIMIT, num_cores
from tasks.engines.chat import load_tokenizer
from tasks.engines.embedded.hf_model import load_model
from tasks.errors import SettingsError
from tasks.lab.study import evidence_file
from tasks.models.model_folder import SHIPPED
from tasks.platform.command_line import positive, run
from tasks.rl.phase import Phase, train
from tasks.rl.state import StepRecord
from tasks.store.files import write_bytes
from tests.bench.rl_job import InlineScorer, problems, reward

NEW_TOKENS = 48
WARMUP_STEPS = 1
"""Turns that are not counted: the first allocates."""
PARTS: tuple[str, ...] = ("collect", "old_logprobs", "update", "weight_sync")


@dataclass(frozen=True, slots=True)
class Turn:
    """One step of one side."""

    tokens: int
    seconds: float
    parts: dict[str, float] = field(default_factory=dict)


def settings_of(steps: int) -> RLSettings:
    """The embedded defaults, but no prompt is skipped: TRL skips none."""
    return RLSettings(
        domains={Domain.MATHS: 1.0},
        steps=steps,
        max_new_tokens=NEW_TOKENS,
        zero_variance=ZeroVarianceSettings(skip=NO_SKIPS),
        commit_every=steps,
    )


def our_turn(records: Iterator[StepRecord], *, by_clock: bool) -> Turn:
    """Do the next step of the loop."""
    threads = torch.get_num_threads()
    if by_clock:
        torch.set_num_threads(1)
    started = now(by_clock=by_clock)
    record = next(records)
    seconds = now(by_clock=by_clock) - started
    torch.set_num_threads(threads)
    tokens = int(record.report.metrics["rollout/generated_tokens"])
    parts = record.timing.seconds if by_clock else record.timing.cpu_seconds
    return Turn(tokens, seconds, dict(parts))


def now(*, by_clock: bool) -> float:
    """Read the clock, or the CPU seconds of this process."""
    return time.perf_counter() if by_clock else time.process_time()


class Alternation(TrainerCallback):
    """Times TRL's steps and lets the other side have a turn after each."""

    def __init__(
        self,
        updates: int,
        generated: Callable[[], int],
        other: Callable[[], Turn],
        *,
        by_clock: bool,
    ):
        self._by_clock = by_clock
        self._updates = updates
        self._generated = generated
        self._other = other
        self._started = 0.0
        self._seconds = 0.0
        self._tokens = 0
        self.theirs: list[Turn] = []
        self.ours: list[Turn] = []

    def on_step_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Start the clock."""
        self._started = now(by_clock=self._by_clock)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Stop it; a full step is all updates on one generation."""
        self._seconds += now(by_clock=self._by_clock) - self._started
        if state.global_step % self._updates == 0:
            self.theirs.append(Turn(self._generated() - self._tokens, self._seconds))
            self._seconds, self._tokens = 0.0, self._generated()
            self.ours.append(self._other())


def alternate(steps: int, folder: Path, *, by_clock: bool) -> tuple[list[Turn], list[Turn]]:
    """Run both sides in turns; returns ours and theirs.

    Raises:
        SettingsError: trl is not installed.
    """
    try:
        from datasets import Dataset
        from trl.trainer.grpo_config import GRPOConfig
        from trl.trainer.grpo_trainer import GRPOTrainer
    except ImportError as error:
        raise SettingsError("the benchmark needs trl: pip install trl==1.16.0") from error
    settings, drawn = settings_of(steps), problems(256)
    lengths: list[int] = []

    def score(
        completions: Sequence[Sequence[dict[str, str]]],
        completion_ids: Sequence[Sequence[int]],
        **_: object,
    ) -> list[float | None]:
        lengths.extend(map(len, completion_ids))
        return [reward(completion[0]["content"]) for completion in completions]

    config = GRPOConfig(
        output_dir=str(folder / "trl"),
        per_device_train_batch_size=settings.prompts_per_step
        * settings.group_size
        // settings.num_mini_batches,
        steps_per_generation=settings.num_mini_batches,
        gradient_accumulation_steps=1,
        max_steps=steps * settings.num_mini_batches,
        num_generations=settings.group_size,
        max_completion_length=NEW_TOKENS,
        temperature=1.0,
        beta=0.0,
        router_aux_loss_coef=0.0,
        learning_rate=settings.learning_rate,
        gradient_checkpointing=False,
        bf16=False,
        use_cpu=True,
        logging_strategy="no",
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
    )
    rows = [{"prompt": [{"role": "user", "content": p.messages[0].content}]} for p in drawn]
    phase = Phase(settings, SHIPPED, drawn, folder / "state", "bench")
    records = train(phase, InlineScorer(SHIPPED))
    turns = Alternation(
        settings.num_mini_batches,
        lambda: sum(lengths),
        lambda: our_turn(records, by_clock=by_clock),
        by_clock=by_clock,
    )
    trainer = GRPOTrainer(
        model=load_model(SHIPPED),
        reward_funcs=score,
        args=config,
        train_dataset=Dataset.from_list(rows),
        processing_class=load_tokenizer(SHIPPED),
        callbacks=[turns],
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    return turns.ours[WARMUP_STEPS:], turns.theirs[WARMUP_STEPS:]


def summary(ours: Sequence[Turn], theirs: Sequence[Turn]) -> dict[str, Any]:
    """Tokens per CPU second, their ratio turn by turn, and where our time goes."""
    speeds = [
        [turn.tokens / turn.seconds for turn in side if turn.seconds > 0] for side in (ours, theirs)
    ]
    ratios = sorted(a / b for a, b in zip(*speeds, strict=True))
    whole = sum(turn.seconds for turn in ours)
    parts = {name: sum(turn.parts[name] for turn in ours) / whole for name in PARTS}
    return {
        "turns": len(ratios),
        "ratio": round(statistics.median(ratios), 2),
        "low": round(ratios[0], 2),
        "high": round(ratios[-1], 2),
        "ours": _side(ours, speeds[0]),
        "trl": _side(theirs, speeds[1]),
        "shares": parts | {"the rest": 1.0 - sum(parts.values())},
    }


def _side(turns: Sequence[Turn], speeds: Sequence[float]) -> dict[str, float]:
    seconds = sum(turn.seconds for turn in turns) / len(turns)
    return {"tokens_per_s": round(statistics.median(speeds)), "step_s": round(seconds, 2)}


def table(result: dict[str, Any]) -> str:
    """Lay it out."""
    lines = [
        *(
            f"{says:4} {result[name]['tokens_per_s']:8.0f} generated tokens per "
            f"{'s by the clock' if result['by_clock'] else 'CPU s'}, "
            f"{result[name]['step_s']:.2f} s a step"
            for says, name in (("ours", "ours"), ("TRL", "trl"))
        ),
        f"ratio {result['ratio']:.2f} (median of {result['turns']} turns, "
        f"{result['low']:.2f} to {result['high']:.2f})",
        *(f"  {name:14}{share:7.1%}" for name, share in result["shares"].items()),
    ]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str]) -> None:
    """Run the benchmark and write its table."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.rl_step",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("steps", type=positive, nargs="?", default=6)
    parser.add_argument("threads", type=positive, nargs="?", default=1)
    parser.add_argument("--clock", action="store_true", help="all cores, seconds by the clock")
    parser.add_argument("--out", type=Path, help="file that the page of this is rendered from")
    options = parser.parse_args(arguments)
    torch.set_num_threads(num_cores() if options.clock else options.threads)
    if not options.clock:
        os.environ[LIMIT] = "1"  # only this process is counted
    logging.getLogger("tasks").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        turns = alternate(options.steps, Path(folder), by_clock=options.clock)
    result = summary(*turns) | {"by_clock": options.clock, "cores": num_cores()}
    sys.stdout.write(table(result))
    if options.out:
        how = "--clock" if options.clock else options.threads
        command = f"python -m tests.bench.rl_step {options.steps} {how}"
        content = {**evidence_file.origin(command, "tasks.rl.phase"), **result}
        write_bytes(options.out, (json.dumps(content, indent=1) + "\n").encode())


if __name__ == "__main__":
    run(main)
