"""One scorer for RL, grading and evaluation: scores responses as they finish.

Responses are scored in worker processes that can be killed. Verifiers that start processes
themselves (the sandbox of `code_tests`) or wait for a judge run in threads of this process.
Comparisons within a group wait until the group is complete. A verdict depends on the problem and
the response only, not on the order in which responses finish, the number of workers, or the
other responses in a message.

If a verifier raises, hangs, dies or exhausts its memory, only its own response has no verdict
(`verifier_error:NAME:TYPE`, `verifier_timeout:NAME`). Time limits are in CPU seconds; a verifier
that gets no CPU time from the machine is `verifier_starved:NAME`. The trainer sets a budget for
such abstentions. If the failed verifier scores another response to the same problem, the
response caused the failure: score 0 under `response_fault:...`.
"""

import contextlib
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Self

from data_schemas.rl_settings import RewardSettings
from data_schemas.rollouts import ResponseScore, ScoringRequest
from data_schemas.rows import Problem
from data_schemas.verdicts import Verdict
from tasks.cores import num_cores
from tasks.errors import EngineError
from tasks.gym import binding, table
from tasks.gym.protocol import CONTROL, Entry
from tasks.gym.scoring import canaries
from tasks.gym.scoring.responses import (
    Content,
    TokenizerFile,
    may_be_caused_by_response,
    outcome,
    score_in_thread,
    score_one,
)
from tasks.gym.scoring.tally import Batch, Counters
from tasks.gym.scoring.work_queue import WorkQueue
from tasks.gym.workers import CallFailure, WorkerPool, WorkerReply

MAX_WAITING = 1024
"""Responses that may wait before `submit` blocks the rollouts: at 32k tokens, 128 MiB."""
PORTION = 64
"""Maximum number of responses in one message to a worker."""
NUM_JUDGE_THREADS = 4
"""An HTTP judge already sends sixteen prompts concurrently."""


@dataclass(frozen=True, slots=True)
class _Job:
    """Unit of work: one response, or a whole group."""

    batch: Batch
    entry: Entry
    problem: Problem
    keys: tuple[tuple[str, int], ...]
    contents: tuple[Content, ...]


class ScoringService:
    """A context manager; workers and threads start when first needed.

    Args:
        tokenizer: what decodes responses; None for texts only.
        settings: settings that the verifiers are bound to.
        num_workers: 0 for as many as there are cores.
        max_waiting: responses that may wait in a queue.
        entries: replaces the table of verifiers: where rows of others name them, or in tests.

    Raises:
        SettingsError: the judge cannot be opened.
    """

    def __init__(
        self,
        tokenizer: TokenizerFile | None,
        settings: RewardSettings,
        *,
        num_workers: int = 0,
        max_waiting: int = MAX_WAITING,
        entries: Mapping[str, Entry] | None = None,
    ) -> None:
        count = num_workers or num_cores()
        self._tokenizer = tokenizer
        self._entries: Mapping[str, Entry] = (
            binding.entries(settings) if entries is None else entries
        )
        self._pool = WorkerPool(count)
        self._in_workers = WorkQueue(
            "scoring", self._work, num_threads=count, portion=PORTION, bound=max_waiting
        )
        self._in_threads = WorkQueue("sandbox", self._wait, num_threads=count, bound=max_waiting)
        self._at_judge = WorkQueue(
            "judging", self._wait, num_threads=NUM_JUDGE_THREADS, bound=max_waiting
        )
        self._tally = Counters()
        self._submitting = threading.Lock()
        self._forget()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def submit(self, item: ScoringRequest) -> None:
        """Accept one finished response; block while too many are waiting to be scored.

        Raises:
            SettingsError: the problem's verifier is not available, or the user has to act.
            EngineError: the same sample of the group was submitted before.
        """
        entry = table.find_by_verifier(self._entries, item.problem)
        key = (item.group, item.sample)
        with self._submitting:
            self._batch.raise_error()
            if key in self._seen:
                raise EngineError(f"sample {item.sample} of group {item.group} came twice")
            self._seen.add(key)
            self._batch.expect(1)
            if entry.verify_group is None:
                job = _Job(
                    self._batch,
                    entry,
                    item.problem,
                    (key,),
                    (item.content,),
                )
            else:
                group = self._open.setdefault(item.group, [])
                group.append(item)
                if len(group) < item.group_size:
                    return
                group = sorted(self._open.pop(item.group), key=lambda one: one.sample)
                keys = tuple((one.group, one.sample) for one in group)
                contents = tuple(one.content for one in group)
                job = _Job(self._batch, entry, item.problem, keys, contents)
        self._lane(entry).put(job)

    def gather(self) -> dict[tuple[str, int], ResponseScore]:
        """Wait for everything submitted since the last time; sorted by group and sample.

        Raises:
            SettingsError: the user has to act before anything can be scored.
            EngineError: a group is incomplete, or no worker can be started.
        """
        batch, unfinished = self._batch, self._open
        self._forget()
        if unfinished:
            key, items = next(iter(sorted(unfinished.items())))
            raise EngineError(
                f"{len(unfinished)} groups are incomplete: {len(items)} of "
                f"{items[0].group_size} samples of {key} were submitted. "
                "Submit the whole group before gathering."
            )
        return dict(sorted(batch.wait().items()))

    def score(self, problems: Sequence[Problem], responses: Sequence[str]) -> list[Verdict]:
        """Score `responses[i]` as an answer to `problems[i]`, in order.

        Consecutive responses to one problem are a group if the verifier compares within groups.

        Raises:
            SettingsError: the problem's verifier is not available, or the user has to act.
            EngineError: no worker can be started.
        """
        for problem in problems:
            table.find_by_verifier(self._entries, problem)
        batch = Batch(self._tally)
        rows = enumerate(zip(problems, responses, strict=True))
        for _, group in groupby(rows, key=lambda row: row[1][0].id):
            members = list(group)
            entry = self._entries[members[0][1][0].verifier]
            size = len(members) if entry.verify_group else 1
            for start in range(0, len(members), size):
                part = members[start : start + size]
                batch.expect(len(part))
                keys = tuple(("", place) for place, _ in part)
                texts = tuple(text for _, (_, text) in part)
                self._lane(entry).put(_Job(batch, entry, part[0][1][0], keys, texts))
        scored = batch.wait()
        return [scored["", place].verdict for place in range(len(problems))]

    def check_canaries(self, verifiers: Collection[str] | None = None) -> None:
        """Let verifiers score answers with known verdicts.

        Args:
            verifiers: those in use; None for all. A judge that is trained for comparisons need not
                read rubrics.

        Raises:
            EngineError: a verdict differs from the known one; the message names the verifier.
        """
        names = self._entries.keys() if verifiers is None else verifiers
        canaries.check(self.score, [name for name in names if name in self._entries])

    def counters(self) -> dict[str, int]:
        """Return counts so far: verdicts per reason, timeouts, lost workers, queue high-water."""
        queues = (self._in_workers, self._in_threads, self._at_judge)
        return {
            **self._tally.counts(),
            "worker_restarts": self._pool.num_lost,
            "queue_high_water": max(queue.high_water for queue in queues),
        }

    def close(self) -> None:
        """Stop threads and processes; verdicts that were not gathered are discarded."""
        for queue in (self._in_workers, self._in_threads, self._at_judge):
            queue.close()
        self._pool.close()
        table.close()

    def _forget(self) -> None:
        self._batch = Batch(self._tally)
        self._seen: set[tuple[str, int]] = set()
        self._open: dict[str, list[ScoringRequest]] = {}

    def _lane(self, entry: Entry) -> WorkQueue[_Job]:
        if entry.calls:
            return self._at_judge
        return self._in_workers if entry.in_worker else self._in_threads

    def _work(self, jobs: Sequence[_Job]) -> None:
        """Score a batch in one worker; jobs of a lost worker are repeated by the next one."""
        suspects: list[tuple[_Job, WorkerReply]] = []
        try:
            for job, reply in self._replies(jobs, [job.contents[0] for job in jobs]):
                if may_be_caused_by_response(reply):
                    suspects.append((job, reply))
                else:
                    self._settle(job, reply)
            broken = [job for job, _ in suspects]
            controls = self._replies(broken, [CONTROL] * len(broken)) if broken else iter(())
            for (job, reply), (_, control) in zip(suspects, controls, strict=True):
                self._settle(job, reply, by_response=control.failure is CallFailure.NONE)
        except Exception as error:  # noqa: BLE001 - raised again in `gather` or `score`
            for job in jobs:
                job.batch.fail(error)

    def _replies(
        self, jobs: Sequence[_Job], contents: Sequence[Content]
    ) -> Iterator[tuple[_Job, WorkerReply]]:
        calls = [
            (job.entry.verify, job.problem, self._tokenizer, content)
            for job, content in zip(jobs, contents, strict=True)
        ]
        series = self._pool.each(score_one, calls, [job.entry.timeout_s for job in jobs])
        with contextlib.closing(series) as replies:
            yield from zip(jobs, replies, strict=True)

    def _settle(self, job: _Job, reply: WorkerReply, *, by_response: bool = False) -> None:
        name, content = job.problem.verifier, job.contents[0]
        result = outcome(name, self._tokenizer, content, reply, by_response=by_response)
        job.batch.settle(job.keys[0], result)

    def _wait(self, jobs: Sequence[_Job]) -> None:
        """Score in this process, in a thread that is abandoned when it takes too long."""
        for job in jobs:
            try:
                result = score_in_thread(job.entry, job.problem, self._tokenizer, job.contents)
            except Exception as error:  # noqa: BLE001 - raised again in `gather` or `score`
                job.batch.fail(error)
            else:
                for key, one in zip(job.keys, result, strict=True):
                    job.batch.settle(key, one)
