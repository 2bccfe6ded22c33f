"""Decode and score one response or a group of responses, in a worker or in a thread.

A worker imports this module, which imports no model library.
"""

import functools
import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from data_schemas.rollouts import ResponseScore
from data_schemas.rows import Problem
from data_schemas.verdicts import Verdict, abstain, response_fault
from tasks.errors import EngineError, SettingsError
from tasks.gym.environments.table import ENVIRONMENTS
from tasks.gym.protocol import Entry, Verifier, failure_verdict, join_turns
from tasks.gym.workers import CallFailure, WorkerReply

if TYPE_CHECKING:
    from tokenizers import Tokenizer


@dataclass(frozen=True, slots=True)
class TokenizerFile:
    """Location of the vocabulary and the tokens that end a response; small enough to pickle."""

    path: str
    ends: tuple[int, ...]
    """Ids of the end and the padding token; trailing ones are removed from the text."""
    opening: str = ""
    """What the chat template has already said of a response, its `<think>` above all."""


def text_of(source: TokenizerFile, tokens: Sequence[int]) -> str:
    """Decode a response, with what the prompt said of it and without its end token.

    Byte for byte as `tasks.engines.chat.response_text`; other special tokens stay visible.
    """
    length = len(tokens)
    while length and tokens[length - 1] in source.ends:
        length -= 1
    ids = [int(token) for token in tokens[:length]]
    return source.opening + open_tokenizer(source.path).decode(ids, skip_special_tokens=False)


@functools.cache
def open_tokenizer(path: str) -> "Tokenizer":
    """Open a tokenizer.json, once in a process, without a model library."""
    from tokenizers import Tokenizer  # not needed to score texts

    return Tokenizer.from_file(path)


_LOG = logging.getLogger(__name__)

Content = tuple[NDArray[np.int32], ...] | str
"""Content of a response: the tokens of its turns, or its text if that is available."""


def read(source: TokenizerFile | None, content: Content, verifier: str) -> str:
    """Return the text of a response.

    Args:
        source: of tokens.
        content: turns of tokens, or the text.
        verifier: one with an environment hears whether the last turn was cut.

    Raises:
        EngineError: the response is given as tokens and there is no tokenizer.
    """
    if isinstance(content, str):
        return content
    if source is None:
        raise EngineError("received tokens, but the scoring service has no tokenizer")
    cut = verifier in ENVIRONMENTS and int(content[-1][-1]) not in source.ends
    return join_turns([text_of(source, turn.tolist()) for turn in content], cut=cut)


def score_one(
    verify: Verifier, problem: Problem, source: TokenizerFile | None, content: Content
) -> tuple[str, Verdict]:
    """Decode and score one response, in a worker.

    Raises:
        TypeError: the verifier returned something other than a verdict.
    """
    text = read(source, content, problem.verifier)
    return text, require_verdict(verify(problem, text))


def require_verdict(verdict: object) -> Verdict:
    """Return a verifier's result if it is a verdict.

    Raises:
        TypeError: it is something else.
    """
    if not isinstance(verdict, Verdict):
        raise TypeError(f"a verifier returned {type(verdict).__name__}, not a Verdict")
    return verdict


def timeout_verdict(name: str, message: str, *, by_response: bool = False) -> Verdict:
    """Return the verdict for a verifier that exceeded its time: as `failure_verdict`."""
    give = response_fault if by_response else abstain
    return give(f"verifier_timeout:{name}", message)


def may_be_caused_by_response(reply: WorkerReply) -> bool:
    """True if the response may have caused the failure; scoring CONTROL decides."""
    if reply.failure is CallFailure.RAISED:
        return not reply.is_ours
    return reply.failure in (CallFailure.TIMEOUT, CallFailure.DIED)


def starved_verdict(name: str, message: str) -> Verdict:
    """Return the abstention for a verifier that got too little CPU time from the machine."""
    return abstain(f"verifier_starved:{name}", message)


def outcome(
    name: str,
    source: TokenizerFile | None,
    content: Content,
    reply: WorkerReply,
    *,
    by_response: bool = False,
) -> ResponseScore:
    """Turn a worker's reply into a verdict.

    Args:
        by_response: the verifier scores CONTROL as an answer to the same problem, so that the
            response caused the failure.

    Raises:
        SettingsError: the user has to act; the message states what to do.
    """
    if reply.failure is CallFailure.NONE:
        text, verdict = reply.value
        return ResponseScore(text, verdict, reply.seconds, 0)
    verdict = no_verdict(name, reply, by_response=by_response)
    return ResponseScore(read(source, content, name), verdict, reply.seconds, 0)


def no_verdict(name: str, reply: WorkerReply, *, by_response: bool = False) -> Verdict:
    """Return the verdict for a worker that failed.

    Raises:
        SettingsError: as `outcome`.
    """
    if reply.error == SettingsError.__name__:
        raise SettingsError(reply.message)
    if reply.failure is CallFailure.TIMEOUT:
        return timeout_verdict(name, reply.message, by_response=by_response)
    if reply.failure is CallFailure.STARVED:
        return starved_verdict(name, reply.message)
    return failure_verdict(
        name, reply.error or "WorkerDied", reply.message, by_response=by_response
    )


def score_in_thread(
    entry: Entry, problem: Problem, source: TokenizerFile | None, contents: Sequence[Content]
) -> list[ResponseScore]:
    """Decode and score one response, or all of a group, in a thread that may be abandoned.

    Raises:
        SettingsError: the user has to act before anything can be scored.
    """
    texts = [read(source, content, problem.verifier) for content in contents]
    start = time.perf_counter()
    verdicts, calls = _score_within(entry.timeout_s * len(texts), entry, problem, texts)
    seconds = (time.perf_counter() - start) / len(texts)
    return [
        # Calls are integers: the first responses of a group are charged the remainder.
        ResponseScore(text, verdict, seconds, calls // len(texts) + (place < calls % len(texts)))
        for place, (text, verdict) in enumerate(zip(texts, verdicts, strict=True))
    ]


def _score_within(
    timeout_s: float, entry: Entry, problem: Problem, texts: Sequence[str]
) -> tuple[list[Verdict], int]:
    """Score in a separate thread; a thread that takes too long is abandoned."""
    results: list[tuple[list[Verdict], int] | SettingsError] = []

    def run() -> None:
        try:
            results.append(_score(entry, problem, texts))
        except SettingsError as error:
            results.append(error)

    thread = threading.Thread(target=run, name=f"verifier {problem.verifier}", daemon=True)
    thread.start()
    thread.join(timeout_s)
    if not results:
        late = timeout_verdict(problem.verifier, f"no verdict in {timeout_s} s")
        return [late] * len(texts), 0
    if isinstance(results[0], SettingsError):
        raise results[0]
    return results[0]


def _score(entry: Entry, problem: Problem, texts: Sequence[str]) -> tuple[list[Verdict], int]:
    """Score texts and count the prompts sent to the judge by this thread."""
    before = entry.calls() if entry.calls else 0
    try:
        if entry.verify_group is None:
            verdicts = [require_verdict(entry.verify(problem, text)) for text in texts]
        else:
            verdicts = [require_verdict(verdict) for verdict in entry.verify_group(problem, texts)]
        if len(verdicts) != len(texts):
            raise ValueError(f"{len(verdicts)} verdicts on {len(texts)} responses")
    except SettingsError:
        raise
    except Exception as error:  # noqa: BLE001 - the boundary: our failure is not the model's
        _LOG.warning("verifier %s failed", problem.verifier, exc_info=error)
        verdicts = [failure_verdict(problem.verifier, type(error).__name__, str(error))] * len(
            texts
        )
    return verdicts, (entry.calls() if entry.calls else 0) - before
