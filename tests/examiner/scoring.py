"""Verdicts on cases, on all cores: verifiers in workers that can be killed, others in threads.

Verdicts come out in the order of the cases, for any number of workers.
"""

import json
import os
import subprocess
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Self

from data_schemas.rl_settings import RewardSettings
from data_schemas.verdicts import Verdict, abstain, scored
from tasks.gym import binding, table
from tasks.gym.protocol import answer_part
from tasks.gym.scoring.responses import no_verdict
from tasks.gym.workers import WorkerPool, WorkerReply
from tests.examiner.case import Case
from tests.examiner.timing import math_verify, timed_verdict

CHUNK = 64
MATH_VERIFY = "math_verify"
UNABLE = "unable"
"""Why a checker of another project has no verdict."""
_TIMEOUT_S = 5.0
"""For math-verify, which has no limit of its own here."""
_SCRIPT = Path(__file__).with_name("foreign_process.py")


@dataclass(frozen=True, slots=True)
class CaseVerdict:
    """What one verifier said about one case."""

    case: Case
    verifier: str
    verdict: Verdict
    seconds: float
    """Seconds of CPU; on the clock for what runs in processes of its own."""


class Foreign:
    """A process with the checkers of other projects; used by one thread at a time."""

    def __init__(self, python: str) -> None:
        self._python = python
        self._start()

    def score(self, checker: str, case: Case) -> tuple[Verdict, float]:
        """Ask one checker for its verdict."""
        request = {
            "checker": checker,
            "gold": json.loads(case.problem.answer),
            "response": answer_part(case.response) or "",
        }
        reply = self._ask(json.dumps(request))
        if reply is None:
            self.close()
            self._start()
            return abstain("process_died"), 0.0
        if reply["accepted"] is None:
            return abstain(UNABLE, reply["error"]), reply["cpu_s"]
        return scored(float(reply["accepted"]), checker), reply["cpu_s"]

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()

    def _start(self) -> None:
        self._process = subprocess.Popen(
            [self._python, str(_SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
        )
        self.checkers: tuple[str, ...] = tuple(self._ask("") or ())

    def _ask(self, request: str) -> Any:
        """Send a request, '' for none, and read a line; None if the process has ended."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None  # noqa: PT018 - both are pipes
        try:
            if request:
                stdin.write(request + "\n")
                stdin.flush()
            line = stdout.readline()
        except BrokenPipeError:
            return None
        return json.loads(line) if line else None


@dataclass
class Scorer:
    """Everything that gives verdicts, for `workers` cases at a time."""

    workers: int
    references: Sequence[str] = ()
    """Checkers of other projects to ask as well."""
    foreign: Sequence[Foreign] = ()
    """One process for each worker, or none."""
    _pool: WorkerPool = field(init=False)

    def __post_init__(self) -> None:
        self._pool = WorkerPool(self.workers)
        self._entries = binding.entries(RewardSettings())
        self._free: SimpleQueue[Foreign] = SimpleQueue()
        for process in self.foreign:
            self._free.put(process)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.close()
        for process in self.foreign:
            process.close()
        table.close()

    def verdicts(self, cases: Iterable[Case]) -> Iterator[list[CaseVerdict]]:
        """Score cases, a chunk at a time and in order; at most two chunks per worker wait."""
        waiting: deque[Future[list[CaseVerdict]]] = deque()
        source = iter(cases)
        with ThreadPoolExecutor(self.workers) as threads:
            while True:
                while len(waiting) < 2 * self.workers and (chunk := list(islice(source, CHUNK))):
                    waiting.append(threads.submit(self._chunk, chunk))
                if not waiting:
                    return
                yield waiting.popleft().result()

    def _chunk(self, cases: Sequence[Case]) -> list[CaseVerdict]:
        asked = [(case, name) for case in cases for name in case.verifiers]
        asked += [(case, MATH_VERIFY) for case in cases if self._asks(MATH_VERIFY, case)]
        inside = [pair for pair in asked if self._in_worker(pair[1])]
        found = self._worked(inside)
        for case, name in asked:
            if not self._in_worker(name):
                start = time.perf_counter()
                verdict = self._entries[name].verify(case.problem, case.response)
                found.append(CaseVerdict(case, name, verdict, time.perf_counter() - start))
        return found + self._foreign_verdicts(cases)

    def _worked(self, asked: Sequence[tuple[Case, str]]) -> list[CaseVerdict]:
        calls = []
        for case, name in asked:
            plain = name == MATH_VERIFY
            text = (answer_part(case.response) or "") if plain else case.response
            verify = math_verify if plain else self._entries[name].verify
            calls.append((verify, case.problem, text))
        timeouts = [
            _TIMEOUT_S if name == MATH_VERIFY else self._entries[name].timeout_s
            for _, name in asked
        ]
        replies = self._pool.each(timed_verdict, calls, timeouts)
        return [
            CaseVerdict(case, name, *_read(name, reply))
            for (case, name), reply in zip(asked, replies, strict=True)
        ]

    def _foreign_verdicts(self, cases: Sequence[Case]) -> list[CaseVerdict]:
        if not self.foreign:
            return []
        process = self._free.get()
        try:
            return [
                CaseVerdict(case, name, *process.score(name, case))
                for case in cases
                for name in case.references
                if name in process.checkers and name in self.references
            ]
        finally:
            self._free.put(process)

    def _asks(self, name: str, case: Case) -> bool:
        return name in self.references and name in case.references

    def _in_worker(self, name: str) -> bool:
        return name == MATH_VERIFY or self._entries[name].in_worker


def _read(name: str, reply: WorkerReply) -> tuple[Verdict, float]:
    return (no_verdict(name, reply), reply.seconds) if reply.failure else reply.value
