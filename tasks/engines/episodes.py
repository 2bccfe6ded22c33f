"""Responses of several turns: the policy speaks, its environment answers, the policy goes on.

Tokens in, tokens out: an answer is tokenised once and appended to the tokens that the policy has
sampled, and the engine continues from exactly these; nothing is decoded and tokenised again. An
answer's tokens are not the policy's: `Rollout.sampled` excludes them from every loss, statistic
and budget of tokens. Their routes are recorded like those of a prompt.

All open episodes of a call take a turn together. With the embedded engine an episode has the same
bits whatever else is in the batch, because a token is sampled by its position.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerBase

from data_schemas.rollouts import Rollout, RouterTrace, StopReason, split_turns
from data_schemas.rows import Problem
from tasks.algorithms.kept_sets import join_kept, nothing_kept
from tasks.engines.chat import render_observation, response_text
from tasks.engines.protocols import Request, RolloutEngine, Sampling
from tasks.errors import SettingsError
from tasks.gym.environments.table import ENVIRONMENTS
from tasks.gym.protocol import join_turns


def generate(
    engine: RolloutEngine,
    tokenizer: PreTrainedTokenizerBase,
    problems: Mapping[str, Problem],
    requests: Sequence[Request],
    sampling: Sampling,
) -> Iterator[Rollout]:
    """Yield every response as it ends, as `RolloutEngine.generate`, with all turns of its episode.

    Args:
        engine: generates the turns.
        tokenizer: of the policy.
        problems: by `Request.problem_id`.
        requests: without earlier response tokens where the problem has an environment.
        sampling: `max_new_tokens` bounds an episode with its environment's tokens.

    Raises:
        SettingsError: responses of several turns are to be generated in segments.
    """
    in_segments = sampling.segment_tokens or sampling.enough
    if in_segments and any(p.verifier in ENVIRONMENTS for p in problems.values()):
        raise SettingsError(
            "problems with an environment are not generated in segments; "
            "set engines.segment_tokens to 0"
        )
    open_episodes: dict[tuple[str, int], Rollout] = {}
    # Samples of one problem may be drawn under different prompts, each a request of its own.
    first = {
        (request.problem_id, request.first_sample + place): request
        for request in requests
        for place in range(request.num_samples)
    }
    while requests:
        following: list[Request] = []
        for turn in engine.generate(requests, sampling):
            key = turn.problem_id, turn.sample
            episode = _join(open_episodes.pop(key), turn) if key in open_episodes else turn
            answer = _answer(problems[turn.problem_id], tokenizer, episode)
            if answer is None:
                yield episode
            elif len(episode.response_tokens) + len(answer) >= sampling.max_new_tokens:
                yield replace(episode, stop_reason=StopReason.LENGTH)
            else:
                open_episodes[key] = _with_answer(episode, answer)
                following.append(_next_turn(first[key], open_episodes[key]))
        requests = following


def text_of(tokenizer: PreTrainedTokenizerBase, rollout: Rollout, verifier: str = "") -> str:
    """Decode a response for its verifier: the policy's turns, without the environment's.

    A verifier with an environment hears whether the last turn was cut.
    """
    cut = verifier in ENVIRONMENTS and rollout.stop_reason is StopReason.LENGTH
    return join_turns(_texts(tokenizer, rollout), cut=cut)


def _texts(tokenizer: PreTrainedTokenizerBase, rollout: Rollout) -> list[str]:
    turns = split_turns(rollout.response_tokens, rollout.sampled)
    return [response_text(tokenizer, turn.tolist()) for turn in turns]


def _answer(
    problem: Problem, tokenizer: PreTrainedTokenizerBase, episode: Rollout
) -> NDArray[np.int32] | None:
    """Tokens of the environment's answer; None if the episode has ended."""
    environment = ENVIRONMENTS.get(problem.verifier)
    if environment is None or episode.stop_reason is not StopReason.END:
        return None
    messages = environment(problem, _texts(tokenizer, episode))
    return None if messages is None else render_observation(tokenizer, messages)


def _with_answer(episode: Rollout, answer: NDArray[np.int32]) -> Rollout:
    num_sampled, num_read = len(episode.response_tokens), len(answer)
    sampled = np.ones(num_sampled, np.bool_) if episode.sampled is None else episode.sampled
    return replace(
        episode,
        response_tokens=np.concatenate([episode.response_tokens, answer]),
        logprobs=np.pad(episode.logprobs, (0, num_read)),
        kept=episode.kept and join_kept(episode.kept, nothing_kept(num_read)),
        sampled=np.pad(sampled, (0, num_read)),
    )


def _next_turn(first: Request, episode: Rollout) -> Request:
    """Continue an episode."""
    return replace(
        first,
        num_samples=1,
        first_sample=episode.sample,
        response_tokens=episode.response_tokens,
    )


def _join(before: Rollout, turn: Rollout) -> Rollout:
    """Join an episode with its next turn; routes stay those of the time of sampling."""
    trace = turn.trace
    if trace is not None and before.trace is not None:
        old_TLK = before.trace.experts_TLK
        trace = RouterTrace(np.concatenate([old_TLK, trace.experts_TLK[len(old_TLK) :]]))
    assert before.sampled is not None
    return replace(
        turn,
        response_tokens=np.concatenate([before.response_tokens, turn.response_tokens]),
        logprobs=np.concatenate([before.logprobs, turn.logprobs]),
        kept=join_kept(before.kept, turn.kept),
        sampled=np.pad(before.sampled, (0, len(turn.response_tokens)), constant_values=True),
        trace=trace,
    )
