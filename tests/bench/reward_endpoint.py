"""Load on the HTTP endpoint of the verifiers: `python -m tests.bench.reward_endpoint`.

The same rows are scored offline, as `python -m tasks.gym score` does, and by an endpoint on the
loopback interface in a process of its own, with concurrent clients: one row per request, as verl
sends them, and many. In the last run other clients send slowly, malformed or oversized requests,
or close the connection. The verdicts of all runs must be equal.
"""

import argparse
import http.client
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from data_schemas.rl_settings import RewardSettings
from tasks.engines.scoring import open_scoring
from tasks.errors import EngineError
from tasks.gym.serving.offline import score_file
from tasks.platform.command_line import positive, run
from tests.bench.reward_cases import cases

HOST = "127.0.0.1"
SLOW = "code_tests"
"""Left out: its verdicts take the time of a program, which hides that of the endpoint."""
HEADERS = {"Content-Type": "application/json"}
_START = b"POST /v1/score HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: "
_DISTURBANCES = (
    _START + b"1000\r\n\r\n{",
    _START + b"99999999999\r\n\r\n",
    _START + b"2\r\n\r\n{]",
    _START + b"x\r\n\r\n",
    b"nonsense\r\n\r\n",
    b"POST /v1/sc",
)
_PAUSE_S = 0.01
HELD = 100
"""Connections that misbehaving clients keep open."""


@dataclass(frozen=True, slots=True)
class Load:
    """One run: how long it took, and each request."""

    name: str
    rows: int
    seconds: float
    latencies_s: tuple[float, ...] = ()
    disturbances: int = 0

    @property
    def rate(self) -> float:
        """Rows per second."""
        return self.rows / self.seconds


def measure(count: int, batches: Sequence[int], clients: int, workers: int) -> list[Load]:
    """Score `count` rows of every verifier offline and over HTTP, and compare the verdicts.

    Raises:
        EngineError: a verdict over HTTP is not the one offline.
    """
    rows = make_rows(count)
    with tempfile.TemporaryDirectory() as folder:
        expected, offline = _offline(rows, Path(folder), workers)
    found = [offline]
    with _endpoint(workers) as port:
        send(port, rows[: 8 * clients], 1, clients)  # workers import what they need
        for batch, misbehaving in (*((size, False) for size in batches), (batches[-1], True)):
            with disturbed(port, active=misbehaving) as sent:
                start = time.perf_counter()
                verdicts, latencies = send(port, rows, batch, clients)
                seconds = time.perf_counter() - start
            if verdicts != expected:
                raise EngineError("the endpoint's verdicts are not those of `score`")
            name = f"{clients} clients, {batch} rows per request"
            name += ", beside misbehaving clients" if misbehaving else ""
            found.append(Load(name, len(rows), seconds, tuple(latencies), len(sent)))
    return found


def make_rows(count: int) -> list[dict[str, Any]]:
    """Return `count` rows of every verifier but code_tests, in an order drawn by seed."""
    rows = [
        {"verifier": problem.verifier, "answer": problem.answer, "response": response}
        for case in cases(count)
        if case.name != SLOW
        for problem, response in zip(case.problems, case.responses, strict=True)
    ]
    random.Random(0).shuffle(rows)
    return rows


def _offline(
    rows: Sequence[dict[str, Any]], folder: Path, workers: int
) -> tuple[list[dict[str, Any]], Load]:
    source, out = folder / "in.jsonl", folder / "out.jsonl"
    source.write_text("\n".join(map(json.dumps, rows)))
    with open_scoring(None, RewardSettings(), num_workers=workers) as scorer:
        score_file(source, folder / "warm.jsonl", scorer)
        start = time.perf_counter()
        score_file(source, out, scorer)
        seconds = time.perf_counter() - start
    verdicts = [json.loads(line) for line in out.read_text().splitlines()]
    kept = [{key: v[key] for key in ("score", "reason", "detail")} for v in verdicts]
    return kept, Load("offline: score", len(rows), seconds)


@contextmanager
def _endpoint(workers: int) -> Iterator[int]:
    """Start `serve` in a process of its own and yield its port."""
    command = [sys.executable, "-m", "tasks.gym", "serve", "--port", "0"]
    with subprocess.Popen(
        [*command, "--workers", str(workers)], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None  # it is a pipe
            yield int(process.stdout.readline().rpartition(":")[2])
        finally:
            process.terminate()


def send(
    port: int, rows: Sequence[dict[str, Any]], batch: int, clients: int
) -> tuple[list[dict[str, Any]], list[float]]:
    """Send all rows from concurrent clients; return verdicts in order and seconds per request."""

    def ask(start: int) -> tuple[list[dict[str, Any]], float]:
        began = time.perf_counter()
        connection = free.get()
        body = json.dumps({"rows": rows[start : start + batch]})
        connection.request("POST", "/v1/score", body, HEADERS)
        reply = json.load(connection.getresponse())
        free.put(connection)
        return reply["verdicts"], time.perf_counter() - began

    with ExitStack() as opened, ThreadPoolExecutor(clients) as threads:
        free: SimpleQueue[http.client.HTTPConnection] = SimpleQueue()
        for _ in range(clients):
            connection = http.client.HTTPConnection(HOST, port, timeout=600)
            free.put(opened.enter_context(closing(connection)))
        replies = list(threads.map(ask, range(0, len(rows), batch)))
    return [verdict for part, _ in replies for verdict in part], [s for _, s in replies]


@contextmanager
def disturbed(port: int, *, active: bool = True) -> Iterator[list[bytes]]:
    """Misbehave in a thread for as long as the context is open; yield what was sent."""
    over = threading.Event()
    sent: list[bytes] = []

    def disturb() -> None:
        held: list[socket.socket] = []
        for place in range(10**6):
            if over.wait(_PAUSE_S):
                break
            with suppress(OSError):
                held.append(socket.create_connection((HOST, port), timeout=10))
                held[-1].sendall(_DISTURBANCES[place % len(_DISTURBANCES)])
                sent.append(_DISTURBANCES[place % len(_DISTURBANCES)])
            if len(held) > HELD:
                held.pop(0).close()
        for client in held:
            client.close()

    thread = threading.Thread(target=disturb)
    if active:
        thread.start()
    try:
        yield sent
    finally:
        over.set()
        if active:
            thread.join()


def main(arguments: Sequence[str]) -> None:
    """Measure and print; see --help."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=positive, default=1000, help="rows per verifier")
    parser.add_argument("--clients", type=positive, default=32)
    parser.add_argument("--workers", type=positive, default=max(1, (os.cpu_count() or 1) - 1))
    options = parser.parse_args(arguments)
    loads = measure(options.count, (1, 64, 1024), options.clients, options.workers)
    shown = Table(title=f"{loads[0].rows:,} rows, {options.workers} workers")
    for name in ("run", "rows per s", "of offline", "p50 ms", "p99 ms", "disturbances"):
        shown.add_column(name, justify="left" if name == "run" else "right")
    for load in loads:
        p50, p99 = np.percentile(load.latencies_s or (np.nan,), (50, 99)) * 1000
        times = (f"{p50:,.0f}", f"{p99:,.0f}") if load.latencies_s else ("", "")
        share = f"{load.rate / loads[0].rate:.2f}"
        shown.add_row(load.name, f"{load.rate:,.0f}", share, *times, f"{load.disturbances:,}")
    Console(width=110).print(shown)


if __name__ == "__main__":
    run(main)
