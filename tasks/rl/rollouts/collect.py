"""From prompts to scored rollout groups: draw, schedule, roll out, score, refill.

A Collector carries state from one step to the next: the positions in the prompt stream and in the
curriculum, the prompts' records, and unfinished responses. All of it is plain data
(CollectorState), so that a run resumes exactly from a committed step.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from transformers import PreTrainedTokenizerBase

from data_schemas.ledger import GroupOutcome
from data_schemas.machine_settings import Reuse
from data_schemas.prompts import Problem
from data_schemas.rl_settings import RLSettings
from data_schemas.rollouts import Rollout, RolloutGroup, ScoredRollout
from data_schemas.scoring import Finished, Scored
from tasks.algorithms.scheduling import IN_FLIGHT
from tasks.engines.protocols import Request, RolloutEngine, Sampling
from tasks.errors import EngineError
from tasks.rewards.environments import episodes
from tasks.rewards.protocol import Scorer
from tasks.rl.recipe import PLAIN, Recipe
from tasks.rl.rollouts.agent_turns import TurnQueue, check_turns, excused
from tasks.rl.rollouts.collected import (
    Collected,
    CollectorState,
    InFlight,
    Rolled,
    Skipped,
    costs_of,
    first_state,
    merge_draw,
)
from tasks.rl.rollouts.curriculum import CurriculumPosition, after_step, in_band
from tasks.rl.rollouts.draw import PromptStream
from tasks.rl.rollouts.group_outcomes import (
    CollectedGroup,
    check_abstentions,
    decide_outcome,
    fill,
    num_alive,
    solvers,
)
from tasks.rl.rollouts.history import MAX_SKIPS, History
from tasks.rl.rollouts.neighbours import Neighbours
from tasks.rl.rollouts.prompts import SamplePrompt, is_bare, runs_of_samples, sample_prompts
from tasks.rl.rollouts.reuse import NOISE_SEED, EarlierResponses
from tasks.rl.rollouts.routes import check_routes
from tasks.rl.rollouts.schedule import draw_metrics, forecast, oldest_first, order_requests
from tasks.rl.rollouts.segments import OpenGroup, mean_length, requests_of, update_group
from tasks.rl.rollouts.shaping import penalties


class Collector:
    """Turns the prompt stream into one Collected per step."""

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
        if recipe.turns is not None:
            check_turns(settings)
        now = start or first_state(problems, {})
        self._settings = settings
        self._engine = engine
        self._tokenizer = tokenizer
        self._scorer = scorer
        self._problems = problems
        self._stream = PromptStream(problems, settings.domains, settings.seed, now.position)
        self._history = History(now.records)
        self._neighbours = Neighbours(problems, self._history)
        self._stage = now.stage
        self._open = now.open_groups
        self._shaper = recipe.shaper
        self._turns = TurnQueue(recipe.turns, problems, tokenizer, now.turns, now.memory)
        self._earlier = EarlierResponses(settings.engines.reuse, now.responses)

    def state(self) -> CollectorState:
        """State at the beginning of the next step."""
        return CollectorState(
            self._stream.position,
            self._history.records(),
            self._stage,
            self._open,
            self._earlier.responses(),
            self._turns.waiting,
            self._turns.memory,
        )

    def collect(self, step: int) -> Collected:
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
            "rollout/engine_tokens": float(after.generated_tokens - before.generated_tokens),
            "rollout/verified_tokens": float(after.verified_tokens - before.verified_tokens),
        }
        rewarded = self._turns.reward(whole.groups)
        groups = fill(rewarded.groups, places)
        return replace(whole, groups=groups, metrics=metrics | rewarded.metrics)

    def _roll_out(self, step: int) -> Collected:
        """Roll out the step's draws, what waits from earlier steps, and the turns that follow."""
        settings, size = self._settings, self._settings.group_size
        whole = Collected(step, self._engine.policy_version, [])
        missing, free = settings.prompts_per_step, settings.engines.free_running
        begun = [InFlight(group, 0, 0) for group in self._open]
        for number in range(1 + settings.zero_variance.refill_rounds):
            if number > 0:  # unless free-running, what is in flight waits for the next step
                begun = whole.in_flight if free else []
                whole = replace(whole, in_flight=whole.in_flight[len(begun) :])
            ahead = (IN_FLIGHT - 1) * settings.prompts_per_step - len(begun) if free else 0
            fresh, skipped = self._draw(step, number, max(0, missing + ahead))
            if number == 0:
                fresh = [*self._turns.take(size), *self._turns.begin(fresh)]
            found = self._round(step, fresh, begun, enough=missing if free else 0)
            whole = merge_draw(whole, found, skipped)
            # Over the whole step: a refill of two prompts has too few rollouts for a share.
            check_abstentions(settings, [item.group for item in whole.groups])
            in_flight = 0 if free else sum(item.group.turn is None for item in whole.in_flight)
            missing = settings.prompts_per_step - num_alive(solvers(whole.groups)) - in_flight
            if missing <= 0:
                break
        while not self._turns.pipelined and (turns := self._turns.take(size)):
            whole = merge_draw(whole, self._round(step, turns), [])
            check_abstentions(settings, [item.group for item in whole.groups])
        return whole

    def _draw(self, step: int, number: int, count: int) -> tuple[list[OpenGroup], list[Skipped]]:
        self._neighbours = Neighbours(self._problems, self._history)
        drawn = self._stream.take(count, self._reason_to_pass)
        known = self._history.predicted_tokens([problem for problem, _ in drawn.passed_over])
        skipped = []
        for (problem, reason), tokens in zip(drawn.passed_over, known, strict=True):
            saved = round(self._settings.group_size * (tokens or 0.0))
            skipped.append(Skipped(problem, number, GroupOutcome(reason), saved))
            if reason == GroupOutcome.SKIPPED_ZERO_VARIANCE:
                self._history.skipped(problem.id)
        fresh = [
            OpenGroup(
                f"{step}.{number}.{place}",
                problem,
                number,
                self._settings.group_size,
                stream=self._earlier.stream(step, problem),
            )
            for place, problem in enumerate(drawn.problems)
        ]
        return fresh, skipped

    def _reason_to_pass(self, problem: Problem) -> str:
        """Elimination stage 1: skip a prompt before anything is generated."""
        chosen = self._settings.zero_variance
        if not in_band(problem, chosen.curriculum, self._stage):
            return GroupOutcome.SKIPPED_BAND
        if chosen.skip_above == 1.0 or self._history.of(problem.id).skips >= MAX_SKIPS:
            return ""
        size = self._settings.group_size
        flat = self._neighbours.zero_variance_probability(problem, size)
        return GroupOutcome.SKIPPED_ZERO_VARIANCE if flat > chosen.skip_above else ""

    def _round(
        self, step: int, fresh: Sequence[OpenGroup], begun: Sequence[InFlight] = (), enough: int = 0
    ) -> Collected:
        """Roll out and score a draw and what is in flight, until `enough` groups (0 = all) end."""
        before = {item.group.key: item for item in begun}
        groups = [*(item.group for item in begun), *fresh]
        rolled = self._sample(step, groups, enough)
        new, drafted, scored = rolled.new, rolled.drafted, rolled.scored
        found = {
            key: self._settle(
                InFlight(
                    group, sum(rollout.num_generated for rollout in new[key]), drafted[key]
                ).after(before.get(key)),
                scored,
            )
            for key, group in rolled.groups.items()
        }
        finished = {key: item for key, item in found.items() if isinstance(item, CollectedGroup)}
        for key, item in finished.items():
            self._turns.follow(key, item)
        return Collected(
            step=step,
            policy_version=self._engine.policy_version,
            groups=list(finished.values()),
            in_flight=[item for item in found.values() if isinstance(item, InFlight)],
            costs=costs_of(groups, new, drafted, scored, rolled.rollout_seconds),
            metrics=rolled.metrics,
            rollout_seconds=rolled.rollout_seconds,
            reward_seconds=rolled.reward_seconds,
        )

    def _sample(self, step: int, groups: Sequence[OpenGroup], enough: int) -> Rolled:
        """Generate and score what the groups lack, up to their sizes."""
        started = time.perf_counter()
        prompts = {
            group.key: sample_prompts(self._shaper, self._tokenizer, step, group)
            for group in groups
        }
        requests = [
            request
            for group in groups
            for request in self._earlier.requests(
                group.stream, requests_of(group, runs_of_samples(prompts[group.key]))
            )
        ]
        owners = {group.key: group for group in groups}
        sampling = self._sampling(enough)
        known = self._history.predicted_tokens([owners[r.problem_id].problem for r in requests])
        known = [
            length if length is not None else mean_length(owners[request.problem_id])
            for length, request in zip(known, requests, strict=True)
        ]
        expected = forecast(known, requests, self._engine, sampling)
        requests = self._earlier.with_drafts(requests, expected.drafts)
        drafted = dict.fromkeys(owners, 0)
        for request, tokens in zip(requests, expected.draft_tokens, strict=True):
            drafted[request.problem_id] += tokens
        ordered = order_requests(requests, expected.tokens, sampling.segment_tokens)
        if enough:
            drawn = {key: group.step for key, group in owners.items()}
            ordered = oldest_first(ordered, drawn, due=step - self._settings.engines.staleness)
        new = self._generate(owners, prompts, ordered, sampling)
        rolled = time.perf_counter()
        scored = self._scorer.gather()
        return Rolled(
            groups={key: update_group(group, new[key]) for key, group in owners.items()},
            new=new,
            drafted=drafted,
            scored=scored,
            metrics=draw_metrics(requests, expected, new, self._engine),
            rollout_seconds=rolled - started,
            reward_seconds=time.perf_counter() - rolled,
        )

    def _sampling(self, enough: int) -> Sampling:
        """One seed for the phase: random streams are keyed by group, sample and position.

        With reuse the streams are those of the problems, the same in every step and phase.
        """
        settings = self._settings
        exact = settings.engines.reuse is not Reuse.OFF
        return Sampling(
            max_new_tokens=settings.max_new_tokens,
            temperature=settings.temperature,
            seed=NOISE_SEED if exact else settings.seed,
            exact=exact,
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
            if not (sampling.segment_tokens or sampling.enough):
                self._submit(group, whole)
            elif group.complete:
                for item in group.rollouts:
                    self._submit(group, item)
        for rollouts in new.values():
            rollouts.sort(key=lambda rollout: rollout.sample)
        asked = sum(request.num_samples for request in requests)
        if not sampling.enough and asked != sum(map(len, new.values())):
            raise EngineError("the rollout engine did not return every requested sample")
        return new

    def _submit(self, group: OpenGroup, rollout: Rollout) -> None:
        self._scorer.submit(
            Finished(
                problem=group.problem,
                group=group.key,
                sample=rollout.sample,
                group_size=group.size,
                tokens=rollout.response_tokens,
                sampled=rollout.sampled,
            )
        )

    def _settle(
        self, item: InFlight, scored: Mapping[tuple[str, int], Scored]
    ) -> CollectedGroup | InFlight:
        """Give a complete group its verdicts and its outcome; leave another one in flight."""
        group = item.group
        if not group.complete:
            return item
        found = [
            excused(group.turn, scored[group.key, rollout.sample]) for rollout in group.rollouts
        ]
        shaping = penalties(self._settings, group.rollouts)
        items = tuple(
            ScoredRollout(rollout, one.text, one.verdict, penalty)
            for rollout, one, penalty in zip(group.rollouts, found, shaping, strict=True)
        )
        whole = RolloutGroup(group.problem, items)
        return CollectedGroup(
            group=whole,
            round=group.round,
            outcome=decide_outcome(self._settings, whole),
            new_tokens=item.new_tokens,
            draft_tokens=item.draft_tokens,
            reused_tokens=sum(rollout.reused for rollout in group.rollouts),
            pass_rate_change=0.0 if group.turn else self._remember(group, items),
            turn=group.turn,
        )

    def _remember(self, group: OpenGroup, items: Sequence[ScoredRollout]) -> float:
        """Record a prompt's group; return the change of its pass rate, 0 if there is none."""
        self._earlier.remember(group.stream, group.rollouts)
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
