"""Under which prompt every sample of a group is drawn: the bare one, or one that shows criteria.

RuscaRL (arXiv 2508.16949): the samples of a group see different shares of their rubric, and fewer
from step to step (`tasks/algorithms/scaffold.py`). Only training shows criteria; evaluation and the
sequences that compare the engines after a weight sync have the bare prompts.

A sample that saw criteria says nothing about how hard its prompt is: `is_bare` selects those that
the records of prompts, skips and the curriculum may count.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerBase

from data_schemas.prompts import Problem
from data_schemas.rl_settings import RLSettings
from data_schemas.rollouts import Rollout
from data_schemas.scaffold_settings import Ratio, ScaffoldSettings, scaffold_of
from tasks.algorithms.scaffold import scaffold_ratios, scaffold_subset
from tasks.engines.chat import render_prompt
from tasks.errors import SettingsError
from tasks.rewards.judging.shown import criteria_of, with_criteria
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
    """True if the response was drawn without a criterion in its prompt."""
    return not rollout.shown


def sample_prompts(
    settings: RLSettings, tokenizer: PreTrainedTokenizerBase, step: int, group: OpenGroup
) -> list[SamplePrompt]:
    """Return the prompt of every sample of a group, in order.

    A response that continues keeps the prompt that it began with. A group that answers to other
    agents shows nothing.
    """
    begun = [SamplePrompt(one.prompt_tokens, one.shown, one.bare_prompt) for one in group.rollouts]
    if len(begun) == group.size:
        return begun
    bare = SamplePrompt(render_prompt(tokenizer, group.problem.messages))
    scaffold = scaffold_of(settings)
    criteria = criteria_of(group.problem) if scaffold and group.turn is None else []
    if scaffold is None or not criteria:
        return [*begun, *[bare] * (group.size - len(begun))]
    prompts = begun
    ratios = scaffold_ratios(step, settings.steps, settings.group_size, scaffold)
    for sample in range(len(begun), group.size):
        shown = scaffold_subset(
            len(criteria), ratios[sample], seed=settings.seed, group=group.key, sample=sample
        )
        prompts.append(_showing(scaffold, tokenizer, group.problem, bare, shown) if shown else bare)
    return prompts


def _showing(
    scaffold: ScaffoldSettings,
    tokenizer: PreTrainedTokenizerBase,
    problem: Problem,
    bare: SamplePrompt,
    shown: tuple[int, ...],
) -> SamplePrompt:
    criteria = criteria_of(problem)
    messages = with_criteria(problem.messages, [criteria[i] for i in shown], scaffold.form)
    trained_bare = scaffold.ratio is not Ratio.SCAFFOLDED
    tokens = render_prompt(tokenizer, messages)
    return SamplePrompt(tokens, shown, bare.tokens if trained_bare else None)


def runs_of_samples(prompts: Sequence[SamplePrompt]) -> list[tuple[int, int, NDArray[np.int32]]]:
    """First sample, number of samples and tokens of every run of samples with one prompt.

    Samples of a run share their prefill; what a scaffold shows to one alone is prefilled for it.
    """
    runs, first = [], 0
    for _, members in groupby(prompts, key=lambda prompt: prompt.tokens.tobytes()):
        run = list(members)
        runs.append((first, len(run), run[0].tokens))
        first += len(run)
    return runs


def check_scaffold(settings: RLSettings, problems: Iterable[Problem]) -> None:
    """Refuse a scaffold that could show nothing.

    Raises:
        SettingsError: no problem of the phase has a rubric.
    """
    if scaffold_of(settings) is None:
        return
    if not any(criteria_of(one) for one in problems if one.domain in settings.domains):
        raise SettingsError(
            "a scaffold shows criteria of rubrics, but no problem of the phase's domains has the "
            "verifier 'rubric' or 'rule_rubric'; leave the scaffold out, or choose other domains"
        )
