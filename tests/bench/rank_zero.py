"""CPU seconds of rank 0 for the routes of one response, hop by hop; extrapolated to a step.

    python -m tests.bench.rank_zero [--others 2] [--responses 24] [--tokens 32768] ...
    python -m tests.bench.rank_zero --others 63 --responses 512 --tokens 1024 3072 --out FILE

A team of processes without a model: scripted engines hand over responses whose routes are
random, and a trainer that computes nothing is sent its shares. Counted is the time of rank 0's
process, all threads, in each part of a step that holds, copies or sends routes; of several steps
the least, because the memory of the first is used again and threads that wait for a loaded machine
look at their sockets meanwhile. A step of 32 replicas has fewer responses of rank 0's own.

Many ranks with responses of 32768 tokens do not fit the memory of a small machine. So the seconds
of shorter ones are continued by those that more bytes of routes were measured to take
(`Efficiency.rank_zero_byte_s`): below a megabyte, messages take the time, and no slope is seen.

Letters: T tokens, L MoE layers, K experts per token.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from data_schemas.machine_settings import Precision
from data_schemas.rl_settings import RLSettings
from data_schemas.rollouts import Rollout, RouterTrace, ScoredRollout, StopReason
from data_schemas.rows import Domain
from data_schemas.verdicts import Verdict
from tasks.algorithms.routing import missing_rows
from tasks.engines.partial_batch import AnyBatch, Share
from tasks.engines.protocols import EngineCounters, Request, Sampling, TokenBatch, TokenScores
from tasks.engines.recording_loss import ROW, RecordingLoss
from tasks.engines.request_queue import CallRequests, Requests
from tasks.engines.team.controller import current
from tasks.engines.team.in_team import in_team
from tasks.engines.team.member import read_rank_info
from tasks.engines.team.rollout import TeamRollout, checked
from tasks.engines.team.trainer import TeamTrainer
from tasks.lab.simulator.rates import Efficiency
from tasks.lab.study import evidence_file
from tasks.platform.command_line import positive, run
from tasks.rl import codec
from tasks.rl.batch import token_batch
from tasks.rl.collector import check_routes
from tasks.store.files import write_stream
from tests.engines.trainer_megatron.gloo_world import run_world

EXPERTS = 128
RESPONSES_OF_A_STEP = 4096
LONGEST = 2**15
"""Tokens of a response of that step."""
REPLICAS = 32
"""Replicas of 8 GPUs, the paper's step: 256 prompts, 16 responses each."""
UPDATES = 2
STEPS = 4
LIMIT_S = 1800
OWN = "own routes checked, hashed"


@dataclass(frozen=True, slots=True)
class Load:
    """One step."""

    others: int
    """Ranks beside rank 0."""
    responses: int
    tokens: int
    """Tokens of each, prompt included."""
    layers: int
    top: int

    @property
    def ranks(self) -> int:
        """Processes of the team."""
        return 1 + self.others

    @property
    def route_bytes(self) -> int:
        """Bytes of the routes of all responses, as they are recorded."""
        return self.responses * (self.tokens - 1) * self.layers * self.top


class RouteEngine:
    """A rollout engine whose responses were made when it was opened."""

    num_experts = EXPERTS
    policy_version = 0

    def __init__(self, load: Load) -> None:
        self._load, self.counters = load, EngineCounters()
        first = np.random.default_rng(read_rank_info().rank).integers(
            EXPERTS, size=(load.tokens - 1, load.layers, 1), dtype=np.uint8
        )
        steps = np.arange(load.top, dtype=np.uint8)
        self._experts_TLK = (first + 7 * steps) % EXPERTS

    def generate(self, requests: Requests, sampling: Sampling) -> Iterator[Rollout]:
        """Hand the responses over."""
        share = -(-self._load.responses // self._load.ranks)
        intake = CallRequests(requests, sampling, slots=share)
        while intake.open:
            for request in intake.take():
                for rollout in self._answers(request):
                    yield rollout
                    intake.end(rollout.problem_id, rollout.sample)

    def _answers(self, request: Request) -> Iterator[Rollout]:
        length = self._load.tokens - len(request.prompt_tokens)
        for sample in range(request.num_samples):
            yield Rollout(
                problem_id=request.problem_id,
                sample=request.first_sample + sample,
                prompt_tokens=request.prompt_tokens,
                response_tokens=np.full(length, sample, dtype=np.int32),
                logprobs=np.zeros(length, dtype=np.float32),
                trace=RouterTrace(self._experts_TLK),
                stop_reason=StopReason.LENGTH,
                policy_version=0,
            )


class RouteTrainer:
    """A trainer whose ranks are sent sequences in turn, with all layers, and speak of them."""

    def share(self, batch: AnyBatch) -> Share:
        """One sequence a micro-batch."""
        here = read_rank_info()
        rows = range(here.rank, len(batch.lengths_N), here.size)
        num_layers = (batch.route_shape or (0, 0))[0]
        return Share(tuple((row,) for row in rows), tuple(range(num_layers)))

    def score(self, batch: AnyBatch, *, temperature: float, record_routes: bool) -> TokenScores:
        """Zeros."""
        nothing_NT = torch.zeros(batch.response_NT.shape)
        return TokenScores(nothing_NT, nothing_NT, None)

    def update(self, batch: AnyBatch, loss: RecordingLoss, **_: object) -> dict[str, float]:
        """Call the loss for the rank's own sequences, as a micro-batch each."""
        for bucket in self.share(batch).buckets if read_rank_info().rank else ():
            part = batch.select(torch.tensor(bucket))
            loss(torch.zeros(part.tokens_NT.shape), part)
        return {}


@dataclass(slots=True)
class Hops:
    """CPU seconds by hop."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def hop(self, name: str) -> Iterator[None]:
        """Count the block."""
        before = time.process_time()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.process_time() - before


def no_loss(logprobs_NT: torch.Tensor, _: TokenBatch) -> tuple[torch.Tensor, dict[str, float]]:
    """Nothing to learn."""
    return logprobs_NT.sum(), {}


def measure(load: Load) -> dict[str, float]:
    """Take the step on this rank; rank 0 returns its CPU seconds by hop."""
    found: dict[str, float] = {}
    in_team(partial(_step, load, found))()
    return found


def _step(load: Load, found: dict[str, float]) -> None:
    controller = current()
    assert controller is not None
    engine = TeamRollout(
        controller,
        partial(RouteEngine, load),  # pyright: ignore[reportArgumentType]
        replicas=tuple((rank,) for rank in range(load.ranks)),
        dedicated=False,
        precision=Precision.FP32,
    )
    trainer = TeamTrainer(controller, RouteTrainer)  # pyright: ignore[reportArgumentType]
    for _ in range(STEPS):
        hops = Hops()
        _one_step(load, engine, trainer, hops)
        for name, seconds in hops.seconds.items():
            found[name] = min(seconds, found.get(name, seconds))


def _one_step(load: Load, engine: TeamRollout, trainer: TeamTrainer, hops: Hops) -> None:
    settings = RLSettings(domains={Domain.MATHS: 1.0})
    with hops.hop("rollouts received"):
        rollouts = list(engine.generate(_requests(load), Sampling(load.tokens, 1.0, 0)))
    with hops.hop(OWN):
        rollouts = [checked(rollout, EXPERTS) for rollout in rollouts]
    with hops.hop("routes checked"):
        for rollout in rollouts:
            check_routes(settings, rollout, EXPERTS)
    with hops.hop("batch"):
        items = [
            ScoredRollout(one, "", Verdict(score=1.0, reason="correct"), 0.0) for one in rollouts
        ]
        batch = token_batch(items, use_routes=True)
    with hops.hop("shares of the scores"):
        trainer.score(batch, temperature=1.0, record_routes=False)
    with hops.hop("missing routes"):
        assert batch.experts_NTLK is not None
        assert missing_rows(batch.experts_NTLK, batch.lengths_N) == 0
    with hops.hop("shares of the updates, loss calls"):
        numbers = {**batch.columns, ROW: torch.arange(load.responses)}
        numbered = replace(batch, columns=numbers)
        for rows in torch.arange(load.responses).chunk(UPDATES):
            loss = RecordingLoss(no_loss)
            trainer.update(numbered.select(rows), loss, temperature=1.0, learning_rate=0.0)
    # 19 of 20 snapshots of such steps have digests of the routes.
    with hops.hop("snapshot"), tempfile.TemporaryDirectory() as folder:
        arrays, meta = codec.rollout_arrays(rollouts, with_routes=False)
        write = partial(codec.pack_into, arrays=arrays, meta=meta)
        write_stream(Path(folder) / "snapshot", write)


def _requests(load: Load) -> list[Request]:
    return [Request(str(number), _prompt(number), 1) for number in range(load.responses)]


def _prompt(number: int) -> NDArray[np.int32]:
    return np.full(64, number, dtype=np.int32)


def table(load: Load, seconds: dict[str, float]) -> Table:
    """Show what a response takes, and a step of the paper's size."""
    shown = Table(
        title=f"Rank 0 of {load.ranks}, {load.responses} responses, {load.tokens} tokens x "
        f"{load.layers} layers x top-{load.top}: "
        f"{load.route_bytes / load.responses / 1e6:.1f} MB of routes a response",
        title_justify="left",
        title_style="",
        box=None,
    )
    shown.add_column("hop")
    shown.add_column("CPU s a response", justify="right")
    shown.add_column(f"CPU s of {RESPONSES_OF_A_STEP}", justify="right")
    one = response_seconds(load, seconds)
    for name, value in (one | {"sum": sum(one.values())}).items():
        shown.add_row(name, f"{value:.4f}", f"{value * RESPONSES_OF_A_STEP:.0f}")
    return shown


def response_seconds(load: Load, seconds: dict[str, float]) -> dict[str, float]:
    """Scale the measured CPU seconds of each hop to one response of a step of the paper's size."""
    return {
        name: total / load.responses * weight(name, load.ranks) for name, total in seconds.items()
    }


def weight(hop: str, ranks: int) -> float:
    """How much more of a step's responses take a hop than of the measured ones."""
    own = ranks / REPLICAS
    return own if hop == OWN else (1 - 1 / REPLICAS) / (1 - 1 / ranks)


def continued(load: Load, seconds: float) -> float:
    """Continue the CPU seconds of a response to the longest one."""
    longest = replace(load, tokens=LONGEST)
    more = longest.route_bytes - load.route_bytes
    return seconds + Efficiency().rank_zero_byte_s * more / load.responses


def main(arguments: Sequence[str]) -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.rank_zero",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--others", type=positive, default=2, help="ranks beside rank 0")
    parser.add_argument("--responses", type=positive, default=24)
    parser.add_argument("--tokens", type=positive, nargs="+", default=[LONGEST])
    parser.add_argument("--layers", type=positive, default=72)
    parser.add_argument("--top", type=positive, default=4)
    parser.add_argument("--out", type=Path, help="a JSON file of the numbers")
    options = parser.parse_args(arguments)
    console = Console(highlight=False)
    command = " ".join(["python -m tests.bench.rank_zero", *arguments])
    origin = evidence_file.origin(command, "tasks.engines.team.rollout", "tasks.rl.collector")
    ours = [name for name in sys.modules if name.startswith("tasks.")]
    rows: dict[int, dict[str, float]] = {}
    loads = [
        Load(options.others, options.responses, tokens, options.layers, options.top)
        for tokens in options.tokens
    ]
    for load in loads:
        seconds = run_world(measure, load.ranks, load, timeout_s=LIMIT_S, preloaded=ours)[0]
        rows[load.tokens] = response_seconds(load, seconds)
        console.print(table(load, seconds))
    sums = {tokens: sum(row.values()) for tokens, row in rows.items()}
    longest = {load.tokens: continued(load, sums[load.tokens]) for load in loads}
    for tokens, seconds in longest.items():
        console.print(f"{tokens} tokens continued to {LONGEST}: {seconds:.4f} CPU s a response")
    if options.out:
        content = {
            **origin,
            "ranks": 1 + options.others,
            "responses": options.responses,
            "layers": options.layers,
            "top": options.top,
            "cpu_s_a_response": rows,
            "sum_cpu_s_a_response": sums,
            "continued_to_tokens": LONGEST,
            "continued_cpu_s_a_response": longest,
        }
        options.out.write_text(json.dumps(content, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    run(main)
