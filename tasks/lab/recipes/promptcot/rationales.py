"""EM over rationales: best of several for the planner, the planner's likeliest for the writer.

Hard EM, as in PromptCoT 2.0: the E-step has no entropy term.
Letters: S samples.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerBase

from data_schemas.rollouts import Rollout, StopReason
from data_schemas.rows import Demonstration, Parent
from tasks.engines.chat import render_prompts, response_text
from tasks.engines.protocols import Request, RolloutEngine, Sampling
from tasks.lab.recipes.promptcot.formulas import choose_rationale, rationale_reward
from tasks.lab.recipes.promptcot.prompts import demonstrate, join, planner_prompt
from tasks.lab.recipes.promptcot.records import ChosenRationale, WordedProblem
from tasks.lab.recipes.promptcot.settings import SynthesisSettings

Choices = tuple[list[Demonstration], list[ChosenRationale]]


@dataclass(frozen=True, slots=True)
class RationaleSample:
    """A rationale that the planner sampled, with its log-probabilities under both models."""

    text: str
    planner: NDArray[np.float64]
    """log q(z|c,x) by token, end included."""
    rationale: NDArray[np.float64]
    """log p(z|c) by token, marks included."""
    problem: NDArray[np.float64]
    """log p(x|z,c) by token, end included."""


def expect(
    settings: SynthesisSettings,
    rows: Sequence[WordedProblem],
    planner: RolloutEngine,
    writer: RolloutEngine,
    tokenizer: PreTrainedTokenizerBase,
) -> Choices:
    """E-step: choose a rationale for every problem; one without any that may be chosen is left out.

    Args:
        settings: how many are drawn, and what decides.
        rows: problems without a rationale.
        planner: q(z|c,x), which draws them.
        writer: p(z,x|c), which scores them.
        tokenizer: of both.
    """
    demonstrations, choices = [], []
    draws = draw(settings, rows, planner, writer, tokenizer)
    for row, samples in zip(rows, draws, strict=True):
        rewards = [
            rationale_reward(one.rationale.tolist(), one.problem.tolist(), settings.part_score)
            for one in samples
        ]
        lengths = [len(one.planner) - 1 for one in samples]
        best = choose_rationale(rewards, lengths, settings.min_rationale_tokens)
        if best is None:
            continue
        long_enough = sum(length >= settings.min_rationale_tokens for length in lengths)
        demonstrations.append(demonstrate(row, samples[best].text, Parent.PLANNER))
        choices.append(
            ChosenRationale(
                id=row.id,
                rationale=samples[best].text,
                reward=rewards[best],
                candidates=long_enough,
            )
        )
    return demonstrations, choices


def maximise(
    settings: SynthesisSettings,
    rows: Sequence[WordedProblem],
    planner: RolloutEngine,
    tokenizer: PreTrainedTokenizerBase,
) -> Choices:
    """M-step: the planner's greedy rationale of every problem; one that does not end is left out.

    Args:
        settings: longest rationale.
        rows: problems without a rationale.
        planner: q(z|c,x) after the E-step.
        tokenizer: of the planner.
    """
    demonstrations, choices = [], []
    answers = _sample(settings, rows, planner, tokenizer, samples=1, temperature=0.0)
    for row, (rollout,) in zip(rows, answers, strict=True):
        text = response_text(tokenizer, rollout.response_tokens.tolist())
        if rollout.stop_reason is StopReason.END and text:
            demonstrations.append(demonstrate(row, text, Parent.WRITER))
            choices.append(ChosenRationale(id=row.id, rationale=text, reward=None, candidates=1))
    return demonstrations, choices


def draw(
    settings: SynthesisSettings,
    rows: Sequence[WordedProblem],
    planner: RolloutEngine,
    writer: RolloutEngine,
    tokenizer: PreTrainedTokenizerBase,
) -> list[list[RationaleSample]]:
    """Draw rationales of every problem at temperature 1; those that did not end are left out."""
    samples = settings.rationales
    answers = _sample(settings, rows, planner, tokenizer, samples=samples, temperature=1.0)
    completions = [
        (place, rollout)
        for place, group in enumerate(answers)
        for rollout in group
        if rollout.stop_reason is StopReason.END and len(rollout.response_tokens) > 1
    ]
    sequences = [
        join(tokenizer, rows[place], rollout.response_tokens[:-1]) for place, rollout in completions
    ]
    scores = writer.score_logprobs([one.tokens for one in sequences])
    results: list[list[RationaleSample]] = [[] for _ in rows]
    for (place, rollout), one, logprobs in zip(completions, sequences, scores, strict=True):
        rationale, problem = one.parts(logprobs)
        text = response_text(tokenizer, rollout.response_tokens.tolist())
        planned = rollout.logprobs.astype(np.float64)
        results[place].append(RationaleSample(text, planned, rationale, problem))
    return results


def _sample(
    settings: SynthesisSettings,
    rows: Sequence[WordedProblem],
    planner: RolloutEngine,
    tokenizer: PreTrainedTokenizerBase,
    *,
    samples: int,
    temperature: float,
) -> list[list[Rollout]]:
    """Answer every problem, in the order of rows and samples."""
    prompts = render_prompts(tokenizer, [planner_prompt(row) for row in rows])
    requests = [Request(row.id, prompt, samples) for row, prompt in zip(rows, prompts, strict=True)]
    sampling = Sampling(
        settings.max_new_tokens, temperature, seed=settings.seed, record_routes=False
    )
    groups: dict[str, list[Rollout]] = defaultdict(list)
    for rollout in planner.generate(requests, sampling):
        groups[rollout.problem_id].append(rollout)
    return [sorted(groups[row.id], key=lambda one: one.sample) for row in rows]
