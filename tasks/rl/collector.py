"""From prompts to scored rollout groups: draw, schedule, roll out, score, refill.

A Collector carries state from one step to the next: the positions in the prompt stream and in the
curriculum, the prompts' records, and unfinished responses. All of it is plain data
(CollectorState), so that a run resumes exactly from a committed step.

Only training shapes prompts; evaluation and the sequences that compare the engines after a weight
sync have those of the problems. A sample under a shaped prompt says nothing about how hard its
problem is: `is_bare` selects those that the records of prompts, skips and the curriculum may count.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerBase

from data_schemas.ledgers import GroupOutcome
from data_schemas.rl_settings import RLSettings, RouterReplay
from data_schemas.rollouts import (
    AgentTurn,
    ResponseScore,
    Rollout,
    RolloutGroup,
    ScoredRollout,
    ScoringRequest,
    account_of,
)
from data_schemas.rows import Domain, Problem
from data_schemas.verdicts import Verdict
from tasks.algorithms.group_size import sizes_by_rate
from tasks.algorithms.kept_sets import check_kept
from tasks.algorithms.mixture import robust_shares
from tasks.algorithms.penalties import (
    length_reward,
    overlong_penalty,
    repetition_penalty,
    repetition_ratio,
)
from tasks.algorithms.routing import check_trace
from tasks.algorithms.scheduling import IN_FLIGHT
from tasks.algorithms.skips.protocol import Prospect, Skip, inverse_sampling
from tasks.algorithms.skips.table import find as find_skip
from tasks.engines import episodes
from tasks.engines.chat import render_prompt
from tasks.engines.protocols import Request, RolloutEngine, Sampling
from tasks.errors import DataError, EngineError
from tasks.gym.protocol import Scorer
from tasks.rl.groups import (
    CollectedGroup,
    KeptPrompt,
    OpenGroup,
    check_abstentions,
    decide_outcome,
    fill,
    mean_length,
    num_alive,
    requests_of,
    solvers,
    update_group,
)
from tasks.rl.learned import PromptMemory, first_position, first_records
from tasks.rl.prompts import (
    MAX_SKIPS,
    CurriculumPosition,
    PromptDraw,
    PromptHistory,
    PromptNeighbours,
    PromptRecord,
    PromptRuling,
    PromptStream,
    after_step,
    in_band,
)
from tasks.rl.recipe import PLAIN, Memory, PromptShaper, Recipe
from tasks.rl.schedule import draw_metrics, forecast, oldest_first, order_requests
from tasks.rl.turns import TurnQueue, check_turns, excused

SKIP_STREAM = 1
"""Third number of the seed of skips: group DRO draws by seed and place alone."""
MONITORED = "|"
"""In the key under which a monitor scores the responses of a group, behind that of the group."""
UNKNOWN_RATE = (0.5, 0.5)
"""Parameters of the pass rate of a prompt in a domain without a record."""


@dataclass(frozen=True, slots=True)
class CollectorState:
    """State of a collector between two steps."""

    position: int
    records: Mapping[str, PromptRecord]
    stage: CurriculumPosition
    open_groups: tuple[OpenGroup, ...]
    turns: tuple[AgentTurn, ...] = ()
    """Waiting turns of other agents than the solver, oldest first."""
    memory: Memory = field(default_factory=dict)
    """Memory of a recipe, from step to step."""


def first_state(
    settings: RLSettings,
    problems: Sequence[Problem],
    before: PromptMemory | None = None,
) -> CollectorState:
    """Begin a phase.

    Args:
        settings: of the phase.
        problems: with their grading.
        before: what the phase before has learned of the prompts.
    """
    records, position = first_records(problems, before), first_position(settings, before)
    return CollectorState(0, records, position, ())


@dataclass(frozen=True, slots=True)
class SkippedPrompt:
    """A prompt that was drawn but not rolled out."""

    problem: Problem
    round: int
    outcome: GroupOutcome
    saved_tokens: int
    keep_probability: float = 0.0
    """With which it would have been rolled out."""


@dataclass(frozen=True, slots=True)
class InFlightPrompt:
    """A prompt with responses that continue in the next step."""

    group: OpenGroup
    new_tokens: int
    draft_tokens: int

    def after(self, before: "InFlightPrompt | None") -> "InFlightPrompt":
        """Add what it took earlier in the same step."""
        if before is None:
            return self
        new, drafted = before.new_tokens, before.draft_tokens
        return InFlightPrompt(self.group, self.new_tokens + new, self.draft_tokens + drafted)


@dataclass(frozen=True, slots=True)
class Cost:
    """Wall-clock time and judge calls of a group in one step."""

    round: int
    problem_id: str
    engine_seconds: float
    verifier_seconds: float
    judge_calls: int


@dataclass(frozen=True, slots=True)
class RolloutResult:
    """Responses of a draw with their verdicts, by group or by group and sample."""

    groups: dict[str, OpenGroup]
    """With the new responses."""
    new: dict[str, list[Rollout]]
    drafted: dict[str, int]
    """Draft tokens."""
    scored: dict[tuple[str, int], ResponseScore]
    metrics: dict[str, float]
    rollout_seconds: float
    reward_seconds: float


@dataclass(frozen=True, slots=True)
class StepRollouts:
    """One step's rollouts. `groups` holds every finished group; outcomes say which train."""

    step: int
    policy_version: int
    """Newest policy version that sampled one of its tokens."""
    groups: list[CollectedGroup]
    skipped: list[SkippedPrompt] = field(default_factory=list)
    in_flight: list[InFlightPrompt] = field(default_factory=list)
    costs: list[Cost] = field(default_factory=list)
    metrics: dict[str, float] = field(default_factory=dict)
    """Deterministic metrics of the schedule."""
    rollout_seconds: float = 0.0
    reward_seconds: float = 0.0
    """Seconds spent waiting for verdicts after the last response had ended."""

    @property
    def trained(self) -> list[CollectedGroup]:
        """The groups of the training batch."""
        return [item for item in self.groups if item.outcome is not GroupOutcome.SURPLUS]


def merge_draw(
    whole: StepRollouts, part: StepRollouts, skipped: list[SkippedPrompt]
) -> StepRollouts:
    """Add a draw to the step so far."""
    return replace(
        whole,
        groups=[*whole.groups, *part.groups],
        skipped=[*whole.skipped, *skipped],
        in_flight=[*whole.in_flight, *part.in_flight],
        costs=[*whole.costs, *part.costs],
        # Of a name that both have, the first draw counts: a refill of two prompts shows no
        # schedule.
        metrics=part.metrics | whole.metrics,
        rollout_seconds=whole.rollout_seconds + part.rollout_seconds,
        reward_seconds=whole.reward_seconds + part.reward_seconds,
    )


def costs_of(
    groups: Sequence[OpenGroup],
    new: Mapping[str, Sequence[Rollout]],
    drafted: Mapping[str, int],
    scored: Mapping[tuple[str, int], ResponseScore],
    seconds: float,
) -> list[Cost]:
    """Divide the rollout time by tokens; verifier time is measured per group."""
    tokens = {
        key: drafted[key] + sum(rollout.num_sampled for rollout in rollouts)
        for key, rollouts in new.items()
    }
    rate = seconds / max(1, sum(tokens.values()))
    mine: dict[str, list[ResponseScore]] = {group.key: [] for group in groups}
    for (key, _), item in scored.items():
        mine[key.partition(MONITORED)[0]].append(item)
    return [
        Cost(
            round=group.round,
            problem_id=account_of(group.turn.root, group.turn.agent)
            if group.turn
            else group.problem.id,
            engine_seconds=rate * tokens[group.key],
            verifier_seconds=sum(item.seconds for item in mine[group.key]),
            judge_calls=sum(item.judge_calls for item in mine[group.key]),
        )
        for group in groups
    ]


@dataclass(frozen=True, slots=True)
class SamplePrompt:
    """What a sample of a group is drawn under."""

    tokens: NDArray[np.int32]
    shown: tuple[int, ...] = ()
    bare: NDArray[np.int32] | None = None

    def note(self, rollout: Rollout) -> Rollout:
        """Add to a rollout what its prompt showed."""
        return replace(rollout, shown=self.shown, bare_prompt=self.bare) if self.shown else rollout


def is_bare(rollout: Rollout) -> bool:
    """True if the response was drawn under the prompt of its problem."""
    return not rollout.shown


def sample_prompts(
    shaper: PromptShaper | None, tokenizer: PreTrainedTokenizerBase, step: int, group: OpenGroup
) -> list[SamplePrompt]:
    """Return the prompt of every sample of a group, in order.

    A response that continues keeps the prompt that it began with. A group that answers to other
    agents is not shaped.
    """
    prompts = [
        SamplePrompt(one.prompt_tokens, one.shown, one.bare_prompt) for one in group.rollouts
    ]
    if len(prompts) == group.size:
        return prompts
    bare = SamplePrompt(render_prompt(tokenizer, group.problem.messages))
    if shaper is None or group.turn is not None:
        return [*prompts, *[bare] * (group.size - len(prompts))]
    shaped = shaper.shape(group.problem, step=step, group=group.key, size=group.size)
    for one in shaped[len(prompts) :]:
        if one is None:
            prompts.append(bare)
        else:
            tokens = render_prompt(tokenizer, one.messages)
            trained = bare.tokens if shaper.trains_bare else None
            prompts.append(SamplePrompt(tokens, one.shown, trained))
    return prompts


def runs_of_samples(prompts: Sequence[SamplePrompt]) -> list[tuple[int, int, NDArray[np.int32]]]:
    """First sample, number of samples and tokens of every run of samples with one prompt.

    Samples of a run share their prefill; a prompt of one sample alone is prefilled for it.
    """
    runs, first = [], 0
    for _, members in groupby(prompts, key=lambda prompt: prompt.tokens.tobytes()):
        run = list(members)
        runs.append((first, len(run), run[0].tokens))
        first += len(run)
    return runs


REPETITION_START = 0.3
"""rho0, the share of repeated 3-grams without penalty; CompassMax gives no number."""
REPETITION_CAP = 0.5
"""Largest repetition penalty; CompassMax gives no number."""


def penalties(
    settings: RLSettings, rollouts: Sequence[Rollout], verdicts: Sequence[Verdict]
) -> list[float]:
    """Compute the shaping of every response of a group, which is added to its score.

    Soft overlong and repetition penalty are <= 0; the length reward is on both sides of 0.
    """
    rewards = settings.rewards
    lengths_N = np.array([rollout.num_sampled for rollout in rollouts], dtype=np.int64)
    overlong_N = overlong_penalty(
        lengths_N, max_length=settings.max_new_tokens, buffer=rewards.overlong_buffer
    )
    repetition_N = repetition_penalty(
        np.array([repetition_ratio(rollout.sampled_tokens) for rollout in rollouts]),
        start=REPETITION_START,
        weight=rewards.repetition_weight,
        cap=REPETITION_CAP,
    )
    shaping_N = rewards.overlong_weight * overlong_N + repetition_N
    if rewards.length_weight:
        solved_N = [None if one.abstained else one.solved for one in verdicts]
        shaping_N += rewards.length_weight * length_reward(lengths_N, solved_N)
    return shaping_N.tolist()


def check_routes(settings: RLSettings, rollout: Rollout, num_experts: int) -> None:
    """Refuse routes that cannot be replayed before anything is trained on them.

    Raises:
        EngineError: R3 is on and the engine recorded no routes or impossible ones.
    """
    if settings.router_replay is not RouterReplay.R3:
        return
    if rollout.trace is None:
        raise EngineError("router_replay is r3 but the rollout engine recorded no routes")
    length = len(rollout.prompt_tokens) + len(rollout.response_tokens)
    try:
        check_trace(rollout.trace, length, num_experts)
    except DataError as error:
        raise EngineError(f"the rollout engine recorded impossible routes: {error}") from error


def check_sets(settings: RLSettings, rollout: Rollout) -> None:
    """Refuse a response that cannot be renormalised over the sets that it was drawn from.

    Raises:
        EngineError: sampling was truncated and the engine recorded no sets or impossible ones.
    """
    if not settings.truncates:
        return
    if rollout.kept is None:
        raise EngineError("top_p or top_k truncates, but the rollout engine recorded no sets")
    try:
        check_kept(rollout.kept, rollout.response_tokens, rollout.sampled)
    except DataError as error:
        raise EngineError(f"the rollout engine recorded impossible sets: {error}") from error


def monitored_key(group: str, place: int) -> str:
    """Name the group under which the monitor at a place of the settings scores responses."""
    return f"{group}{MONITORED}{place}"


def skip_by_rule(skip: Skip, prospect: Prospect, seed: int, position: int) -> PromptRuling:
    """Draw whether a prompt is skipped, by seed and place in the stream, as a resumed phase does.

    Args:
        skip: rule of the phase.
        prospect: of the prompt.
        seed: of the phase.
        position: prompts drawn so far, this one among them.
    """
    probability = skip.keep_probability(prospect)
    place = np.random.default_rng([seed, position, SKIP_STREAM])
    is_kept = place.random() < probability
    return PromptRuling("" if is_kept else GroupOutcome.SKIPPED_ZERO_VARIANCE, probability)


def weigh_kept(skip: Skip, draw: PromptDraw) -> list[KeptPrompt]:
    """Weigh the kept prompts of a draw against those that its rule skipped.

    Bands of the curriculum and group DRO change what is asked for: nothing makes up for them.
    """
    if not skip.weighs or not draw.problems:
        return [KeptPrompt(probability) for probability in draw.probabilities]
    by_rule = [one.reason == GroupOutcome.SKIPPED_ZERO_VARIANCE for _, one in draw.passed_over]
    factor = inverse_sampling(len(draw.problems), sum(by_rule))
    weights = [skip.weight(probability) for probability in draw.probabilities]
    return [
        KeptPrompt(probability, factor * weight, weight < 1.0 / probability)
        for probability, weight in zip(draw.probabilities, weights, strict=True)
    ]


class Collector:
    """Turns the prompt stream into the rollouts of every step."""

    def __init__(
        self,
        settings: RLSettings,
        engine: RolloutEngine,
        tokenizer: PreTrainedTokenizerBase,
        scorer: Scorer,
        problems: Sequence[Problem],
        start: CollectorState | None = None,
        recipe: Recipe = PLAIN,
    ) -> None:
        if recipe.shaper is not None:
            recipe.shaper.check([one for one in problems if one.domain in settings.domains])
        self._skip = find_skip(settings)
        if recipe.turns is not None:
            check_turns(settings)
        now = start or first_state(settings, problems)
        self._settings = settings
        self._engine = engine
        self._tokenizer = tokenizer
        self._scorer = scorer
        self._problems = problems
        self._stream = PromptStream(problems, settings.domains, settings.seed, now.position)
        self._history = PromptHistory(now.records)
        self._neighbours = PromptNeighbours(problems, self._history)
        self._stage = now.stage
        self._open = now.open_groups
        self._shaper = recipe.shaper
        self._turns = TurnQueue(recipe.turns, problems, tokenizer, now.turns, now.memory)

    def state(self) -> CollectorState:
        """State at the beginning of the next step."""
        return CollectorState(
            self._stream.position,
            self._history.records(),
            self._stage,
            self._open,
            self._turns.waiting,
            self._turns.memory,
        )

    def collect(self, step: int) -> StepRollouts:
        """Roll out a step's prompts; draw again for zero-variance groups.

        Groups with reward variance fill the batch first; zero-variance groups take the remaining
        slots (RL-ZVP trains on them). The others are surplus: generated, counted, not trained.

        Raises:
            EngineError: more rollouts than the error budget allows have no verdict.
        """
        settings, before = self._settings, self._engine.counters
        self._turns.begin_step()
        whole = self._roll_out(step)
        self._open = tuple(item.group for item in whole.in_flight)
        solver = solvers(whole.groups)
        # Groups that began in earlier steps are trained in addition to the step's own.
        places = max(settings.prompts_per_step, num_alive(solver))
        self._stage = self._next_position(solver)
        after = self._engine.counters
        metrics = whole.metrics | {
            "rollout/engine_tokens": float(after.generated_tokens - before.generated_tokens)
        }
        rewarded = self._turns.reward(whole.groups)
        groups = fill(rewarded.groups, places)
        return replace(whole, groups=groups, metrics=metrics | rewarded.metrics)

    def _roll_out(self, step: int) -> StepRollouts:
        """Roll out the step's draws, what waits from earlier steps, and the turns that follow."""
        settings, size = self._settings, self._settings.group_size
        whole = StepRollouts(step, self._engine.policy_version, [])
        missing, free = settings.prompts_per_step, settings.engines.free_running
        flights = [InFlightPrompt(group, 0, 0) for group in self._open]
        for number in range(1 + settings.zero_variance.refill_rounds):
            if number > 0:  # unless free-running, what is in flight waits for the next step
                flights = whole.in_flight if free else []
                whole = replace(whole, in_flight=whole.in_flight[len(flights) :])
            ahead = (IN_FLIGHT - 1) * settings.prompts_per_step - len(flights) if free else 0
            fresh, skipped = self._draw(step, number, max(0, missing + ahead))
            if number == 0:
                fresh = [*self._turns.take(size), *self._turns.begin(fresh)]
            part = self._round(step, fresh, flights, enough=missing if free else 0)
            whole = merge_draw(whole, part, skipped)
            # Over the whole step: a refill of two prompts has too few rollouts for a share.
            check_abstentions(settings, [item.group for item in whole.groups])
            in_flight = 0 if free else sum(item.group.turn is None for item in whole.in_flight)
            missing = settings.prompts_per_step - num_alive(solvers(whole.groups)) - in_flight
            missing = self._affordable(whole, missing)
            if missing <= 0:
                break
        while not self._turns.pipelined and (turns := self._turns.take(size)):
            whole = merge_draw(whole, self._round(step, turns), [])
            check_abstentions(settings, [item.group for item in whole.groups])
        return whole

    def _affordable(self, whole: StepRollouts, missing: int) -> int:
        """Bound the prompts of the next refill by what is left of the tokens for refills."""
        share = self._settings.zero_variance.refill_share
        if not share or not whole.groups:
            return missing
        costs = [(entry.round > 0, entry.new_tokens + entry.draft_tokens) for entry in whole.groups]
        refilled = sum(tokens for is_refill, tokens in costs if is_refill)
        first = sum(tokens for _, tokens in costs) - refilled
        mean = (first + refilled) / len(costs)
        # Below 0 where a single refill has overdrawn the share; the caller then stops.
        return min(missing, int((share * first - refilled) / max(1.0, mean)))

    def _draw(
        self, step: int, number: int, count: int
    ) -> tuple[list[OpenGroup], list[SkippedPrompt]]:
        # Anew: the history has grown since the draw before.
        self._neighbours = PromptNeighbours(self._problems, self._history)
        draw = self._stream.take(count, self._rule)
        lengths = self._history.predicted_tokens([problem for problem, _ in draw.passed_over])
        skipped = []
        for (problem, ruling), tokens in zip(draw.passed_over, lengths, strict=True):
            saved = round(self._settings.group_size * (tokens or 0.0))
            outcome = GroupOutcome(ruling.reason)
            skipped.append(SkippedPrompt(problem, number, outcome, saved, ruling.probability))
            if outcome is GroupOutcome.SKIPPED_ZERO_VARIANCE:
                self._history.skipped(problem.id)
        sizes, kept = self._sizes(draw.problems), weigh_kept(self._skip, draw)
        fresh = [
            OpenGroup(
                f"{step}.{number}.{place}",
                problem,
                number,
                sizes[place],
                kept=kept[place],
            )
            for place, problem in enumerate(draw.problems)
        ]
        return fresh, skipped

    def _sizes(self, problems: Sequence[Problem]) -> list[int]:
        """Choose how many responses every prompt of a draw has."""
        settings = self._settings
        if not settings.group_bounds:
            return [settings.group_size] * len(problems)
        rates = [self._neighbours.pass_rate(problem) or UNKNOWN_RATE for problem in problems]
        lengths = self._history.predicted_tokens(problems)
        known = [length for length in lengths if length] or [1.0]
        typical = sum(known) / len(known)
        low, high = settings.group_bounds
        return sizes_by_rate(
            [solved / (solved + failed) for solved, failed in rates],
            [length or typical for length in lengths],
            mean=settings.group_size,
            bounds=(low, high),
        )

    def _rule(self, problem: Problem) -> PromptRuling:
        """Elimination stage 1: skip a prompt before anything is generated."""
        settings, record = self._settings, self._history.of(problem.id)
        if not in_band(problem, settings.zero_variance.curriculum, self._stage):
            return PromptRuling(GroupOutcome.SKIPPED_BAND, 0.0)
        if settings.group_dro and self._thinned(problem.domain):
            return PromptRuling(GroupOutcome.SKIPPED_DOMAIN, 0.0)
        if self._skip.is_idle or record.skips >= MAX_SKIPS:
            return PromptRuling()
        flat = self._neighbours.zero_variance_probability(problem, settings.group_size)
        prospect = Prospect(flat, record.flat_groups)
        return skip_by_rule(self._skip, prospect, settings.seed, self._stream.position)

    def _thinned(self, domain: Domain) -> bool:
        """Decide by the place in the stream whether group DRO passes over a prompt of a domain."""
        targets = self._settings.domains
        rates = self._neighbours.domain_rates
        losses = {name: 1.0 - rates[name] for name in targets}
        shares = robust_shares(targets, losses, self._settings.group_dro)
        raised = {name: shares[name] / weight for name, weight in targets.items()}
        place = np.random.default_rng([self._settings.seed, self._stream.position])
        return bool(place.random() >= raised[domain] / max(raised.values()))

    def _round(
        self,
        step: int,
        fresh: Sequence[OpenGroup],
        flights: Sequence[InFlightPrompt] = (),
        enough: int = 0,
    ) -> StepRollouts:
        """Roll out and score a draw and what is in flight, until `enough` groups (0 = all) end."""
        before = {item.group.key: item for item in flights}
        groups = [*(item.group for item in flights), *fresh]
        rolled = self._sample(step, groups, enough)
        new, drafted, scored = rolled.new, rolled.drafted, rolled.scored
        outcomes = {
            key: self._settle(
                InFlightPrompt(
                    group, sum(rollout.num_sampled for rollout in new[key]), drafted[key]
                ).after(before.get(key)),
                scored,
            )
            for key, group in rolled.groups.items()
        }
        finished = {key: item for key, item in outcomes.items() if isinstance(item, CollectedGroup)}
        for key, item in finished.items():
            self._turns.follow(key, item)
        return StepRollouts(
            step=step,
            policy_version=self._engine.policy_version,
            groups=list(finished.values()),
            in_flight=[item for item in outcomes.values() if isinstance(item, InFlightPrompt)],
            costs=costs_of(groups, new, drafted, scored, rolled.rollout_seconds),
            metrics=rolled.metrics,
            rollout_seconds=rolled.rollout_seconds,
            reward_seconds=rolled.reward_seconds,
        )

    def _sample(self, step: int, groups: Sequence[OpenGroup], enough: int) -> RolloutResult:
        """Generate and score what the groups lack, up to their sizes."""
        started = time.perf_counter()
        prompts = {
            group.key: sample_prompts(self._shaper, self._tokenizer, step, group)
            for group in groups
        }
        requests = [
            request
            for group in groups
            for request in requests_of(group, runs_of_samples(prompts[group.key]))
        ]
        owners = {group.key: group for group in groups}
        sampling = self._sampling(enough)
        lengths = self._history.predicted_tokens([owners[r.problem_id].problem for r in requests])
        lengths = [
            length if length is not None else mean_length(owners[request.problem_id])
            for length, request in zip(lengths, requests, strict=True)
        ]
        expected = forecast(lengths, requests, self._engine, sampling)
        drafted = dict.fromkeys(owners, 0)
        for request, tokens in zip(requests, expected.draft_tokens, strict=True):
            drafted[request.problem_id] += tokens
        ordered = order_requests(requests, expected.tokens, sampling.segment_tokens)
        if enough:
            steps = {key: group.step for key, group in owners.items()}
            ordered = oldest_first(ordered, steps, due=step - self._settings.engines.staleness)
        new = self._generate(owners, prompts, ordered, sampling)
        rolled = time.perf_counter()
        scored = self._scorer.gather()
        return RolloutResult(
            groups={key: update_group(group, new[key]) for key, group in owners.items()},
            new=new,
            drafted=drafted,
            scored=scored,
            metrics=draw_metrics(requests, expected, new, self._engine),
            rollout_seconds=rolled - started,
            reward_seconds=time.perf_counter() - rolled,
        )

    def _sampling(self, enough: int) -> Sampling:
        """One seed for the phase: random streams are keyed by group, sample and position."""
        settings = self._settings
        return Sampling(
            max_new_tokens=settings.max_new_tokens,
            temperature=settings.temperature,
            seed=settings.seed,
            top_p=settings.top_p,
            top_k=settings.top_k,
            record_kept=settings.truncates,
            segment_tokens=0 if enough else int(settings.engines.segment_tokens),
            enough=enough,
        )

    def _generate(
        self,
        owners: Mapping[str, OpenGroup],
        prompts: Mapping[str, Sequence[SamplePrompt]],
        requests: Sequence[Request],
        sampling: Sampling,
    ) -> dict[str, list[Rollout]]:
        """Submit every response to the scorer as it ends; return new segments by group and sample.

        In segments, a group is submitted when its last response has ended: until then it is
        not known whether it will be scored in this step.
        """
        live = dict(owners)
        new: dict[str, list[Rollout]] = {key: [] for key in owners}
        problems = {key: group.problem for key, group in owners.items()}
        for generated in episodes.generate(
            self._engine, self._tokenizer, problems, requests, sampling
        ):
            rollout = prompts[generated.problem_id][generated.sample].note(generated)
            if (turn := owners[rollout.problem_id].turn) is not None:
                rollout = replace(rollout, role=turn.agent)
            new[rollout.problem_id].append(rollout)
            group = live[rollout.problem_id] = update_group(live[rollout.problem_id], [rollout])
            (whole,) = (item for item in group.rollouts if item.sample == rollout.sample)
            check_routes(self._settings, whole, self._engine.num_experts)
            check_sets(self._settings, whole)
            if not (sampling.segment_tokens or sampling.enough):
                self._submit(group, whole)
            elif group.complete:
                for item in group.rollouts:
                    self._submit(group, item)
        for rollouts in new.values():
            # They ended in the order of their lengths, or of the speed of the replicas.
            rollouts.sort(key=lambda rollout: rollout.sample)
        requested = sum(request.num_samples for request in requests)
        # Free-running, the call ends before some responses have begun.
        if not sampling.enough and requested != sum(map(len, new.values())):
            raise EngineError("the rollout engine did not return every requested sample")
        return new

    def _submit(self, group: OpenGroup, rollout: Rollout) -> None:
        names = self._settings.rewards.monitor if group.turn is None else ()
        watched = [
            (monitored_key(group.key, place), group.problem.model_copy(update={"verifier": name}))
            for place, name in enumerate(names)
        ]
        for key, problem in ((group.key, group.problem), *watched):
            self._scorer.submit(
                ScoringRequest(
                    problem=problem,
                    group=key,
                    sample=rollout.sample,
                    group_size=group.size,
                    tokens=rollout.response_tokens,
                    sampled=rollout.sampled,
                )
            )

    def _monitored(
        self, group: OpenGroup, sample: int, scored: Mapping[tuple[str, int], ResponseScore]
    ) -> tuple[float | None, ...]:
        names = self._settings.rewards.monitor if group.turn is None else ()
        return tuple(
            scored[monitored_key(group.key, place), sample].verdict.score
            for place in range(len(names))
        )

    def _settle(
        self, item: InFlightPrompt, scored: Mapping[tuple[str, int], ResponseScore]
    ) -> CollectedGroup | InFlightPrompt:
        """Give a complete group its verdicts and its outcome; leave another one in flight."""
        group = item.group
        if not group.complete:
            return item
        verdicts = [
            excused(group.turn, scored[group.key, rollout.sample]) for rollout in group.rollouts
        ]
        shaping = penalties(self._settings, group.rollouts, [one.verdict for one in verdicts])
        items = tuple(
            ScoredRollout(
                rollout,
                one.text,
                one.verdict,
                penalty,
                self._monitored(group, rollout.sample, scored),
            )
            for rollout, one, penalty in zip(group.rollouts, verdicts, shaping, strict=True)
        )
        whole = RolloutGroup(group.problem, items)
        return CollectedGroup(
            group=whole,
            round=group.round,
            outcome=decide_outcome(self._settings, whole),
            new_tokens=item.new_tokens,
            draft_tokens=item.draft_tokens,
            pass_rate_change=0.0 if group.turn else self._remember(group, items),
            turn=group.turn,
            kept=group.kept,
        )

    def _remember(self, group: OpenGroup, items: Sequence[ScoredRollout]) -> float:
        """Record a prompt's group; return the change of its pass rate, 0 if there is none."""
        bare = [item.verdict for item in items if is_bare(item.rollout)]
        solved = sum(verdict.solved for verdict in bare)
        num_scored = sum(not verdict.abstained for verdict in bare)
        before = self._history.of(group.problem.id).last_pass_rate
        lengths = [rollout.num_sampled for rollout in group.rollouts]
        expected = self._neighbours.expected_pass_rate(group.problem)
        self._history.remember(group.problem.id, solved, num_scored, lengths, expected)
        return 0.0 if before is None or not num_scored else solved / num_scored - before

    def _next_position(self, groups: Sequence[CollectedGroup]) -> CurriculumPosition:
        verdicts = [
            item.verdict
            for entry in groups
            for item in entry.group.rollouts
            if is_bare(item.rollout)
        ]
        scored = [verdict for verdict in verdicts if not verdict.abstained]
        if not scored:
            return self._stage
        share = sum(verdict.solved for verdict in scored) / len(scored)
        return after_step(self._stage, share, len(self._settings.zero_variance.curriculum))
