"""Is the final answer the right value? (1 or 0; several answers are wrong)

Gold: {"value": "26"}, a number, LaTeX or words.
"""

# ruff: noqa: RUF001 - signs that people type
import itertools
import re
from collections.abc import Sequence

from pydantic import Field

from data_schemas.prompts import Problem
from data_schemas.verdicts import Verdict, abstain, scored
from tasks.rewards.maths import symbolic
from tasks.rewards.maths.plain_values import bare_number, numbers_in, quantity, same_value
from tasks.rewards.maths.symbolic import equivalent
from tasks.rewards.protocol import Gold, judge
from tasks.rewards.workers.pool import WorkerFailed, WorkerTimeout

TIMEOUT_S = 5.0
"""For one comparison in a worker."""
MAX_CHARACTERS = 1000
"""A longer candidate is no final answer."""
MAX_GAP = 40
"""Characters between boxes that state one list."""
MAX_CANDIDATES = 8
"""Whoever states more values than this guesses."""

_MARKER = re.compile(
    r"(?:####|^[ \t]*(?:A|Answer|Ans)[ \t]*:|(?<![\w/])answer\s*(?:is|:)|"
    r"answer\s+to\s+[^.\n]{1,80}\s+is|"
    r"jawapan(?:nya)?\s*(?:ialah|adalah|:)|jawaban(?:nya)?\s*(?:adalah|ialah|:)|resposta\s*(?:é|final|:)|"
    r"đáp\s*(?:án|số)\s*(?:là|:)|คำตอบ\s*(?:คือ|:)|答案\s*(?:是|为|為|:|:))\s*:?",
    re.IGNORECASE | re.MULTILINE,
)
_BOX = "\\boxed"
_JOINT = re.compile(
    r"(?:[\s,;$]|\\text\s*\{\s*,?\s*(?:and|or)\s*\}|\\q?quad\b|\\[,;()\[\] ]|\b(?:and|or)\b|"
    r"\\?[A-Za-z](?:_\{?\w\}?)?\s*=)*"
)
_BRACES = re.compile(r"(?P<box>\\boxed[ \t]*\{)|\\.|[{}]", re.DOTALL)
_INVISIBLE = re.compile(r"\\phantom\s*\{[^{}]*\}|[\s\\]")
_DISPLAY = re.compile(r"\$\$[^$]*\$\$|\\\[.*?\\\]", re.DOTALL)
_MATHS = re.compile(r"\$([^$]+)\$|\\\((.+?)\\\)|\\\[(.+?)\\\]", re.DOTALL)
_CALCULATION = re.compile(r"<<[^<>\n]*>>")  # GSM8K's calculator notes
_LEADING = re.compile(r"[-+]?\s?\$?\d[\d,]*(?:\.\d+)?%?(?![\w/]|\s*[-+*/^×\\({]|,\d|\.\d)")
_SENTENCE_END = re.compile(r"\n|[.!?]\s+(?=[A-Z])|。")


class FinalAnswer(Gold):
    """What the answer must be worth."""

    value: str = Field(pattern=r"\S")


def verify(problem: Problem, response: str) -> Verdict:
    """Score 1 if every final answer of the response has the gold value, else 0."""
    return judge(problem, response, FinalAnswer, _check)


def boxed(text: str) -> list[str]:
    r"""Return the contents of every outermost \boxed{...} with balanced braces, in order."""
    return [text[start:end] for start, end in _box_spans(text)]


def _box_spans(text: str) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    depth, start = 0, 0
    for token in _BRACES.finditer(text):
        opens = token["box"] is not None or (depth > 0 and token[0] == "{")
        if opens and depth == 0:
            start = token.end()
        depth += 1 if opens else -1 if depth and token[0] == "}" else 0
        if depth == 0 and token[0] == "}" and start:
            spans.append((start, token.start()))
            start = 0
    # \boxed{\phantom{2}} draws a box to be filled in.
    return [(start, end) for start, end in spans if _INVISIBLE.sub("", text[start:end])]


def joint_boxes(text: str) -> str:
    r"""Return `a, b` for \boxed{a} and \boxed{b}: one list, written in a box per part; else ''."""
    spans = _box_spans(text)
    between = [
        text[end + 1 : start].rpartition(_BOX)[0]
        for (_, end), (start, _) in itertools.pairwise(spans)
    ]
    if not between or any(len(gap) > MAX_GAP or not _JOINT.fullmatch(gap) for gap in between):
        return ""
    return ", ".join(text[start:end] for start, end in spans)


def candidates(text: str, gold: str) -> list[str]:
    """Collect everything the text states as its final answer.

    Boxes and `####` lines always count; a phrase such as "the answer is" counts beside a box only
    if it states a bare value, and so does a first line before any mark. Without any mark it is the
    whole text, or the values on lines of their own and what the last line comes to.
    A box that is not closed states nothing.
    """
    text = _CALCULATION.sub("", text)
    boxes, first_mark, phrases = boxed(text), len(text), list[str]()
    for match in _MARKER.finditer(text):
        first_mark = min(first_mark, match.start())
        after = text[match.end() : match.end() + MAX_CHARACTERS].strip()
        phrase = _SENTENCE_END.split(after, maxsplit=1)[0].partition(_BOX)[0].strip()
        if re.search(r"\w", phrase):
            phrases.append(phrase)
    values = [_value_of(phrase, gold) for phrase in dict.fromkeys(phrases)]
    if boxes:
        first_mark = min(first_mark, text.index(_BOX))
        values = [value for value in values if bare_number(value)]
    if boxes or values:
        head = text[:first_mark].strip().partition("\n")[0]
        return ([head] if bare_number(head) else []) + boxes + values
    return [] if _BOX in text else _unmarked(text, gold)


def _unmarked(text: str, gold: str) -> list[str]:
    if quantity(text) is not None:
        return [text]
    tail = _DISPLAY.sub(lambda match: match[0].replace("\n", " "), text[-MAX_CHARACTERS:])
    lines = [line for line in (text[:-MAX_CHARACTERS] + tail).split("\n") if line.strip()]
    return [*(line for line in lines if bare_number(line)), _value_of(lines[-1], gold)]


def _value_of(phrase: str, gold: str) -> str:
    """Cut the value out of a phrase; all of it, unless the gold is a number.

    What it equals in the end, or the number it begins with, or its last formula or number.
    """
    phrase = phrase.strip()[-MAX_CHARACTERS:]
    if quantity(phrase) is not None or quantity(gold) is None:
        return phrase
    left, _, right = phrase.rpartition("=")
    if quantity(right) is not None and not bare_number(left):
        return right
    leading = _LEADING.match(phrase)
    if leading:
        return leading[0]
    segments = [match for match in _MATHS.finditer(phrase) if match[0].strip("$ ")]
    tail = phrase[segments[-1].end() :] if segments else phrase
    numbers = numbers_in(tail)
    if segments and not numbers:
        return _value_of(next(filter(None, segments[-1].groups())), gold)
    return numbers[-1] if numbers and "\\" not in tail else phrase


def _check(gold: FinalAnswer, answer: str) -> Verdict:
    value = ", ".join(boxed(gold.value)) or gold.value
    found = list(dict.fromkeys(candidates(answer, value)))
    detail = f"gold {value!r}, found {[candidate[:80] for candidate in found[:4]]!r}"
    if not 1 <= len(found) <= MAX_CANDIDATES:
        return scored(0.0, "several_answers" if found else "no_answer", f"{len(found)} candidates")
    try:
        equal = _compare(value, found)
        joint = joint_boxes(answer) if False in equal and found == boxed(answer) else ""
        if joint and _compare(value, [joint]) == [True]:
            equal = [True]
    except (WorkerTimeout, WorkerFailed) as error:
        reason = "timeout" if isinstance(error, WorkerTimeout) else "worker_failed"
        return abstain(reason, f"{detail}: {error}")
    if all(equal):
        return scored(1.0, "correct", detail)
    if False not in equal:
        return abstain("gold_unreadable", detail)
    return scored(0.0, "several_answers" if True in equal else "wrong", detail)


def _compare(gold: str, found: Sequence[str]) -> list[bool | None]:
    """Compare every candidate; None where it stays undecided, which one wrong candidate excuses."""
    equal = [
        False if len(candidate) > MAX_CHARACTERS else same_value(gold, candidate)
        for candidate in found
    ]
    if False in equal:
        return equal
    return [
        symbolic.in_worker(equivalent, (gold, candidate), TIMEOUT_S) if same is None else same
        for candidate, same in zip(found, equal, strict=True)
    ]


def close() -> None:
    """End the workers; the next comparison that needs one starts it again."""
    symbolic.close()
