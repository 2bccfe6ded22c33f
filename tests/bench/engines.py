"""Comparison of engines: `python -m tests.bench.engines --help`.

One model, the same prompts, and the same number of tokens for all: the copy of the model that is
measured ends a response with its padding token, which no training ever made likely, so every answer
runs to its limit. The sides take turns within one run, in an order that rotates from round to
round, so that whatever else the machine does falls on all of them; ratios are taken round by
round, without a GPU of the CPU seconds of this process, which other work hardly touches: no side
has a process of its own. The first round is not counted: it allocates and compiles.

The work of a rollout engine in addition to sampling is included: log-probs and recorded routes.
Plain `generate` does neither. An update is one optimizer step with the routes replayed.
"""

import argparse
import json
import logging
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from transformers import AutoTokenizer, GenerationConfig, Qwen3MoeConfig, Qwen3MoeForCausalLM
from transformers.utils import logging as transformers_logging

from data_schemas.machine_settings import (
    LayoutSettings,
    MachineSettings,
    Precision,
    RolloutKind,
    TrainerKind,
)
from data_schemas.rollouts import Rollout
from tasks.algorithms.packing import pad_rows
from tasks.algorithms.routing import Traces
from tasks.cores import LIMIT
from tasks.engines.chat import load_tokenizer
from tasks.engines.embedded.hf_model import load_on_device
from tasks.engines.protocols import Request, RolloutEngine, Sampling, TokenBatch, Trainer
from tasks.engines.select import open_rollout, open_trainer
from tasks.engines.support import require
from tasks.errors import SettingsError
from tasks.models.model_folder import SHIPPED, check_model_folder
from tasks.platform.command_line import positive, run

DTYPES = {Precision.FP32: torch.float32, Precision.BF16: torch.bfloat16}
EMBEDDED = "embedded"
"""The side that the others are divided by."""
Turn = Callable[[int], int]
"""Does the work of a round, given its number; returns its tokens."""


@dataclass(frozen=True, slots=True)
class Load:
    """The workload of every side in a round."""

    prompts: int
    samples: int
    """Answers to a prompt."""
    new_tokens: int
    """Tokens of an answer."""


@dataclass(frozen=True, slots=True)
class Pace:
    """One side in one round."""

    tokens_s: float
    """By the clock."""
    tokens_cpu_s: float
    """By the time this process had a core."""


@dataclass(frozen=True, slots=True)
class Speed:
    """One side of a comparison."""

    side: str
    tokens_s: float
    tokens_cpu_s: float
    """Both medians over the rounds."""
    ratio: float
    """To the embedded engine: median of the rounds' ratios, and their ends."""
    low: float
    high: float


def take_turns(sides: Mapping[str, Turn], rounds: int) -> dict[str, list[Pace]]:
    """Let all sides work once a round; returns how fast they were, first round left out."""
    names = list(sides)
    paces: dict[str, list[Pace]] = {name: [] for name in names}
    for number in range(rounds + 1):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            started, busy = time.perf_counter(), time.process_time()
            tokens = sides[name](number)
            seconds, busy = time.perf_counter() - started, time.process_time() - busy
            if number:
                paces[name].append(Pace(tokens / seconds, tokens / busy))
    return paces


def compare_paces(paces: Mapping[str, Sequence[Pace]], base: str, *, by_clock: bool) -> list[Speed]:
    """Divide every side by the base, round by round.

    Args:
        by_clock: True takes the ratio of tokens per second, False that of CPU seconds.
    """

    def pace(one: Pace) -> float:
        return one.tokens_s if by_clock else one.tokens_cpu_s

    rows = []
    for side, mine in paces.items():
        ratios = sorted(
            pace(one) / pace(other) for one, other in zip(mine, paces[base], strict=True)
        )
        rows.append(
            Speed(
                side,
                tokens_s=statistics.median(one.tokens_s for one in mine),
                tokens_cpu_s=statistics.median(one.tokens_cpu_s for one in mine),
                ratio=statistics.median(ratios),
                low=ratios[0],
                high=ratios[-1],
            )
        )
    return rows


def endless_copy(model: Path, folder: Path) -> Path:
    """Copy a model whose responses then end with the padding token only.

    Raises:
        SettingsError: it has none.
    """
    shutil.copytree(model, folder)
    path = folder / "tokenizer_config.json"
    settings = json.loads(path.read_text())
    if not settings.get("pad_token"):
        raise SettingsError(f"{model}: the benchmark needs a tokenizer with a pad_token")
    path.write_text(json.dumps(settings | {"eos_token": settings["pad_token"]}))
    for name in ("config.json", "generation_config.json"):  # whose tokens end a response, too
        if (folder / name).exists():
            config = json.loads((folder / name).read_text())
            config["eos_token_id"] = config.get("pad_token_id")
            (folder / name).write_text(json.dumps(config))
    return folder


def random_moe(**other: Any) -> Qwen3MoeConfig:
    """Describe a larger sibling of the shipped base: 99 M parameters, of which 16 M act on a token.

    Weights drawn this wide make sharp distributions, in which the padding token, whose embedding
    is zero, has a probability of 5e-5.

    Args:
        other: parts of the shape that are different.
    """
    shape: dict[str, Any] = {
        "hidden_size": 512,
        "num_hidden_layers": 6,
        "num_attention_heads": 8,
        "head_dim": 64,
        "num_experts": 32,
        "num_experts_per_tok": 4,
        "moe_intermediate_size": 320,
        "initializer_range": 0.12,
        "dtype": torch.float32,
    }
    return Qwen3MoeConfig.from_pretrained(SHIPPED, **shape | other)


def random_model(folder: Path, config: Qwen3MoeConfig | None = None) -> Path:
    """Write a model that learnt nothing, the same one every time, with the shipped tokenizer."""
    torch.manual_seed(0)
    Qwen3MoeForCausalLM(config or random_moe()).save_pretrained(folder)
    AutoTokenizer.from_pretrained(SHIPPED).save_pretrained(folder)
    return folder


def requests_of(load: Load, vocabulary: int) -> list[Request]:
    """Make prompts of 16 to 48 random tokens; they share no beginning."""
    draw = np.random.default_rng(0)
    lengths = draw.integers(16, 49, load.prompts)
    return [
        Request(str(place), draw.integers(0, vocabulary, size).astype(np.int32), load.samples)
        for place, size in enumerate(lengths)
    ]


def engine_turn(engine: RolloutEngine, requests: Sequence[Request], load: Load) -> Turn:
    """Roll out; a round's number is its seed."""

    def turn(number: int) -> int:
        rollouts = engine.generate(requests, Sampling(load.new_tokens, 1.0, number))
        return sum(len(rollout.response_tokens) for rollout in rollouts)

    return turn


def generate_turn(
    model: Path, precision: Precision, requests: Sequence[Request], load: Load
) -> Turn:
    """Answer with `generate` of transformers, all prompts in one left-padded batch."""
    network = load_on_device(model, dtype=DTYPES[precision])
    longest = max(len(request.prompt_tokens) for request in requests)
    tokens_NT = torch.zeros((len(requests), longest), dtype=torch.int64)
    mask_NT = torch.zeros_like(tokens_NT)
    for row, request in enumerate(requests):
        size = len(request.prompt_tokens)
        tokens_NT[row, -size:] = torch.from_numpy(request.prompt_tokens.astype(np.int64))
        mask_NT[row, -size:] = 1
    network.generation_config = GenerationConfig(
        do_sample=True,
        top_k=0,
        max_new_tokens=load.new_tokens,
        num_return_sequences=load.samples,
        eos_token_id=None,
        pad_token_id=0,
    )

    def turn(number: int) -> int:
        torch.manual_seed(number)
        with torch.inference_mode():
            found_NT = network.generate(  # pyright: ignore
                tokens_NT.to(network.device), attention_mask=mask_NT.to(network.device)
            )
        return found_NT[:, longest:].numel()

    return turn


def training_batch(rollouts: Sequence[Rollout]) -> TokenBatch:
    """Pad rollouts and their routes; every response token has the same advantage."""
    rows, masks = [], []
    for rollout in rollouts:
        tokens = np.concatenate([rollout.prompt_tokens, rollout.response_tokens])
        rows.append(torch.from_numpy(tokens.astype(np.int64)))
        masks.append(torch.arange(len(tokens)) >= len(rollout.prompt_tokens))
    traces = tuple(rollout.trace.experts_TLK for rollout in rollouts if rollout.trace is not None)
    return TokenBatch(
        tokens_NT=pad_rows(rows, 0),
        lengths_N=torch.tensor([len(row) for row in rows]),
        response_NT=pad_rows(masks, False),
        experts_NTLK=Traces(traces, *traces[0].shape[1:]),
        columns={},
    )


def trainer_turn(trainer: Trainer, batch: TokenBatch) -> Turn:
    """Take one step; tokens are those of whole sequences, padding left out."""
    tokens = int(batch.response_NT.sum())

    def likelihood(logprobs_NT: torch.Tensor, micro: TokenBatch):
        return -(logprobs_NT * micro.response_NT).sum() / tokens, {}

    def turn(_: int) -> int:
        trainer.update(batch, likelihood, temperature=1.0, learning_rate=1e-6)
        return int(batch.lengths_N.sum())

    return turn


def rollout_speeds(model: Path, precision: Precision, load: Load, rounds: int) -> list[Speed]:
    """Compare what answers prompts, in one precision."""
    requests = requests_of(load, len(load_tokenizer(model)) // 2)
    with ExitStack() as opened:
        sides: dict[str, Turn] = {}
        for name, kind in ((EMBEDDED, RolloutKind.HF), ("vLLM", RolloutKind.VLLM)):
            engines = MachineSettings(rollout=kind, precision=precision)
            if _is_here(engines):
                engine = opened.enter_context(closing(open_rollout(engines, model)))
                sides[name] = engine_turn(engine, requests, load)
        sides["generate"] = generate_turn(model, precision, requests, load)
        return compare_paces(
            take_turns(sides, rounds), EMBEDDED, by_clock=torch.cuda.is_available()
        )


def trainers_here() -> dict[str, MachineSettings]:
    """Name the trainers to compare; on a GPU Megatron computes in no fp32."""
    sides = {
        EMBEDDED: MachineSettings(),
        "Megatron fp32": MachineSettings(trainer=TrainerKind.MEGATRON),
        "Megatron bf16": MachineSettings(
            trainer=TrainerKind.MEGATRON, layout=LayoutSettings(precision=Precision.BF16)
        ),
    }
    if torch.cuda.is_available():
        del sides["Megatron fp32"]
    return sides


def update_speeds(model: Path, load: Load, rounds: int) -> list[Speed]:
    """Compare trainers on what the embedded engine rolled out."""
    requests = requests_of(load, len(load_tokenizer(model)) // 2)
    with closing(open_rollout(MachineSettings(), model)) as engine:
        batch = training_batch(list(engine.generate(requests, Sampling(load.new_tokens, 1.0, 0))))
    with ExitStack() as opened:
        sides: dict[str, Turn] = {}
        for name, engines in trainers_here().items():
            if _is_here(engines):
                trainer = opened.enter_context(closing(open_trainer(engines, model)))
                sides[name] = trainer_turn(trainer, batch)
        return compare_paces(
            take_turns(sides, rounds), EMBEDDED, by_clock=torch.cuda.is_available()
        )


def speeds_table(title: str, speeds: Sequence[Speed]) -> Table:
    """One line per side."""
    table = Table(title=title, title_justify="left", title_style="", box=None)
    table.add_column("")
    for head in ("tokens/s", "tokens/CPU s", "to embedded", "over the rounds"):
        table.add_column(head, justify="right")
    for speed in speeds:
        spread = f"{speed.low:.2f} .. {speed.high:.2f}"
        table.add_row(
            speed.side,
            f"{speed.tokens_s:,.0f}",
            f"{speed.tokens_cpu_s:,.0f}",
            f"{speed.ratio:.2f}",
            spread,
        )
    return table


def _is_here(engines: MachineSettings) -> bool:
    try:
        require(engines)
    except SettingsError:
        return False
    return True


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read a command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.engines",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    model = parser.add_mutually_exclusive_group()
    model.add_argument("--model", type=Path, default=SHIPPED, help="Hugging Face directory")
    model.add_argument("--random", action="store_true", help="100M, 32 experts, random weights")
    parser.add_argument("--rounds", type=positive, default=5, help="counted; one more warms up")
    parser.add_argument("--prompts", type=positive, default=16)
    parser.add_argument("--samples", type=positive, default=8, help="answers to a prompt")
    parser.add_argument("--tokens", type=positive, default=64, help="of an answer")
    parser.add_argument("--threads", type=positive, default=1)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> None:
    """Run all comparisons and print them."""
    options, console = parse_arguments(arguments), Console(highlight=False)
    torch.set_num_threads(options.threads)
    os.environ[LIMIT] = "1"  # only this process is counted
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    load = Load(options.prompts, options.samples, options.tokens)
    sequences = load.prompts * load.samples
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = random_model(folder / "random") if options.random else options.model
        check_model_folder(source)
        model = endless_copy(source, folder / "model")
        for precision in (Precision.FP32, Precision.BF16):
            speeds = rollout_speeds(model, precision, load, options.rounds)
            title = f"rollouts, {precision.value}: {sequences} answers of {load.new_tokens} tokens"
            console.print(speeds_table(title, speeds))
        speeds = update_speeds(model, load, options.rounds)
        console.print(speeds_table(f"updates: {sequences} sequences, routes replayed", speeds))


if __name__ == "__main__":
    # Of the process, so not in main, which tests call: warnings would tear the bar.
    logging.getLogger("tasks").setLevel(logging.ERROR)
    run(main)
