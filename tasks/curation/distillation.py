"""Rejection sampling: a teacher answers problems, and its right answers become demonstrations.

The rows have the fields of the adapter `prompt_jsonl` with problem, answer and response, so the
file is a source of curation, which verifies every response once more. A row's id names its teacher.
Of several right answers to a problem the shortest are kept.
Source: the shortest rejection sampling of Kimi k1.5 (arXiv 2501.12599), section 2.4.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from transformers import PreTrainedTokenizerBase

from data_schemas.rollouts import StopReason
from data_schemas.rows import Problem
from data_schemas.settings import GradingSettings
from tasks.curation.cleaning.thoughts import as_response
from tasks.curation.cleaning.verification import Score
from tasks.curation.grading import answer
from tasks.curation.mixture import draw
from tasks.engines.chat import response_text
from tasks.engines.protocols import RolloutEngine
from tasks.errors import DataError
from tasks.gym.environments.table import ENVIRONMENTS
from tasks.gym.judging.protocol import Judge
from tasks.platform.progress import progress
from tasks.store.files import canonical_json, write_bytes

DEMONSTRATIONS_FILE = "demonstrations.jsonl"
REPORT = "report.json"
_ASKED_AT_ONCE = 64

Teacher = Callable[[Sequence[Problem]], list[list[str]]]
"""Return the complete responses to each problem, in order."""


def checkpoint_teacher(
    settings: GradingSettings, engine: RolloutEngine, tokenizer: PreTrainedTokenizerBase
) -> Teacher:
    """Sample `settings.samples` responses per problem; what the length limit cuts is left out."""

    def ask(problems: Sequence[Problem]) -> list[list[str]]:
        rollouts = answer(settings, problems, engine, tokenizer, "distil")
        return [
            [
                response_text(tokenizer, rollout.response_tokens.tolist())
                for rollout in rollouts[problem.id]
                if rollout.stop_reason is not StopReason.LENGTH
            ]
            for problem in problems
        ]

    return ask


def endpoint_teacher(judge: Judge) -> Teacher:
    """Ask an endpoint once per problem, with greedy decoding; a failed call gives no response."""

    def ask(problems: Sequence[Problem]) -> list[list[str]]:
        starts = range(0, len(problems), _ASKED_AT_ONCE)
        replies = [
            reply
            for start in progress(starts, "distil")
            for reply in judge.ask(
                [one.messages for one in problems[start : start + _ASKED_AT_ONCE]]
            )
        ]
        return [[] if reply is None else [reply] for reply in replies]

    return ask


def distil(
    settings: GradingSettings,
    problems: Sequence[Problem],
    name: str,
    teacher: Teacher,
    score: Score,
    keep: int,
    out: Path,
) -> dict[str, float | int | str]:
    """Write the right answers of a teacher and what it answered per domain.

    Args:
        settings: the problems to draw.
        problems: of a curated set, so that no held-out problem is among them; those with an
            environment are left out, because their responses have several turns.
        name: of the teacher.
        teacher: gives responses.
        score: scores them.
        keep: responses per problem, at most.
        out: folder of the two files.

    Raises:
        DataError: no response is right.
    """
    in_one_turn = [problem for problem in problems if problem.verifier not in ENVIRONMENTS]
    sample = draw(in_one_turn, settings.weights, settings.max_problems, settings.seed)
    replies = [[as_response(text) for text in texts] for texts in teacher(sample)]
    pairs = [
        (problem, text)
        for problem, texts in zip(sample, replies, strict=True)
        for text in dict.fromkeys(texts)
    ]
    verdicts = score([problem for problem, _ in pairs], [text for _, text in pairs])
    right = [pair for pair, verdict in zip(pairs, verdicts, strict=True) if verdict.solved]
    if not right:
        reasons = Counter(verdict.reason for verdict in verdicts).most_common(3)
        raise DataError(
            f"none of {len(pairs)} different responses of {name} to {len(sample)} problems is "
            f"right ({', '.join(f'{reason} {count}' for reason, count in reasons)}). Choose a "
            "stronger teacher, more samples or a higher grading.max_new_tokens."
        )
    rows = list(_rows(name, right, keep))
    write_bytes(out / DEMONSTRATIONS_FILE, b"".join(canonical_json(row) + b"\n" for row in rows))
    domains = {problem.domain for problem in sample}
    report = {
        "teacher": name,
        "domains": {
            domain: {
                "problems": sum(problem.domain is domain for problem in sample),
                "responses": sum(problem.domain is domain for problem, _ in pairs),
                "right": sum(problem.domain is domain for problem, _ in right),
            }
            for domain in sorted(domains)
        },
    }
    write_bytes(out / REPORT, json.dumps(report, indent=2, sort_keys=True).encode())
    return {
        "teacher": name,
        "problems": len(sample),
        "responses": len(pairs),
        "right": len(right),
        "demonstrations": len(rows),
    }


def _rows(
    name: str, right: Sequence[tuple[Problem, str]], keep: int
) -> Iterator[dict[str, object]]:
    """Yield the shortest right responses to each problem as rows of `prompt_jsonl`."""
    by_problem: dict[str, list[tuple[Problem, str]]] = {}
    for problem, text in right:
        by_problem.setdefault(problem.id, []).append((problem, text))
    for pairs in by_problem.values():
        shortest = sorted(pairs, key=lambda pair: (len(pair[1]), pair[1]))[:keep]
        for place, (problem, text) in enumerate(shortest, start=1):
            yield {
                "id": f"{problem.id}/{name}/{place}",
                "domain": problem.domain.value,
                "language": problem.language,
                "messages": [message.model_dump(mode="json") for message in problem.messages],
                "verifier": problem.verifier,
                "answer": problem.answer,
                "response": text,
            }
