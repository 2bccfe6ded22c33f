"""Under which prompt every sample of a group is drawn: that of its problem, or one that is shaped.

Only training shapes prompts; evaluation and the sequences that compare the engines after a weight
sync have those of the problems. A sample under a shaped prompt says nothing about how hard its
problem is: `is_bare` selects those that the records of prompts, skips and the curriculum may count.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerBase

from data_schemas.rollouts import Rollout
from tasks.engines.chat import render_prompt
from tasks.rl.recipe import PromptShaper
from tasks.rl.rollouts.segments import OpenGroup


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
