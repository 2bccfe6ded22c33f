"""Steps of RL under a policy: which part takes how long, and which GPUs wait meanwhile.

All groups are trained: no zero-variance elimination, no refills. The first steps are not
counted, because segments and free-running engines start empty.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

import numpy as np

from tasks.algorithms.scheduling import IN_FLIGHT, assign, longest_first, passes_per_round
from tasks.lab.simulator.fleet import CompletedJob, Fleet, GenerationJob
from tasks.lab.simulator.lengths import Draw, LengthGroup
from tasks.lab.simulator.rates import TaskRates

WARM_UP = 3
"""Steps that are not counted."""
CUT_WARM_UP = 12
"""The same where responses are cut, which may span several steps."""
PARTS = ("rollout", "reward", "old_logprobs", "update", "rank_zero", "weight_sync", "commit")
"""Parts of a step, as in its timing; rollouts and rewards: the time in which they are awaited."""


Totals = defaultdict[str, float]


@dataclass(frozen=True, slots=True)
class Policy:
    """How rollouts are scheduled, and against what they run."""

    longest_first: bool = True
    """By the prompts' records; else as drawn."""
    on_demand: bool = False
    """Engines share a queue, from which each takes the next response when it has room, after every
    round of passes (tasks/engines/request_queue.py); else all are dealt at the beginning."""
    overlapped_rewards: bool = True
    """Responses are scored as they end; else when all have ended."""
    segment_tokens: int = 0
    """Most tokens of a response in one step; 0 = no limit."""
    staleness: int = 0
    """Dedicated engines are this many steps ahead."""
    free_running: bool = False
    """Rollouts end when a step's prompts are complete; twice as many are in flight, and what began
    `staleness` steps before has to end. Dedicated engines never wait for a step's slowest response,
    and are at most `staleness` steps ahead."""


@dataclass(frozen=True, slots=True)
class SimulatedBatch:
    """What a step rolls out."""

    prompts: int
    group_size: int
    prompt_tokens: int
    max_tokens: int
    """Limit of a response."""


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """Means over the counted steps."""

    parts: dict[str, float]
    """Seconds; their sum is the step's."""
    rollout_idle: float
    """Share of the step in which a GPU with a rollout engine has nothing to do."""
    trainer_idle: float
    staleness: float
    """Updates between the draw of a group's prompt and its own update."""
    oldest: int
    """Largest staleness of a group."""
    tokens: float
    """Response tokens that are trained in a step."""

    @property
    def seconds(self) -> float:
        """Return the seconds of a step."""
        return sum(self.parts.values())


@dataclass(slots=True)
class _Open:
    """A drawn group whose responses have not all ended."""

    draw_step: int
    lengths: list[int]
    expected: float
    missing: int


class Simulation:
    """Simulates steps of one task, from one seed."""

    def __init__(
        self, rates: TaskRates, batch: SimulatedBatch, draw: Draw, *, dedicated: bool
    ) -> None:
        self._rates = rates
        self._batch = batch
        self._draw = draw
        self._dedicated = dedicated
        self._random = np.random.default_rng(0)
        self._groups: dict[int, _Open] = {}
        self._num_draws = 0

    def run(self, policy: Policy, steps: int) -> SimulationResult:
        """Return the means over `steps` counted steps."""
        if policy.free_running:
            run = self._run_free if self._dedicated else self._run_cut
            return run(policy, steps)
        return self._run_steps(policy, steps)

    def _new_jobs(self, step: int, policy: Policy, prompts: int = 0) -> list[GenerationJob]:
        count = prompts or self._batch.prompts
        groups: list[LengthGroup] = self._draw(count, self._batch.group_size, self._random)
        jobs = []
        for group in groups:
            number, self._num_draws = self._num_draws, self._num_draws + 1
            lengths = [int(length) for length in group.lengths]
            expected = group.record if group.record is not None else float(np.mean(lengths))
            self._groups[number] = _Open(step, lengths, expected, len(lengths))
            jobs += [
                GenerationJob(number, sample, self._batch.prompt_tokens, tokens, expected=expected)
                for sample, tokens in enumerate(lengths)
            ]
        return self._ordered(jobs, policy)

    def _expected_tokens(self, job: GenerationJob, policy: Policy) -> float:
        """Return the tokens that a response is expected to take in this step."""
        tokens = max(1.0, self._groups[job.group].expected - job.earlier)
        return min(tokens, policy.segment_tokens or tokens)

    def _ordered(self, jobs: Sequence[GenerationJob], policy: Policy) -> list[GenerationJob]:
        if not policy.longest_first:
            return list(jobs)
        order = longest_first([self._expected_tokens(job, policy) for job in jobs])
        return [jobs[place] for place in order]

    def _deal(self, jobs: Sequence[GenerationJob], policy: Policy) -> Fleet:
        """Deal requests to engines as they are dealt in a run, or leave all in the shared queue.

        A request is a new group, or what is left of one response.
        """
        engines = self._rates.engines
        if policy.on_demand:
            fleet = Fleet(self._rates.engine, [()] * engines)
            fleet.shared.extend(jobs)
            return fleet
        requests: dict[tuple[int, int], list[GenerationJob]] = {}
        for job in jobs:
            name = job.group, job.sample if job.earlier else -1
            requests.setdefault(name, []).append(job)
        dealt = list(requests.values())
        if policy.longest_first:
            tokens = [
                sum(self._expected_tokens(job, policy) for job in request) for request in dealt
            ]
            parts = assign(tokens, longest_first(tokens), engines)
        else:
            parts = [list(range(first, len(dealt), engines)) for first in range(engines)]
        return Fleet(
            self._rates.engine,
            [[job for place in sorted(part) for job in dealt[place]] for part in parts],
        )

    def _run_steps(self, policy: Policy, steps: int) -> SimulationResult:
        """Steps one after another; with dedicated engines, rollouts run beside the update."""
        rates, rest = self._rates, list[GenerationJob]()
        totals: Totals = defaultdict(float)
        warm_up = 0
        if policy.segment_tokens:  # until the longest response of the first step has ended
            warm_up = -(-self._batch.max_tokens // policy.segment_tokens)
        for step in range(warm_up + steps):
            if step == warm_up:
                totals.clear()
            jobs = self._ordered(rest, policy) + self._new_jobs(step, policy)
            cut = [
                replace(
                    job,
                    tokens=min(job.tokens, policy.segment_tokens or job.tokens),
                    expected=self._expected_tokens(job, policy),
                )
                for job in jobs
            ]
            fleet = self._deal(cut, policy)
            round_ = passes_per_round(self._batch.max_tokens, policy.segment_tokens)
            ended = fleet.drain_in_rounds(round_) if policy.on_demand else fleet.drain()
            rollout = max(one.second for one in ended)
            whole = {(job.group, job.sample): job for job in jobs}
            complete, rest, scored = self._settle(ended, whole)
            reward = self._reward_seconds(scored, rollout, policy)
            trained = self._train(complete, step, totals)
            busy = fleet.busy / rates.engines
            ahead = self._dedicated and policy.staleness > 0
            training = sum(trained.values())
            waited = max(0.0, rollout + reward - training) if ahead else rollout + reward
            late = min(reward, waited)
            _add(totals, trained)
            _add(totals, {"rollout": waited - late, "reward": late, "busy": busy})
            _add(totals, {"weight_sync": rates.sync_s, "commit": rates.commit_s})
            totals["staleness"] += policy.staleness * len(complete)
            totals["oldest"] = max(totals["oldest"], policy.staleness + _age(complete, step))
        return self._outcome(totals, steps)

    def _settle(
        self, ended: Sequence[CompletedJob], whole: dict[tuple[int, int], GenerationJob]
    ) -> tuple[list[_Open], list[GenerationJob], list[CompletedJob]]:
        """Return the groups that are complete, the rest of cut responses, and whole responses."""
        complete, rest, last = [], [], []
        for one in ended:
            job = whole[one.job.group, one.job.sample]
            generated = one.job.tokens + one.job.earlier - job.earlier
            if generated < job.tokens:
                rest.append(
                    replace(job, tokens=job.tokens - generated, earlier=job.earlier + generated)
                )
                continue
            last.append(one)
            group = self._groups[job.group]
            group.missing -= 1
            if group.missing == 0:
                complete.append(self._groups.pop(job.group))
        return complete, rest, last

    def _reward_seconds(
        self, ended: Sequence[CompletedJob], rollout: float, policy: Policy
    ) -> float:
        """Return how long the rewards of whole responses take after the rollouts."""
        if not policy.overlapped_rewards:
            return self._rates.reward_s * len(ended)
        free = 0.0
        for one in sorted(ended, key=attrgetter("second")):
            free = max(free, one.second) + self._rates.reward_s
        return max(0.0, free - rollout)

    def _train(self, groups: Sequence[_Open], step: int, totals: Totals) -> dict[str, float]:
        """Return the seconds of the trainer's parts for these groups; count what is trained.

        A prompt counts once per answer, which is the most that a trainer computes of it.
        """
        generated = sum(sum(group.lengths) for group in groups)
        responses = sum(len(group.lengths) for group in groups)
        fed = generated + responses * self._batch.prompt_tokens
        totals["tokens"] += generated
        totals["groups"] += len(groups)
        totals["staleness"] += sum(step - group.draw_step for group in groups)
        totals["oldest"] = max(totals["oldest"], _age(groups, step))
        return {
            "old_logprobs": self._rates.score_s * fed,
            "update": self._rates.update_s * fed,
            "rank_zero": self._rates.rank_zero_s * responses,
        }

    def _run_free(self, policy: Policy, steps: int) -> SimulationResult:
        """Dedicated engines go on through updates; the trainer takes the groups that are ready.

        New prompts are drawn after every update, so that at most `staleness` steps of groups wait
        or are being generated beside those of the next update. Rewards keep up with rollouts.
        """
        fleet = Fleet(self._rates.engine, [()] * self._rates.engines)
        for _ in range(1 + policy.staleness):
            fleet.shared.extend(self._new_jobs(0, policy))
        fleet.wake(0.0)
        totals: Totals = defaultdict(float)
        ready: list[_Open] = []
        now = busy_before = 0.0
        for step in range(WARM_UP + steps):
            if step == WARM_UP:
                totals.clear()
                busy_before = fleet.busy
            begin = now
            while len(ready) < self._batch.prompts:
                begin = max(begin, fleet.next_event())
                ready += self._completed(fleet.advance())
            trained = self._train(ready[: self._batch.prompts], step, totals)
            ready = ready[self._batch.prompts :]
            end = begin + sum(trained.values())
            while fleet.next_event() <= end:
                ready += self._completed(fleet.advance())
            fleet.pause(self._rates.sync_s + self._rates.commit_s)
            fleet.shared.extend(self._new_jobs(step + 1, policy))
            _add(totals, trained)
            _add(totals, {"rollout": begin - now, "weight_sync": self._rates.sync_s})
            _add(totals, {"commit": self._rates.commit_s})
            now = end + self._rates.sync_s + self._rates.commit_s
            fleet.wake(now)
        totals["busy"] = (fleet.busy - busy_before) / self._rates.engines
        return self._outcome(totals, steps)

    def _run_cut(self, policy: Policy, steps: int) -> SimulationResult:
        """Engines stop for the update when as many groups are complete as a step trains."""
        rates, rest = self._rates, list[GenerationJob]()
        totals: Totals = defaultdict(float)
        for step in range(CUT_WARM_UP + steps):
            if step == CUT_WARM_UP:
                totals.clear()
            if missing := IN_FLIGHT * self._batch.prompts - len(self._groups):
                rest = self._ordered(rest, policy) + self._new_jobs(step, policy, missing)
            rest.sort(key=lambda job: self._groups[job.group].draw_step)  # the oldest first
            jobs = [replace(job, expected=self._expected_tokens(job, policy)) for job in rest]
            fleet = self._deal_in_order(jobs, policy)
            due = {job.group for job in jobs if self._drawn_by(job, step - policy.staleness)}
            ended, complete = list[CompletedJob](), list[_Open]()
            while len(complete) < self._batch.prompts or due & self._groups.keys():
                new = fleet.advance()
                ended += new
                complete += self._completed(new)
            rollout = max(one.second for one in ended)
            rest = fleet.cut(rollout)
            reward = self._reward_seconds(ended, rollout, policy)
            busy = fleet.busy / rates.engines
            _add(totals, self._train(complete, step, totals))
            _add(totals, {"rollout": rollout, "reward": reward, "busy": busy})
            _add(totals, {"weight_sync": rates.sync_s, "commit": rates.commit_s})
        return self._outcome(totals, steps)

    def _drawn_by(self, job: GenerationJob, step: int) -> bool:
        return self._groups[job.group].draw_step <= step

    def _deal_in_order(self, jobs: Sequence[GenerationJob], policy: Policy) -> Fleet:
        """Deal responses by what is left of them; every engine keeps the given order."""
        tokens = [self._expected_tokens(job, policy) for job in jobs]
        parts = assign(tokens, range(len(jobs)), self._rates.engines)
        return Fleet(self._rates.engine, [[jobs[place] for place in sorted(p)] for p in parts])

    def _completed(self, ended: Sequence[CompletedJob]) -> list[_Open]:
        complete, _, _ = self._settle(
            ended, {(one.job.group, one.job.sample): one.job for one in ended}
        )
        return complete

    def _outcome(self, totals: Totals, steps: int) -> SimulationResult:
        parts = {name: totals[name] / steps for name in PARTS}
        seconds = sum(parts.values())
        sync, busy = parts["weight_sync"], totals["busy"] / steps
        training = parts["old_logprobs"] + parts["update"]
        if self._dedicated:
            idle = 1.0 - min(1.0, (busy + sync) / seconds), 1.0 - (training + sync) / seconds
        else:
            idle = (1.0 - (busy + training + sync) / seconds,) * 2
        return SimulationResult(
            parts=parts,
            rollout_idle=idle[0],
            trainer_idle=idle[1],
            staleness=totals["staleness"] / max(1, totals["groups"]),
            oldest=int(totals["oldest"]),
            tokens=totals["tokens"] / steps,
        )


def _age(groups: Sequence[_Open], step: int) -> int:
    return max((step - group.draw_step for group in groups), default=0)


def _add(totals: Totals, amounts: Mapping[str, float]) -> None:
    for name, amount in amounts.items():
        totals[name] += amount
