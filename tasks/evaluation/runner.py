"""Sample, score and report one model on the held-out problems.

Written into `out`: samples.parquet (one SampleResult per response) and report.json
(EvaluationReport, a function of those rows and the settings alone).
"""

import logging
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from data_schemas.arrow import write_table
from data_schemas.reports import Baseline, EvaluationReport, SamplingRecord
from data_schemas.rollouts import ResponseScore, ScoringRequest
from data_schemas.rows import Problem
from data_schemas.samples import SampleResult
from data_schemas.settings import EvaluationSettings
from data_schemas.verdicts import Verdict, abstain
from tasks.algorithms.comparison import SAMPLES_FILE
from tasks.algorithms.suites import suite_scores
from tasks.errors import DataError, EngineError, JudgeError
from tasks.evaluation.echoes import Floor, compare_with_floors
from tasks.evaluation.journal import Journal
from tasks.evaluation.respondents import EvaluationAnswer, Key, Respondent
from tasks.formats.progression import REPORT_FILE, read_evaluation
from tasks.gym.judging.bias import judge_bias
from tasks.gym.protocol import Scorer
from tasks.gym.refusal import request_kind
from tasks.gym.table import is_judged
from tasks.gym.voting import voted_answer
from tasks.platform.progress import progress
from tasks.store.files import copy_file, write_bytes

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Candidate:
    """The model under test."""

    name: str
    """Name in the checkpoint progression: base, sft/reasoning, merged, rl/one ..."""
    checkpoint: str
    """Artifact digest, or what names an endpoint."""
    respondent: Respondent


def evaluate(
    settings: EvaluationSettings,
    candidate: Candidate,
    problems: Sequence[Problem],
    scorer: Scorer,
    out: Path,
    journal: Journal | None = None,
    samples: Mapping[str, int] | None = None,
    floors: Sequence[Floor] = (),
    baselines: tuple[Baseline, ...] = (),
) -> EvaluationReport:
    """Answer every problem `settings.samples` times and report every suite.

    Responses are scored while others are still being generated. A response that an endpoint does
    not give has no verdict.

    Args:
        settings: of the sampling.
        candidate: answers.
        problems: with different ids.
        scorer: gives the verdicts.
        out: empty folder.
        samples: responses per problem of some sources, instead of `settings.samples`.
        floors: what texts that do no task earn on these problems.
        baselines: what answers without a model earn on them.
        journal: has the answers of an attempt that was killed, and receives those of this one.

    Raises:
        DataError: there is no problem, or two problems share an id.
        EngineError: the respondent did not return every response exactly once.
        JudgeError: no response has a verdict.
    """
    _check_problems(problems)
    by_id = {problem.id: problem for problem in problems}
    repeats = {one.id: (samples or {}).get(one.source, settings.samples) for one in problems}
    keys = [(name, sample) for name in by_id for sample in range(repeats[name])]
    answers = _collect(candidate, by_id, keys, scorer, journal or _Nothing())
    scored = scorer.gather()
    rows = [_sample_result(by_id[key[0]], answers[key], scored.get(key)) for key in keys]
    report = summarise(settings, candidate.name, candidate.checkpoint, rows)
    echoes, judge = compare_with_floors(floors, rows, settings.seed), _judge_bias(by_id, rows)
    report = report.model_copy(update={"echoes": echoes, "baselines": baselines, "judge": judge})
    if report.truncated_share > 0.5:
        logger.warning(
            "%s: %d %% of the responses were cut at evaluation.max_new_tokens, %d",
            *(candidate.name, 100 * report.truncated_share, settings.max_new_tokens),
        )
    write_table(out / SAMPLES_FILE, SampleResult, rows)
    write_bytes(out / REPORT_FILE, report.model_dump_json(indent=2).encode() + b"\n")
    # Where an endpoint failed the others stay: the same command then asks for what is missing.
    if journal is not None and not any(answer.failure for answer in answers.values()):
        journal.discard()
    return report


def take_over(answered: Path, name: str, out: Path) -> EvaluationReport:
    """Report a model under another name: the same weights give the same answers.

    Args:
        answered: report and samples of the model that was asked.
        name: in the checkpoint progression.
        out: empty folder.
    """
    earlier = read_evaluation(answered)
    report = earlier.model_copy(update={"model": name, "same_as": earlier.model})
    copy_file(answered / SAMPLES_FILE, out / SAMPLES_FILE)
    write_bytes(out / REPORT_FILE, report.model_dump_json(indent=2).encode() + b"\n")
    return report


def summarise(
    settings: EvaluationSettings, name: str, checkpoint: str, samples: Sequence[SampleResult]
) -> EvaluationReport:
    """Report a model from its samples.

    `mean_entropy_nats` is total surprisal divided by total tokens. The expectation of the
    surprisal of a drawn token is the entropy of the sampling distribution at its position, so
    the surprisal of a response is an unbiased estimate of the sum of its entropies, and the
    ratio is a consistent estimate of the entropy per token. Greedy decoding (temperature 0)
    does not sample: there it is the mean surprisal of the most likely tokens. An endpoint returns
    no surprisal: there it is None.

    Raises:
        JudgeError: no response has a verdict.
    """
    if not any(sample.scored for sample in samples):
        reasons = Counter(sample.reason for sample in samples).most_common(3)
        raise JudgeError(
            f"no verdict on any of {len(samples)} responses of {name}: "
            + ", ".join(f"{reason} ({count})" for reason, count in reasons)
        )
    tokens = sum(sample.tokens for sample in samples)
    surprisals = [one.surprisal_nats for one in samples if one.surprisal_nats is not None]
    unknown = len(surprisals) < len(samples)
    return EvaluationReport(
        model=name,
        checkpoint=checkpoint,
        suites=suite_scores(samples, settings),
        truncated_share=sum(sample.truncated for sample in samples) / len(samples),
        mean_response_tokens=tokens / len(samples),
        mean_entropy_nats=None if unknown else sum(surprisals) / max(tokens, 1),
        sampling=SamplingRecord.model_validate(
            settings.model_dump(include=set(SamplingRecord.model_fields))
        ),
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


def _judge_bias(problems: Mapping[str, Problem], rows: Sequence[SampleResult]) -> dict[str, float]:
    judged: dict[str, list[tuple[str, Verdict]]] = defaultdict(list)
    for row in rows:
        if is_judged(problems[row.problem_id]):
            verdict = Verdict(score=row.score, reason=row.reason, detail=row.detail)
            judged[row.problem_id].append((row.text, verdict))
    return judge_bias(list(judged.values()))


class _Nothing:
    """A journal of an evaluation that starts anew when it is killed."""

    def load(self, keys: Sequence[Key]) -> list[EvaluationAnswer]:
        return []

    def add(self, answer: EvaluationAnswer) -> None:
        pass

    def save(self) -> None:
        pass


def _collect(
    candidate: Candidate,
    problems: Mapping[str, Problem],
    keys: Sequence[Key],
    scorer: Scorer,
    journal: Journal | _Nothing,
) -> dict[Key, EvaluationAnswer]:
    """Ask for every answer that the journal lacks, and submit each problem when it is complete."""
    earlier = journal.load(keys)
    have = {answer.key for answer in earlier}
    missing = [key for key in keys if key not in have]
    samples = Counter(name for name, _ in keys)
    groups: dict[str, list[EvaluationAnswer]] = {name: [] for name in problems}
    answers: dict[Key, EvaluationAnswer] = {}
    received = 0
    for answer in chain(earlier, _recorded(candidate, problems, missing, journal)):
        received += answer.key not in have
        if answer.key in answers or answer.problem_id not in problems:
            continue
        answers[answer.key] = answer
        group = groups[answer.problem_id]
        group.append(answer)
        if len(group) == samples[answer.problem_id]:
            _submit(problems[answer.problem_id], group, scorer)
    missing_keys = [key for key in keys if key not in answers]
    if missing_keys or received != len(missing):
        raise EngineError(
            f"{candidate.name} returned {received} responses to {len(missing)} requested samples; "
            f"first missing: {missing_keys[0] if missing_keys else 'none'}"
        )
    return answers


def _recorded(
    candidate: Candidate,
    problems: Mapping[str, Problem],
    keys: Sequence[Key],
    journal: Journal | _Nothing,
) -> Iterator[EvaluationAnswer]:
    """Yield new answers and record them, also if no more come."""
    try:
        new = candidate.respondent.answer(problems, keys) if keys else iter(())
        for answer in progress(new, f"evaluate {candidate.name}", len(keys)):
            journal.add(answer)
            yield answer
    finally:
        journal.save()


def _submit(problem: Problem, group: Sequence[EvaluationAnswer], scorer: Scorer) -> None:
    """Submit the responses to one problem; what an endpoint did not answer is not scored."""
    ordered = sorted(
        (answer for answer in group if not answer.failure), key=lambda answer: answer.sample
    )
    for answer in ordered:
        scorer.submit(
            ScoringRequest(
                problem=problem,
                group=problem.id,
                sample=answer.sample,
                group_size=len(ordered),
                tokens=answer.content,
                sampled=answer.sampled,
            )
        )


def _sample_result(
    problem: Problem, answer: EvaluationAnswer, scored: ResponseScore | None
) -> SampleResult:
    if scored is None:
        text, verdict = "", abstain(answer.failure or "no_verdict", answer.detail)
    else:
        text, verdict = scored.text, scored.verdict
    return SampleResult(
        problem_id=problem.id,
        domain=problem.domain,
        language=problem.language,
        source=problem.source,
        sample=answer.sample,
        text=text,
        score=verdict.score,
        reason=verdict.reason,
        tokens=answer.tokens,
        truncated=answer.truncated,
        surprisal_nats=answer.surprisal_nats,
        answer=voted_answer(problem, text, verdict),
        detail=verdict.detail,
        level=problem.level,
        request=request_kind(problem),
    )
