"""Verdicts per second, and the time they add to a step: `python -m tests.bench.rewards`.

Rates: every verifier called one by one in this process, and through the scoring service with 1, 2,
4 ... workers, in the same run; for algebra also math-verify, called in this process as reward
functions usually do.

Overlap: a step's responses end when a trace of lengths says so, at a given decode rate and number
of slots, filled in order as a continuously batching engine does. The verdicts are real, only the
generation is waited for. Reported is what passes between the last response and the last verdict:
scored one by one after the rollouts, by the service after them, and by the service meanwhile.
"""

import argparse
import heapq
import json
import os
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from tokenizers import Tokenizer

from data_schemas.rl_settings import RewardSettings
from data_schemas.rollouts import ScoringRequest
from data_schemas.rows import Problem
from data_schemas.verdicts import Verdict
from tasks.engines.scoring import open_scoring
from tasks.errors import SettingsError
from tasks.gym import table
from tasks.models.model_folder import SHIPPED
from tasks.platform.command_line import positive, positive_number, run
from tests.bench.reward_cases import Case, cases
from tests.examiner.timing import math_verify

"""Only its tokenizer is used."""
WARM_UP = 32
Score = Callable[[Sequence[Problem], Sequence[str]], list[Verdict]]


@dataclass(frozen=True, slots=True)
class Rates:
    """Verdicts per second on one kind of work."""

    name: str
    serial: float
    service: tuple[float, ...]
    """For each number of workers."""
    math_verify: float | None


@dataclass(frozen=True, slots=True)
class Added:
    """Seconds a step's rewards add to it."""

    serial_s: float
    after_s: float
    overlapped_s: float
    generation_s: float


def rates(work: Sequence[Case], workers: Sequence[int]) -> list[Rates]:
    """Measure every kind of work; processes are started and imports done before the clock."""
    service = {count: [0.0] * len(work) for count in workers}
    for count in workers:
        with open_scoring(SHIPPED, RewardSettings(), num_workers=count) as scorer:
            for place, case in enumerate(work):
                service[count][place] = _warm_rate(scorer.score, case)
    found = [
        Rates(
            case.name,
            _warm_rate(table.score_batch, case),
            tuple(service[count][place] for count in workers),
            _warm_rate(_math_verify, case) if "answer" in case.name else None,
        )
        for place, case in enumerate(work)
    ]
    table.close()
    return found


def finish_times(lengths: Sequence[float], slots: int, tokens_per_s: float) -> list[float]:
    """When each response ends, if a free slot takes the next at once; seconds from the start."""
    free = [0.0] * slots
    ends = []
    for length in lengths:
        ends.append(heapq.heappop(free) + length / tokens_per_s)
        heapq.heappush(free, ends[-1])
    return ends


def measure_added(work: Sequence[Case], ends: Sequence[float]) -> Added:
    """Score a step's responses in three ways; `ends` says when each is there."""
    source = random.Random(0)
    pool = [pair for case in work for pair in zip(case.problems, case.responses, strict=True)]
    chosen = [source.choice(pool) for _ in ends]
    problems, responses = [p for p, _ in chosen], [r for _, r in chosen]
    table.score_batch(problems[:50], responses[:50])
    serial_s, expected = _timed(lambda: table.score_batch(problems, responses))
    tokenizer = Tokenizer.from_file(str(SHIPPED / "tokenizer.json"))
    items = [
        ScoringRequest(problem, str(place), 0, 1, np.asarray(tokenizer.encode(text).ids, np.int32))
        for place, (problem, text) in enumerate(chosen)
    ]
    with open_scoring(SHIPPED, RewardSettings()) as scorer:
        scorer.check_canaries()
        scorer.score(problems[:50], responses[:50])
        after_s, _ = _timed(lambda: scorer.score(problems, responses))
        start = time.perf_counter()
        for end, place in sorted((end, place) for place, end in enumerate(ends)):
            time.sleep(max(0.0, start + end - time.perf_counter()))
            scorer.submit(items[place])
        found = scorer.gather()
        overlapped_s = time.perf_counter() - start - max(ends)
    table.close()
    assert expected == [found[str(place), 0].verdict for place in range(len(items))]
    return Added(serial_s, after_s, max(0.0, overlapped_s), max(ends))


def main(arguments: Sequence[str]) -> None:
    """Measure and print; see --help."""
    options = _arguments(arguments)
    console = Console(width=110)
    workers = [count for count in (1, 2, 4, 8, 16, 32) if count <= max(1, os.cpu_count() or 1)]
    work = cases(options.count)
    measured = rates(work, workers)
    console.print(_rates_table(measured, workers))
    lengths = _lengths(options.trace, options.responses)
    step = measure_added(work, finish_times(lengths, options.slots, options.rate))
    console.print(_added_table(step, len(lengths)))
    if options.plot:
        _plot(options.plot, measured, workers, step)


def _arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=positive, default=200, help="responses per verifier")
    parser.add_argument("--trace", type=Path, help='JSON lines {"tokens": 123}; default: drawn')
    parser.add_argument("--responses", type=positive, default=256, help="in the drawn step")
    parser.add_argument("--slots", type=positive, default=64, help="sequences decoded at once")
    parser.add_argument(
        "--rate", type=positive_number, default=150.0, help="tokens per second and sequence"
    )
    parser.add_argument("--plot", type=Path, help="PNG to write")
    return parser.parse_args(arguments)


def _lengths(trace: Path | None, count: int) -> list[float]:
    if trace is not None:
        try:
            lines = trace.read_text().splitlines()
            return [float(json.loads(line)["tokens"]) for line in lines if line.strip()]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise SettingsError(f"--trace {trace} is no file of such lines: {error}") from error
    source = random.Random(0)
    # Median 300 tokens, a tail of ten times that: the shape of reasoning responses.
    return [min(4096.0, max(8.0, source.lognormvariate(5.7, 0.9))) for _ in range(count)]


def _math_verify(problems: Sequence[Problem], responses: Sequence[str]) -> list[Verdict]:
    """Score in this process, as reward functions usually do."""
    return [math_verify(problem, text) for problem, text in zip(problems, responses, strict=True)]


def _rate(score: Score, case: Case) -> float:
    seconds, _ = _timed(lambda: score(case.problems, case.responses))
    return len(case.problems) / seconds


def _warm_rate(score: Score, case: Case) -> float:
    """Measure after enough responses for every worker to have imported what it needs."""
    score(case.problems[:WARM_UP], case.responses[:WARM_UP])
    return _rate(score, case)


def _timed(call: Callable[[], list[Verdict]]) -> tuple[float, list[Verdict]]:
    start = time.perf_counter()
    verdicts = call()
    return time.perf_counter() - start, verdicts


def _rates_table(measured: Sequence[Rates], workers: Sequence[int]) -> Table:
    shown = Table(title="verdicts per second")
    names = ["one by one", *(f"service, {n}" for n in workers), "math-verify in process"]
    for name in ("verifier", *names):
        shown.add_column(name, justify="left" if name == "verifier" else "right")
    for row in measured:
        values = [row.serial, *row.service]
        baseline = "" if row.math_verify is None else f"{row.math_verify:,.0f}"
        shown.add_row(row.name, *(f"{value:,.0f}" for value in values), baseline)
    return shown


def _added_table(step: Added, responses: int) -> Table:
    shown = Table(title=f"{responses} responses, generated in {step.generation_s:.1f} s")
    for name in ("rewards", "seconds added to the step", "saved"):
        shown.add_column(name, justify="left" if name == "rewards" else "right")
    for name, seconds in (
        ("one by one after the rollouts", step.serial_s),
        ("service after the rollouts", step.after_s),
        ("service during the rollouts", step.overlapped_s),
    ):
        shown.add_row(name, f"{seconds:.3f}", f"{1 - seconds / step.serial_s:.0%}")
    return shown


def _plot(path: Path, measured: Sequence[Rates], workers: Sequence[int], step: Added) -> None:
    from matplotlib.figure import Figure  # imported only for --plot

    figure = Figure(figsize=(11, 4), layout="constrained")
    speed, time_axis = figure.subplots(1, 2)
    for row in measured:
        speed.plot(workers, row.service, marker="o", label=row.name)
    speed.set(xscale="log", yscale="log", xlabel="workers", ylabel="verdicts per second")
    speed.legend(fontsize="x-small")
    names = ["one by one\nafter", "service\nafter", "service\nduring"]
    time_axis.bar(names, [step.serial_s, step.after_s, step.overlapped_s])
    time_axis.set(ylabel="seconds added to a step")
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    run(main)
