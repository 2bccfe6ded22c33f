"""Sample, score and report one model on the held-out problems.

Written into `out`: samples.parquet (one SampleResult per response) and report.json
(EvaluationReport, a function of those rows and the settings alone).
"""

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from transformers import PreTrainedTokenizerBase

from data_schemas.arrow import write_table
from data_schemas.prompts import Problem
from data_schemas.reports import EvaluationReport
from data_schemas.rollouts import Rollout, StopReason
from data_schemas.samples import SampleResult
from data_schemas.settings import EvaluationSettings
from data_schemas.verdicts import Verdict
from tasks.engines.chat import render_prompts, response_text
from tasks.engines.protocols import Request, RolloutEngine, Sampling
from tasks.errors import DataError, EngineError, JudgeError
from tasks.evaluation.suites import suite_scores
from tasks.progress import progress
from tasks.storage import write_bytes

logger = logging.getLogger(__name__)

SAMPLES_FILE = "samples.parquet"
REPORT_FILE = "report.json"

ScoreBatch = Callable[[Sequence[Problem], Sequence[str]], Sequence[Verdict]]
"""Judge responses, one problem per response, in order."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """The model under test."""

    name: str
    """On the ladder: base, sft/reasoning, merged, rl/one ..."""
    checkpoint: str
    """Artifact digest."""
    engine: RolloutEngine
    tokenizer: PreTrainedTokenizerBase


def evaluate(
    settings: EvaluationSettings,
    candidate: Candidate,
    problems: Sequence[Problem],
    score_batch: ScoreBatch,
    out: Path,
) -> EvaluationReport:
    """Answer every problem `settings.samples` times and report every suite.

    Raises:
        DataError: there is no problem, or two share an id.
        EngineError: the engine did not return every response exactly once.
        JudgeError: no response at all has a verdict.
    """
    _check_problems(problems)
    rollouts = _sample(settings, candidate, problems)
    by_id = {problem.id: problem for problem in problems}
    asked = [by_id[rollout.problem_id] for rollout in rollouts]
    texts = [
        response_text(candidate.tokenizer, rollout.response_tokens.tolist()) for rollout in rollouts
    ]
    verdicts = score_batch(asked, texts)
    samples = [_sample_result(*row) for row in zip(asked, rollouts, texts, verdicts, strict=True)]
    report = summarise(settings, candidate.name, candidate.checkpoint, samples)
    write_table(out / SAMPLES_FILE, SampleResult, samples)
    write_bytes(out / REPORT_FILE, report.model_dump_json(indent=2).encode() + b"\n")
    return report


def summarise(
    settings: EvaluationSettings, name: str, checkpoint: str, samples: Sequence[SampleResult]
) -> EvaluationReport:
    """Report a model from its samples.

    `mean_entropy_nats` is total surprisal over total tokens. At a position, minus the
    log-probability of the token drawn there has the entropy of the sampling distribution
    as its expectation, so the surprisal of a response is an unbiased estimate of the sum of
    its entropies and the ratio a consistent one of entropy per token. Greedy decoding
    (temperature 0) draws nothing: there it is the surprisal of the most likely tokens.

    Raises:
        JudgeError: no response at all has a verdict.
    """
    if not any(sample.judged for sample in samples):
        reasons = Counter(sample.reason for sample in samples).most_common(3)
        raise JudgeError(
            f"no verdict on any of {len(samples)} responses of {name}: "
            + ", ".join(f"{reason} ({count})" for reason, count in reasons)
        )
    tokens = sum(sample.tokens for sample in samples)
    return EvaluationReport(
        model=name,
        checkpoint=checkpoint,
        suites=suite_scores(samples, settings),
        truncated_share=sum(sample.truncated for sample in samples) / len(samples),
        mean_response_tokens=tokens / len(samples),
        mean_entropy_nats=sum(sample.surprisal_nats for sample in samples) / max(tokens, 1),
    )


def _check_problems(problems: Sequence[Problem]) -> None:
    if not problems:
        raise DataError(
            "there is no held-out problem to evaluate. "
            "Raise CurationSettings.held_out_per_suite or add sources."
        )
    twice = [id_ for id_, count in Counter(problem.id for problem in problems).items() if count > 1]
    if twice:
        raise DataError(f"held-out problem ids must be unique; {twice[0]!r} appears twice")


def _sample(
    settings: EvaluationSettings, candidate: Candidate, problems: Sequence[Problem]
) -> list[Rollout]:
    """Generate all responses, ordered by problem and sample whatever order they finish in."""
    prompts = render_prompts(candidate.tokenizer, [problem.messages for problem in problems])
    requests = [
        Request(problem_id=problem.id, prompt_tokens=prompt, num_samples=settings.samples)
        for problem, prompt in zip(problems, prompts, strict=True)
    ]
    sampling = Sampling(
        max_new_tokens=settings.max_new_tokens,
        temperature=settings.temperature,
        seed=settings.seed,
        record_routes=False,
    )
    total = len(problems) * settings.samples
    stream = candidate.engine.generate(requests, sampling)
    rollouts = list(progress(stream, f"evaluate {candidate.name}", total))
    finished = {(rollout.problem_id, rollout.sample): rollout for rollout in rollouts}
    expected = [(problem.id, sample) for problem in problems for sample in range(settings.samples)]
    lost = [key for key in expected if key not in finished]
    if lost or len(rollouts) != total:
        raise EngineError(
            f"the rollout engine returned {len(rollouts)} responses where {total} were asked for; "
            f"first missing: {lost[0] if lost else 'none'}"
        )
    return [finished[key] for key in expected]


def _sample_result(problem: Problem, rollout: Rollout, text: str, verdict: Verdict) -> SampleResult:
    return SampleResult(
        problem_id=problem.id,
        domain=problem.domain,
        language=problem.language,
        source=problem.source,
        sample=rollout.sample,
        text=text,
        score=verdict.score,
        reason=verdict.reason,
        tokens=len(rollout.response_tokens),
        truncated=rollout.stop_reason is StopReason.LENGTH,
        surprisal_nats=-float(rollout.logprobs.sum(dtype="float64")),
    )
