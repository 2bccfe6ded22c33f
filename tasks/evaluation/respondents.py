"""Who answers the problems of an evaluation: a checkpoint in a rollout engine, or an endpoint."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerBase

from data_schemas.rollouts import StopReason
from data_schemas.rows import Problem
from data_schemas.settings import EvaluationSettings
from data_schemas.verdicts import Verdict
from tasks.engines import episodes
from tasks.engines.chat import render_prompts, response_text
from tasks.engines.protocols import Request, RolloutEngine, Sampling
from tasks.errors import EngineError
from tasks.gym.environments.table import ENVIRONMENTS
from tasks.gym.judging.chat_client import ChatClient, ChatSampling
from tasks.gym.judging.endpoint import FailedPrompt, ReplyFailure
from tasks.store.files import sha256_bytes

_ONE_TURN = "an endpoint is asked for one turn; problems with an environment need a checkpoint"
Key = tuple[str, int]
"""Id of a problem, and the number of the sample."""


@dataclass(frozen=True, slots=True)
class EvaluationAnswer:
    """One response, or the reason why there is none."""

    problem_id: str
    sample: int
    content: NDArray[np.int32] | str
    """Tokens, or the text of an endpoint."""
    tokens: int = 0
    """Tokens of the policy; what an environment says is not counted."""
    truncated: bool = False
    surprisal_nats: float | None = None
    sampled: NDArray[np.bool_] | None = None
    """As `Rollout.sampled`."""
    failure: str = ""
    """Why the endpoint did not answer: such a response has no verdict."""
    detail: str = ""

    @property
    def key(self) -> Key:
        """Id of the problem, number of the sample."""
        return self.problem_id, self.sample


class Respondent(Protocol):
    """Answers problems; the same sample of the same problem is the same whatever else is asked."""

    def answer(
        self, problems: Mapping[str, Problem], keys: Sequence[Key]
    ) -> Iterator[EvaluationAnswer]:
        """Yield the answers as they finish, in any order.

        Args:
            problems: by id.
            keys: sorted by problem and sample.

        Raises:
            EngineError: no more answers can be had; those yielded are valid.
        """
        ...


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A model in a rollout engine."""

    engine: RolloutEngine
    tokenizer: PreTrainedTokenizerBase
    settings: EvaluationSettings

    def answer(
        self, problems: Mapping[str, Problem], keys: Sequence[Key]
    ) -> Iterator[EvaluationAnswer]:
        """Generate the samples."""
        settings = self.settings
        names = list(dict.fromkeys(name for name, _ in keys))
        prompts = dict(
            zip(
                names,
                render_prompts(self.tokenizer, [problems[name].messages for name in names]),
                strict=True,
            )
        )
        requests = [
            Request(name, prompts[name], num_samples=count, first_sample=first)
            for name, first, count in _runs(keys)
        ]
        sampling = Sampling(
            max_new_tokens=settings.max_new_tokens,
            temperature=settings.temperature,
            top_p=settings.top_p,
            min_p=settings.min_p,
            stop=settings.stop,
            seed=settings.seed,
            record_routes=False,
        )
        for rollout in episodes.generate(self.engine, self.tokenizer, problems, requests, sampling):
            yield EvaluationAnswer(
                problem_id=rollout.problem_id,
                sample=rollout.sample,
                content=rollout.response_tokens,
                tokens=rollout.num_sampled,
                truncated=rollout.stop_reason is StopReason.LENGTH,
                surprisal_nats=-float(rollout.logprobs.sum(dtype="float64")),
                sampled=rollout.sampled,
            )


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model that an OpenAI-compatible endpoint serves."""

    client: ChatClient
    settings: EvaluationSettings

    def answer(
        self, problems: Mapping[str, Problem], keys: Sequence[Key]
    ) -> Iterator[EvaluationAnswer]:
        """Ask for every sample; one without a reply is yielded as a failure.

        Raises:
            EngineError: the endpoint is down.
        """
        alone = [key for key in keys if problems[key[0]].verifier in ENVIRONMENTS]
        for name, sample in alone:
            yield EvaluationAnswer(name, sample, "", failure="needs_environment", detail=_ONE_TURN)
        keys = [key for key in keys if key not in set(alone)]
        turns = [problems[name].messages for name, _ in keys]
        seeds = [_seed(self.settings.seed, key) for key in keys]
        unasked = ""
        for place, reply in self.client.stream(turns, seeds):
            name, sample = keys[place]
            if not isinstance(reply, FailedPrompt):
                yield EvaluationAnswer(name, sample, reply.text, reply.tokens, reply.truncated)
            elif reply.loss is ReplyFailure.UNASKED:
                unasked = reply.cause
            else:
                yield EvaluationAnswer(
                    name, sample, "", failure=reply.loss.value, detail=reply.cause
                )
        if unasked:
            raise EngineError(
                f"{self.client.name} stopped answering: {unasked}. Its answers so far are kept; "
                "start the same command again to ask what is missing."
            )


def chat_sampling(settings: EvaluationSettings) -> ChatSampling:
    """Return the sampling parameters of an endpoint's requests."""
    return ChatSampling(
        max_tokens=settings.max_new_tokens,
        temperature=settings.temperature,
        top_p=settings.top_p,
        min_p=settings.min_p,
        stop=settings.stop,
    )


def _runs(keys: Sequence[Key]) -> Iterator[tuple[str, int, int]]:
    """Yield (problem, first sample, number of samples) of samples without a gap."""
    numbered = enumerate(keys)
    for (name, _), run in groupby(numbered, key=lambda item: (item[1][0], item[1][1] - item[0])):
        samples = [sample for _, (_, sample) in run]
        yield name, samples[0], len(samples)


def _seed(seed: int, key: Key) -> int:
    """Return the seed of one request; servers take 31 bits."""
    text = f"{seed}/{key[1]}/{key[0]}"
    return int(sha256_bytes(text.encode())[:8], 16) >> 1


@dataclass(frozen=True, slots=True)
class ScoredModel:
    """A model under test, and how its responses are read and scored."""

    respondent: Respondent
    tokenizer: PreTrainedTokenizerBase
    score: Callable[[Sequence[Problem], Sequence[str]], list[Verdict]]

    def texts(self, problems: Mapping[str, Problem], samples: int) -> dict[str, list[str]]:
        """Answer every problem; the texts by id, in order of the samples."""
        keys = [(name, sample) for name in sorted(problems) for sample in range(samples)]
        contents = {answer.key: answer.content for answer in self.respondent.answer(problems, keys)}
        return {
            name: [self._text(contents[name, sample]) for sample in range(samples)]
            for name in sorted(problems)
        }

    def right(self, problem: Problem, texts: Sequence[str]) -> list[bool]:
        """Score responses to one problem; one without a verdict is not right."""
        return [one.solved for one in self.score([problem] * len(texts), texts)]

    def _text(self, content: NDArray[np.int32] | str) -> str:
        if isinstance(content, str):
            return content
        return response_text(self.tokenizer, content.tolist())
