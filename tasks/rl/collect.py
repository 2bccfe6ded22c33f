"""Prompts to scored rollout groups, with refill for groups that carry no contrast."""

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from transformers import PreTrainedTokenizerBase

from data_schemas.ledger import Fate
from data_schemas.prompts import Problem
from data_schemas.rollouts import Rollout, RolloutGroup, ScoredRollout, StopReason
from data_schemas.settings import RLSettings, RouterReplay
from data_schemas.verdicts import SOLVED_TOLERANCE, Verdict
from tasks.algorithms.penalties import overlong_penalty, repetition_penalty, repetition_ratio
from tasks.algorithms.routing import check_trace
from tasks.engines.chat import render_prompt, response_text
from tasks.engines.protocols import Request, RolloutEngine, Sampling
from tasks.errors import DataError, EngineError
from tasks.rl.draw import PromptStream

REPETITION_CAP = 0.5
"""Largest repetition penalty; CompassMax gives no number."""

Score = Callable[[Sequence[Problem], Sequence[str]], list[Verdict]]


@dataclass(frozen=True, slots=True)
class CollectedGroup:
    """A group, the draw it came from, and what is to become of it."""

    group: RolloutGroup
    round: int
    fate: Fate


@dataclass(frozen=True, slots=True)
class Collected:
    """One step's rollouts. `groups` holds every prompt rolled out; fates say which train."""

    groups: list[CollectedGroup]
    rollout_seconds: float
    reward_seconds: float

    @property
    def trained(self) -> list[CollectedGroup]:
        """The groups of the training batch."""
        return [item for item in self.groups if item.fate is not Fate.SURPLUS]


def collect(
    settings: RLSettings,
    engine: RolloutEngine,
    tokenizer: PreTrainedTokenizerBase,
    score: Score,
    stream: PromptStream,
    step: int,
) -> Collected:
    """Roll out a step's prompts; draw again for groups without contrast.

    Groups with contrast fill the batch first; flat ones take the places that are left
    (RL-ZVP teaches from them), the rest are surplus: paid for, counted, not trained.

    Raises:
        EngineError: more rollouts than the error budget allows have no verdict.
    """
    found: list[CollectedGroup] = []
    rollout_seconds = reward_seconds = 0.0
    missing = settings.prompts_per_step
    for draw in range(1 + settings.zero_variance.refill_rounds):
        problems = stream.take(missing)
        started = time.perf_counter()
        rollouts = _roll_out(
            settings, engine, tokenizer, problems, _seed(settings.seed, step, draw)
        )
        rolled = time.perf_counter()
        groups = _score(settings, tokenizer, score, problems, rollouts)
        rollout_seconds += rolled - started
        reward_seconds += time.perf_counter() - rolled
        found += [CollectedGroup(group, draw, fate_of(settings, group)) for group in groups]
        # Over the whole step: a refill of two prompts has too few rollouts to judge by.
        _check_budget(settings, [item.group for item in found])
        missing = settings.prompts_per_step - sum(item.fate is Fate.CONTRAST for item in found)
        if missing <= 0:
            break
    return Collected(_fill(found, settings.prompts_per_step), rollout_seconds, reward_seconds)


def fate_of(settings: RLSettings, group: RolloutGroup) -> Fate:
    """Decide on correctness alone: shaping must not make a flat group look alive."""
    scores = [item.verdict.score for item in group.rollouts if item.verdict.score is not None]
    if len(scores) < 2:
        return Fate.UNSCORED
    if max(scores) - min(scores) > SOLVED_TOLERANCE:
        return Fate.CONTRAST
    if SOLVED_TOLERANCE < scores[0] < 1.0 - SOLVED_TOLERANCE:
        return Fate.FLAT_PARTIAL
    if settings.zero_variance.rl_zvp_alpha == 0.0:
        return Fate.ZERO_VARIANCE_IDLE
    return Fate.ZERO_VARIANCE_TRAINED


def _roll_out(
    settings: RLSettings,
    engine: RolloutEngine,
    tokenizer: PreTrainedTokenizerBase,
    problems: Sequence[Problem],
    seed: int,
) -> list[list[Rollout]]:
    """Answer every problem group_size times; results in the order of the problems.

    A prompt may be drawn twice in a step, so requests are told apart by their place.
    """
    requests = [
        Request(str(place), render_prompt(tokenizer, problem.messages), settings.group_size)
        for place, problem in enumerate(problems)
    ]
    sampling = Sampling(settings.max_new_tokens, settings.temperature, seed)
    answers: list[list[Rollout | None]] = [[None] * settings.group_size for _ in problems]
    for rollout in engine.generate(requests, sampling):
        _check_routes(settings, rollout, engine.num_experts)
        answers[int(rollout.problem_id)][rollout.sample] = rollout
    complete = [[rollout for rollout in group if rollout is not None] for group in answers]
    if any(len(group) != settings.group_size for group in complete):
        raise EngineError("the rollout engine did not return every sample it was asked for")
    return complete


def _check_routes(settings: RLSettings, rollout: Rollout, num_experts: int) -> None:
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


def _score(
    settings: RLSettings,
    tokenizer: PreTrainedTokenizerBase,
    score: Score,
    problems: Sequence[Problem],
    rollouts: Sequence[Sequence[Rollout]],
) -> list[RolloutGroup]:
    flat = [rollout for group in rollouts for rollout in group]
    texts = [response_text(tokenizer, rollout.response_tokens.tolist()) for rollout in flat]
    owners = [problem for problem in problems for _ in range(settings.group_size)]
    scored = [
        ScoredRollout(rollout, text, verdict, shaping)
        for rollout, text, verdict, shaping in zip(
            flat, texts, score(owners, texts), penalties(settings, flat), strict=True
        )
    ]
    size = settings.group_size
    return [
        RolloutGroup(problem, tuple(scored[place * size : (place + 1) * size]))
        for place, problem in enumerate(problems)
    ]


def penalties(settings: RLSettings, rollouts: Sequence[Rollout]) -> list[float]:
    """Shaping of every response: soft overlong plus repetition, both <= 0."""
    rewards = settings.rewards
    lengths_N = np.array([len(rollout.response_tokens) for rollout in rollouts], dtype=np.int64)
    overlong_N = overlong_penalty(
        lengths_N, max_length=settings.max_new_tokens, buffer=rewards.overlong_buffer
    )
    repetition_N = repetition_penalty(
        np.array([repetition_ratio(rollout.response_tokens) for rollout in rollouts]),
        start=rewards.repetition_start,
        weight=rewards.repetition_weight,
        cap=REPETITION_CAP,
    )
    return (rewards.overlong_weight * overlong_N + repetition_N).tolist()


def _check_budget(settings: RLSettings, groups: Sequence[RolloutGroup]) -> None:
    verdicts = [item.verdict for group in groups for item in group.rollouts]
    abstained = [verdict.reason for verdict in verdicts if verdict.abstained]
    if len(abstained) > settings.rewards.max_abstained_share * len(verdicts):
        reasons = ", ".join(
            f"{reason} x{abstained.count(reason)}" for reason in sorted(set(abstained))
        )
        raise EngineError(
            f"{len(abstained)} of {len(verdicts)} rollouts have no verdict ({reasons}); "
            "the step is not trained on noise. Fix the verifier, "
            "or raise rewards.max_abstained_share."
        )


def _fill(found: Sequence[CollectedGroup], places: int) -> list[CollectedGroup]:
    """Give the places of the batch to groups with contrast first, then in order of drawing."""
    ranked = sorted(range(len(found)), key=lambda index: found[index].fate is not Fate.CONTRAST)
    chosen = set(ranked[:places])
    return [
        item if index in chosen else CollectedGroup(item.group, item.round, Fate.SURPLUS)
        for index, item in enumerate(found)
    ]


def _seed(*parts: int) -> int:
    """One 63-bit seed from several numbers, so that no two draws share a stream."""
    digest = hashlib.sha256(np.asarray(parts, dtype=np.int64).tobytes()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def truncated_share(groups: Sequence[CollectedGroup]) -> float:
    """Share of responses that reached their token limit."""
    stops = [item.rollout.stop_reason for entry in groups for item in entry.group.rollouts]
    return sum(stop is StopReason.LENGTH for stop in stops) / max(1, len(stops))
