"""One response, or a group of them, to text and verdict: in a worker, or in a thread.

Everything a worker has to import is here; no model library is.
"""

import logging
import threading
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from data_schemas.prompts import Problem
from data_schemas.scoring import Scored
from data_schemas.verdicts import Verdict, abstain, response_fault
from tasks.errors import EngineError, SettingsError
from tasks.rewards.protocol import Entry, Verifier, failed
from tasks.rewards.scoring.detokenise import TokenizerFile, text_of
from tasks.rewards.workers.pool import Failure, Reply

_LOG = logging.getLogger(__name__)

_OURS = frozenset(
    {
        "EngineError",
        "WorkerFailed",
        "WorkerTimeout",
        "WorkerStarved",
        "SettingsError",
        "OSError",
        "BlockingIOError",
        "FileNotFoundError",
        "PermissionError",
        "ImportError",
        "ModuleNotFoundError",
    }
)
"""What a worker names, as `may_be_by_response` would judge it."""
Content = NDArray[np.int32] | str
"""Of a response: its tokens, or its text where that is at hand."""


def read(source: TokenizerFile | None, content: Content) -> str:
    """Return the text of a response.

    Raises:
        EngineError: it came as tokens and there is no tokenizer.
    """
    if isinstance(content, str):
        return content
    if source is None:
        raise EngineError("tokens came, but the scoring service was opened without a tokenizer")
    return text_of(source, content.tolist())


def judge_one(
    verify: Verifier, problem: Problem, source: TokenizerFile | None, content: Content
) -> tuple[str, Verdict]:
    """Read and judge one response, in a worker.

    Raises:
        TypeError: the verifier gave something else than a verdict.
    """
    text = read(source, content)
    return text, checked(verify(problem, text))


def checked(verdict: object) -> Verdict:
    """Return what a verifier gave, if it is a verdict.

    Raises:
        TypeError: it is something else.
    """
    if not isinstance(verdict, Verdict):
        raise TypeError(f"a verifier gave {type(verdict).__name__}, not a Verdict")
    return verdict


def timed_out(name: str, message: str, *, by_response: bool = False) -> Verdict:
    """What a verifier that takes too long is worth: as `failed`."""
    give = response_fault if by_response else abstain
    return give(f"verifier_timeout:{name}", message)


def suspicious(reply: Reply) -> bool:
    """True if the response may have broken its verifier; judging CONTROL instead will tell."""
    if reply.failure is Failure.RAISED:
        return reply.error not in _OURS
    return reply.failure in (Failure.TIMEOUT, Failure.DIED)


def starved(name: str, message: str) -> Verdict:
    """What a verifier whose machine had no CPU time for it is worth: no verdict."""
    return abstain(f"verifier_starved:{name}", message)


def outcome(
    name: str,
    source: TokenizerFile | None,
    content: Content,
    reply: Reply,
    *,
    by_response: bool = False,
) -> Scored:
    """Turn what a worker said into a verdict, or into the reason why there is none.

    Args:
        by_response: the verifier judges CONTROL as an answer to the same problem, so that a
            failure is the response's fault.

    Raises:
        SettingsError: the verifier says what the user has to repair.
    """
    if reply.failure is Failure.NONE:
        text, verdict = reply.value
        return Scored(text, verdict, reply.seconds, 0)
    return Scored(
        read(source, content), no_verdict(name, reply, by_response=by_response), reply.seconds, 0
    )


def no_verdict(name: str, reply: Reply, *, by_response: bool = False) -> Verdict:
    """Say why a worker has no verdict.

    Raises:
        SettingsError: as `outcome`.
    """
    if reply.error == SettingsError.__name__:
        raise SettingsError(reply.message)
    if reply.failure is Failure.TIMEOUT:
        return timed_out(name, reply.message, by_response=by_response)
    if reply.failure is Failure.STARVED:
        return starved(name, reply.message)
    return failed(name, reply.error or "WorkerDied", reply.message, by_response=by_response)


def judge_here(
    entry: Entry, problem: Problem, source: TokenizerFile | None, contents: Sequence[Content]
) -> list[Scored]:
    """Read and judge one response, or all of a group, in a thread that may be given up.

    Raises:
        SettingsError: the user has to act before anything can be judged.
    """
    texts = [read(source, content) for content in contents]
    start = time.perf_counter()
    verdicts, calls = _within(entry.timeout_s * len(texts), entry, problem, texts)
    seconds = (time.perf_counter() - start) / len(texts)
    return [
        # Whole calls: the first responses of a group take what does not divide.
        Scored(text, verdict, seconds, calls // len(texts) + (place < calls % len(texts)))
        for place, (text, verdict) in enumerate(zip(texts, verdicts, strict=True))
    ]


def _within(
    timeout_s: float, entry: Entry, problem: Problem, texts: Sequence[str]
) -> tuple[list[Verdict], int]:
    """Judge in a thread of its own; when it takes too long it is left to end some day."""
    found: list[tuple[list[Verdict], int] | SettingsError] = []

    def run() -> None:
        try:
            found.append(_judged(entry, problem, texts))
        except SettingsError as error:
            found.append(error)

    thread = threading.Thread(target=run, name=f"verifier {problem.verifier}", daemon=True)
    thread.start()
    thread.join(timeout_s)
    if not found:
        late = timed_out(problem.verifier, f"no verdict in {timeout_s} s")
        return [late] * len(texts), 0
    if isinstance(found[0], SettingsError):
        raise found[0]
    return found[0]


def _judged(entry: Entry, problem: Problem, texts: Sequence[str]) -> tuple[list[Verdict], int]:
    """Judge texts and count what the judge was asked in this thread."""
    before = entry.calls() if entry.calls else 0
    try:
        if entry.verify_group is None:
            verdicts = [checked(entry.verify(problem, text)) for text in texts]
        else:
            verdicts = [checked(verdict) for verdict in entry.verify_group(problem, texts)]
        if len(verdicts) != len(texts):
            raise ValueError(f"{len(verdicts)} verdicts on {len(texts)} responses")
    except SettingsError:
        raise
    except Exception as error:  # noqa: BLE001 - the boundary: our failure is not the model's
        _LOG.warning("verifier %s failed", problem.verifier, exc_info=error)
        verdicts = [failed(problem.verifier, type(error).__name__, str(error))] * len(texts)
    return verdicts, (entry.calls() if entry.calls else 0) - before
