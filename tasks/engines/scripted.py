"""A rollout engine without a model: a plain function returns the responses.

For tests that need rollouts, and for trying a recipe before there is a model.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerBase

from data_schemas.rollouts import Rollout, StopReason
from tasks.algorithms.digests import weight_digest
from tasks.engines.chat import render_response
from tasks.engines.protocols import EngineCounters, Request, Sampling
from tasks.engines.stop_strings import StopStrings

Script = Callable[[str, int], str]
"""(rendered prompt, index of the sample) -> response text without end token."""


class ScriptedRolloutEngine:
    """A RolloutEngine with deterministic responses: every log-probability is 0.

    It has no experts, so no rollout carries a trace. Weights are digested and forgotten.
    """

    def __init__(
        self, tokenizer: PreTrainedTokenizerBase, script: Script, *, version: int = 0
    ) -> None:
        self._tokenizer = tokenizer
        self._script = script
        self._version = version
        self._counters = EngineCounters()

    @property
    def num_experts(self) -> int:
        """A script has no router."""
        return 0

    @property
    def policy_version(self) -> int:
        """Version of the weights installed last."""
        return self._version

    def slots(self, tokens: float) -> int:
        """One: responses are generated in sequence."""
        return 1

    @property
    def counters(self) -> EngineCounters:
        """Responses generated so far."""
        return self._counters

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> Iterator[Rollout]:
        """Answer every prompt in order; long responses are cut at the token limit."""
        for request in requests:
            prompt = str(self._tokenizer.decode(request.prompt_tokens.tolist()))
            earlier = len(request.response_tokens)
            self._count(prompt_tokens=len(request.prompt_tokens) + earlier)
            for sample in range(request.first_sample, request.first_sample + request.num_samples):
                whole = render_response(self._tokenizer, self._script(prompt, sample))
                end = sampling.max_new_tokens
                if sampling.segment_tokens:
                    end = min(end, earlier + sampling.segment_tokens)
                tokens, stopped = self._until_stop(whole[earlier:end], sampling)
                self._count(sequences=1, generated_tokens=len(tokens))
                yield Rollout(
                    problem_id=request.problem_id,
                    sample=sample,
                    prompt_tokens=request.prompt_tokens,
                    response_tokens=tokens,
                    logprobs=np.zeros(len(tokens), dtype=np.float32),
                    trace=None,
                    stop_reason=StopReason.STOP if stopped else _reason(len(whole), end, sampling),
                    policy_version=self._version,
                )

    def _until_stop(
        self, tokens: NDArray[np.int32], sampling: Sampling
    ) -> tuple[NDArray[np.int32], bool]:
        """Cut a response behind its first stop string; True if there is one."""
        stop = StopStrings(self._tokenizer, sampling.stop)
        tails = [tokens[max(0, end - stop.tail) : end] for end in range(1, len(tokens) + 1)]
        hits = stop.match([tail.tolist() for tail in tails]) if sampling.stop else []
        return (tokens[: hits.index(True) + 1], True) if True in hits else (tokens, False)

    def score_logprobs(self, tokens: Sequence[NDArray[np.int32]]) -> list[NDArray[np.float32]]:
        """Zeros: every token has probability 1."""
        return [np.zeros(len(one) - 1, dtype=np.float32) for one in tokens]

    def load_weights(self, weights: Iterator[tuple[str, torch.Tensor]], version: int) -> str:
        """Store the version and return the digest of the received tensors."""
        self._version = version
        return weight_digest(weights)

    def sleep(self) -> None:
        """Do nothing: there is no memory to release."""

    def close(self) -> None:
        """Do nothing: there are no resources to free."""

    def _count(self, sequences: int = 0, generated_tokens: int = 0, prompt_tokens: int = 0) -> None:
        before = self._counters
        self._counters = EngineCounters(
            sequences=before.sequences + sequences,
            generated_tokens=before.generated_tokens + generated_tokens,
            prompt_tokens=before.prompt_tokens + prompt_tokens,
        )


def _reason(length: int, end: int, sampling: Sampling) -> StopReason:
    if length <= end:
        return StopReason.END
    return StopReason.LENGTH if end == sampling.max_new_tokens else StopReason.SEGMENT
