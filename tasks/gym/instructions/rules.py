"""Score the share of checkable instructions that a response follows (IFEval's strict accuracy).

Gold: {"instruction_id_list": [...], "kwargs": [...]}, as in IFEval; null arguments are ignored. One
table, KINDS, says what each id takes and means: IFEval's, M-IFEval's for Spanish, French and
Japanese, and ours for the languages of South-East Asian markets.

An answer that consists mostly of the request's own wording is an echo and scores 0, unless the
request is to be repeated. A gold may also say what the text is about: {"about": ["red shoe"],
"language": "en"}; a text that does not name it, or is certainly in another language, scores 0.

{"reading": "ifeval"} scores as published scores do (`official.py`), which no reward should.

Differs: IFEval pays for an echo: its prompts in lower case follow 45 % of its instructions.
Differs: the loose accuracy (IFEval, 2311.07911, section 2.3) is not computed; it ignores an
introduction, a last line and asterisks, which a policy would learn to add.
"""

import re
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

from pydantic import Field

from data_schemas.rows import Problem
from data_schemas.verdicts import Verdict, abstain, scored
from tasks.algorithms.folding import visible
from tasks.errors import DataError
from tasks.gym.instructions.arguments import Arguments, Kind
from tasks.gym.instructions.checks import CHECKS
from tasks.gym.instructions.european import EUROPEAN
from tasks.gym.instructions.japanese import JAPANESE
from tasks.gym.instructions.languages import is_known, is_language
from tasks.gym.instructions.official import OFFICIAL
from tasks.gym.instructions.southeast_asian import SEA
from tasks.gym.protocol import Gold, verify_answer

# A word, or one character of a script without spaces.
_WORD = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]|[^\W_]+")

KINDS: dict[str, Kind] = {**CHECKS, **EUROPEAN, **JAPANESE, **SEA}
"""Every instruction id with its arguments and its meaning."""


class Instructions(Gold):
    """Instruction ids with their arguments, one set per id."""

    instruction_id_list: tuple[str, ...] = Field(min_length=1, strict=False)
    kwargs: tuple[dict[str, Any], ...] = Field(strict=False)
    about: tuple[str, ...] = Field(default=(), strict=False)
    """Phrases of which all must be in the text, in any case: what it is about."""
    language: str = ""
    """The text must not be certainly in another one; '' = any."""
    reading: Literal["instruction", "ifeval"] = "instruction"
    """ifeval: as published scores read IFEval (`official`), for comparisons and not as a reward."""


ECHO_SHARE = 0.6
"""Share of an answer's pairs of words that are the request's, from which it is an echo."""
ECHO_PART = 0.25
"""Share of the request's pairs of words that an echo has at least: an answer of few words that are
all in the request, such as a price that it names, is none."""
ECHO_RUN = 2
COPIED = 4
"""Words in a row of the request's, from which a text about something of its own is an echo."""
PRESCRIBED = {"combination:repeat_prompt", "detectable_format:constrained_response"}
"""Instructions that are followed in the request's own words."""


def verify(problem: Problem, response: str) -> Verdict:
    """Score the share of instructions followed; abstain if one is unknown or cannot be decided."""
    request = "\n".join(message.content for message in problem.messages)
    return verify_answer(problem, response, Instructions, partial(_verdict, request))


def echo_share(request: str, answer: str) -> float:
    """Return the share of an answer's pairs of words that the request has; 0 if it has none.

    Case and signs do not count. Thai and Chinese are read character by character.
    """
    runs, of_request = _runs(answer), set(_runs(request))
    return sum(run in of_request for run in runs) / len(runs) if runs else 0.0


def _longest_copy(request: str, answer: str) -> int:
    """Return the most words in a row that the request has as well; 0 below a pair."""
    of_request, longest, length = set(_runs(request)), 0, 0
    for run in _runs(answer):
        length = length + 1 if run in of_request else 0
        longest = max(longest, length + 1 if length else 0)
    return longest


def _runs(text: str) -> list[tuple[str, ...]]:
    words = _WORD.findall(text.casefold())
    return [tuple(words[start : start + ECHO_RUN]) for start in range(len(words) - ECHO_RUN + 1)]


def read_kind(name: str, arguments: Mapping[str, object]) -> tuple[Kind, Arguments]:
    """Look up an instruction and read its arguments.

    Raises:
        KeyError: there is no such instruction.
        DataError: its arguments are invalid.
    """
    kind = KINDS[name]
    return kind, kind.read(arguments)


def _off_task(gold: Instructions, request: str, answer: str) -> Verdict | None:
    """Return a verdict of 0 on a text that does not do the task at all."""
    words = " ".join(_WORD.findall(answer.casefold()))
    for phrase in gold.about:
        if " ".join(_WORD.findall(phrase.casefold())) not in words:
            return scored(0.0, "off_task", f"does not name {phrase!r}")
    if gold.language and is_language(answer, gold.language) is False:
        return scored(0.0, "other_language", f"not in {gold.language}")
    if PRESCRIBED.isdisjoint(gold.instruction_id_list):
        share = echo_share(request, answer)
        is_echo = share >= ECHO_SHARE and echo_share(answer, request) >= ECHO_PART
        if is_echo or (gold.about and _longest_copy(request, answer) >= COPIED):
            return scored(0.0, "echo", f"{share:.0%} of the wording is the request's")
    return None


def _verdict(request: str, gold: Instructions, answer: str) -> Verdict:
    """Score the instructions, or 0 where a text that can be scored does not do the task."""
    if gold.reading == "ifeval":
        return _check(gold, answer)
    answer = visible(answer)  # "a\u200brt" has the word "art"
    verdict = _check(gold, answer)
    return verdict if not verdict.score else _off_task(gold, request, answer) or verdict


def _check(gold: Instructions, answer: str) -> Verdict:
    names = gold.instruction_id_list
    if len(names) != len(gold.kwargs):
        return abstain("bad_gold", f"{len(names)} ids, {len(gold.kwargs)} kwargs")
    checks: list[tuple[str, Kind, Arguments]] = []
    for name, arguments in zip(names, gold.kwargs, strict=True):
        try:
            checks.append((name, *read_kind(name, arguments)))
        except KeyError:
            return abstain("unknown_instruction", name)
        except DataError as error:
            return abstain("bad_gold", f"{name}: {error}")
        language = checks[-1][2].get("language")
        if language is not None and not is_known(language):
            return abstain("unknown_language", f"{name} {language}")
    official = OFFICIAL if gold.reading == "ifeval" else {}
    results = [
        (name, kind, official.get(name, kind.check)(answer, arguments))
        for name, kind, arguments in checks
    ]
    broken = [name for name, _, followed in results if followed is False]
    undecided = [(name, kind) for name, kind, followed in results if followed is None]
    if undecided and not broken:
        name, kind = undecided[0]
        return abstain(kind.undecided, name)
    # A response that breaks an instruction is not excused by another one that is undecided.
    score = (len(names) - len(broken) - len(undecided)) / len(names)
    reason = "correct" if not broken else "partial" if score > 0 else "wrong"
    detail = f"broken: {', '.join(broken)}" if broken else ""
    detail += f"; undecided: {', '.join(name for name, _ in undecided)}" if undecided else ""
    return scored(score, reason, detail)
