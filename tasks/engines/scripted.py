"""A rollout engine without a model: answers come from a plain function.

For tests of whatever needs rollouts, and for trying a recipe before there is a model.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from transformers import PreTrainedTokenizerBase

from data_schemas.rollouts import Rollout, StopReason
from tasks.algorithms.digests import weight_digest
from tasks.engines.chat import render_response
from tasks.engines.protocols import Request, Sampling

Script = Callable[[str, int], str]
"""(rendered prompt, index of the sample) -> response text without end token."""


class ScriptedRolloutEngine:
    """A RolloutEngine whose answers are certain: every log-probability is 0.

    It has no experts, so no rollout carries a trace. Weights are digested and forgotten.
    """

    def __init__(
        self, tokenizer: PreTrainedTokenizerBase, script: Script, *, version: int = 0
    ) -> None:
        self._tokenizer = tokenizer
        self._script = script
        self._version = version

    @property
    def num_experts(self) -> int:
        """A script has no router."""
        return 0

    @property
    def policy_version(self) -> int:
        """Version of the weights installed last."""
        return self._version

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> Iterator[Rollout]:
        """Answer every prompt in order; too long answers are cut as a model's would be."""
        for request in requests:
            prompt = str(self._tokenizer.decode(request.prompt_tokens.tolist()))
            for sample in range(request.num_samples):
                whole = render_response(self._tokenizer, self._script(prompt, sample))
                tokens = whole[: sampling.max_new_tokens]
                yield Rollout(
                    problem_id=request.problem_id,
                    sample=sample,
                    prompt_tokens=request.prompt_tokens,
                    response_tokens=tokens,
                    logprobs=np.zeros(len(tokens), dtype=np.float32),
                    trace=None,
                    stop_reason=StopReason.END if len(tokens) == len(whole) else StopReason.LENGTH,
                    policy_version=self._version,
                )

    def load_weights(self, weights: Iterator[tuple[str, torch.Tensor]], version: int) -> str:
        """Take note of the version and return the digest of what was handed over."""
        self._version = version
        return weight_digest(weights)
