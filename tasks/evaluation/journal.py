"""Answers of an evaluation that is not finished, so that a killed one asks only what is missing.

Below `<store>/answers/<key>/` every file holds the answers of a few seconds, as JSON lines,
signed for this evaluation: what was put there is not used. The key covers the model and the
sampling, and a line names the prompt it answers. Failures of an endpoint are not recorded. When
an evaluation has all answers its folder is deleted: the same command then asks an endpoint
again, which may serve something else by now.
"""

import json
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from data_schemas.rows import Problem
from data_schemas.settings import EvaluationSettings
from tasks.errors import TamperError
from tasks.evaluation.respondents import EvaluationAnswer, Key
from tasks.provenance.lineage.signatures.working import seal, unseal
from tasks.store.files import canonical_json, sha256_bytes
from tasks.store.interface import store_at

_LOG = logging.getLogger(__name__)
EVERY_S = 20.0
"""Answers of so many seconds are lost at most."""
FOLDER = "answers"
_KIND = "answers"


@dataclass(slots=True)
class Journal:
    """The recorded answers of one evaluation."""

    uri: str
    problems: Mapping[str, Problem]
    every_s: float = EVERY_S
    _new: list[EvaluationAnswer] = field(default_factory=list)
    _saved: float = field(default_factory=time.monotonic)

    def load(self, keys: Sequence[Key]) -> list[EvaluationAnswer]:
        """Return the recorded answers to these keys, each once."""
        place, allowed = store_at(self.uri), set(keys)
        answers: dict[Key, EvaluationAnswer] = {}
        for name in sorted(place.list_files()):
            for line in self._open(name, place.read_bytes(name)):
                answer = self._parse(line)
                if answer is not None and answer.key in allowed:
                    answers.setdefault(answer.key, answer)
        if answers:
            _LOG.info("%d of %d answers are known from before", len(answers), len(keys))
        return list(answers.values())

    def add(self, answer: EvaluationAnswer) -> None:
        """Record an answer; it is written with others every few seconds."""
        if answer.failure:
            return
        self._new.append(answer)
        if time.monotonic() - self._saved >= self.every_s:
            self.save()

    def save(self) -> None:
        """Write what was added since the last time."""
        if self._new:
            payload = b"".join(self._line(answer) for answer in self._new)
            name = f"{sha256_bytes(payload)[:16]}.jsonl"
            store_at(self.uri).write_bytes(seal(_KIND, self._signed_name(name), payload), name)
        self._new, self._saved = [], time.monotonic()

    def discard(self) -> None:
        """Delete everything: the evaluation has all answers."""
        self._new = []
        store_at(self.uri).delete_folder()

    def _signed_name(self, name: str) -> str:
        return f"{self.uri.rpartition('/')[2]}/{name}"

    def _open(self, name: str, content: bytes) -> list[bytes]:
        where = f"{self.uri}/{name}"
        try:
            return unseal(_KIND, self._signed_name(name), content, where).splitlines()
        except TamperError as error:
            _LOG.warning("answers are not used, they are asked for again: %s", error)
            return []

    def _line(self, answer: EvaluationAnswer) -> bytes:
        tokens = None if isinstance(answer.content, str) else answer.content.tolist()
        return (
            canonical_json(
                {
                    "problem": answer.problem_id,
                    "sample": answer.sample,
                    "prompt": _prompt(self.problems[answer.problem_id]),
                    "response_tokens": tokens,
                    "text": answer.content if tokens is None else None,
                    "tokens": answer.tokens,
                    "truncated": answer.truncated,
                    "surprisal_nats": answer.surprisal_nats,
                    "sampled": None if answer.sampled is None else answer.sampled.tolist(),
                }
            )
            + b"\n"
        )

    def _parse(self, line: bytes) -> EvaluationAnswer | None:
        """Return the answer of a line; None if its problem is not asked, or asked otherwise."""
        row = json.loads(line)
        problem = self.problems.get(row["problem"])
        if problem is None or row["prompt"] != _prompt(problem):
            return None
        tokens = row["response_tokens"]
        return EvaluationAnswer(
            problem_id=row["problem"],
            sample=row["sample"],
            content=row["text"] if tokens is None else np.asarray(tokens, dtype=np.int32),
            tokens=row["tokens"],
            truncated=row["truncated"],
            surprisal_nats=row["surprisal_nats"],
            sampled=None if row["sampled"] is None else np.asarray(row["sampled"], dtype=np.bool_),
        )


def open_journal(
    store: str, model: str, settings: EvaluationSettings, problems: Sequence[Problem]
) -> Journal:
    """Return the journal for one model and one way of sampling.

    Args:
        store: uri of the store.
        model: digest of its artifact, or what names an endpoint.
        settings: of the evaluation; the judge and the engines do not matter.
        problems: to answer.
    """
    sampling = settings.model_dump(mode="json", exclude={"judge", "engines", "samples"})
    key = sha256_bytes(canonical_json([model, sampling]))[:32]
    return Journal(f"{store}/{FOLDER}/{key}", {problem.id: problem for problem in problems})


def _prompt(problem: Problem) -> str:
    turns = [message.model_dump(mode="json") for message in problem.messages]
    return sha256_bytes(canonical_json(turns))
