r"""Is the boxed answer the right one? By rules of our own, beside `final_answer` (+1 or -1).

Compass-Thinker (arXiv 2508.08909) rewards with a rule-based verifier in place of math-verify; its
rules are not printed. Here: the boxes with balanced braces (without a box, a line `#### x` or
`A: x`, or the one line there is), LaTeX normalised, exact text, numbers (rationals exactly, others
within 1e-6), the parts of tuples, intervals, sets and matrices, and equality of expressions, proved
by sympy in a worker that can be killed. Every box must have the gold value.

Gold: {"value": "26"}, as for `final_answer`.
Differs: a verdict is 1 or 0 as everywhere here; `signed` gives the paper's +1 and -1.
"""

import re
from collections.abc import Sequence
from fractions import Fraction

from data_schemas.prompts import Problem
from data_schemas.verdicts import Verdict, abstain, scored
from tasks.rewards.maths import symbolic
from tasks.rewards.maths.answer_shapes import Shape, normalised, shape, sides, unit
from tasks.rewards.maths.final_answer import (
    MAX_CANDIDATES,
    MAX_CHARACTERS,
    FinalAnswer,
    boxed,
    joint_boxes,
)
from tasks.rewards.maths.latex_terms import Term, TooLarge, minus, parse_term, symbols, value_of
from tasks.rewards.maths.symbolic import constant
from tasks.rewards.protocol import judge
from tasks.rewards.workers.pool import WorkerFailed, WorkerTimeout

TIMEOUT_S = 5.0
"""For one proof in a worker."""
RELATIVE_TOLERANCE = 1e-6
MAX_LINE = 100
"""Characters of a response that is nothing but its answer."""
MAX_DEPTH = 4
"""Of tuples in sets in unions."""
UNORDERED = {"list", "set", "union", "value"}
POINTS = (
    (0.731, 1.417, 2.293, 0.577),
    (-1.213, 2.719, -0.391, 1.833),
    (3.137, -0.847, 1.291, 2.1),
    (40.9, 33.7, 27.2, 45.6),
)
"""Where expressions with unknowns are compared before anything is proved."""

_LINE = re.compile(r"^[ \t]*(?:####|A(?:nswer)?[ \t]*:)[ \t]*(.+)$", re.MULTILINE)
_BASE = re.compile(r"(-?\w+)_\{?(\d+)\}?")


def verify(problem: Problem, response: str) -> Verdict:
    """Score 1 if every box of the response has the gold value, else 0."""
    return judge(problem, response, FinalAnswer, _check)


def signed(verdict: Verdict) -> int | None:
    """Return Compass-Thinker's reward: +1 correct, -1 incorrect, None without a verdict."""
    if verdict.score is None:
        return None
    return 1 if verdict.solved else -1


def stated(text: str) -> list[str]:
    """Collect the boxes; without any the marked lines, or the text if it is one short line."""
    if "\\boxed" in text:
        found = boxed(text)
    else:
        found = [match[1] for match in _LINE.finditer(text)]
        found = found or ([text] if len(text) <= MAX_LINE and "\n" not in text else [])
    return list(dict.fromkeys(found))


def same_answer(gold: str, candidate: str) -> bool | None:
    """Compare two written answers; None if the gold cannot be read or equality not be decided.

    Raises:
        WorkerTimeout, WorkerFailed: a proof did not end.
    """
    if unit(gold) != unit(candidate) and "" not in (unit(gold), unit(candidate)):
        return False
    ours, theirs = normalised(gold), normalised(candidate)
    if ours and ours.replace(" ", "") == theirs.replace(" ", ""):
        return True
    return _same(ours, theirs, MAX_DEPTH)


def close() -> None:
    """End the workers; the next proof starts them again."""
    symbolic.close()


def _check(gold: FinalAnswer, answer: str) -> Verdict:
    value = ", ".join(boxed(gold.value)) or gold.value
    found = stated(answer)
    if "," in value and len(found) > 1:
        found = [joint_boxes(answer)] if joint_boxes(answer) else found
    detail = f"gold {value!r}, found {[candidate[:80] for candidate in found[:4]]!r}"
    if not 1 <= len(found) <= MAX_CANDIDATES:
        return scored(0.0, "several_answers" if found else "no_answer", f"{len(found)} boxes")
    equal: list[bool | None] = []
    for candidate in found:
        try:
            same = len(candidate) <= MAX_CHARACTERS and same_answer(value, candidate)
        except (WorkerTimeout, WorkerFailed) as error:
            reason = "timeout" if isinstance(error, WorkerTimeout) else "worker_failed"
            return abstain(reason, f"{detail}: {error}")
        equal.append(same)
    if False in equal:
        return scored(0.0, "several_answers" if len(found) > 1 else "wrong", detail)
    return abstain("undecided", detail) if None in equal else scored(1.0, "correct", detail)


def _same(gold: str, candidate: str, depth: int) -> bool | None:
    a, b = shape(gold), shape(candidate)
    kinds = {a.kind, b.kind}
    if a.name and b.name and a.name != b.name and len(a.name) == len(b.name) == 1:
        same = False
    elif "equation" in kinds:
        same = _same_equation(sides(gold), sides(candidate))
    elif kinds == {"value"}:
        same = _same_value(a.parts[0], b.parts[0])
    elif "words" in kinds:
        same = len(a.parts) == len(b.parts) == 1 and _word(a) == _word(b)
    else:
        same = depth > 0 and len(a.parts) == len(b.parts) and _same_parts(a, b, depth - 1)
    return same


def _same_parts(gold: Shape, candidate: Shape, depth: int) -> bool | None:
    if {gold.kind, candidate.kind} <= UNORDERED:
        return _same_unordered(gold.parts, candidate.parts, depth)
    if gold.kind != candidate.kind:
        return False
    return _all([_same(x, y, depth) for x, y in zip(gold.parts, candidate.parts, strict=True)])


def _word(written: Shape) -> str:
    return written.parts[0].casefold().strip("() ")


def _same_unordered(gold: Sequence[str], candidate: Sequence[str], depth: int) -> bool | None:
    """Match every part with one of its own; equality is transitive, so the first match will do."""
    left, undecided = list(candidate), False
    for part in gold:
        verdicts = [_same(part, other, depth) for other in left]
        if True in verdicts:
            del left[verdicts.index(True)]
        elif None in verdicts:
            undecided = True
        else:
            return False
    return None if undecided else True


def _all(verdicts: Sequence[bool | None]) -> bool | None:
    if False in verdicts:
        return False
    return None if None in verdicts else True


def _same_equation(gold: list[str], candidate: list[str]) -> bool | None:
    """Compare equations up to a factor; beside a value, an equation states its last side."""
    if len(gold) == 1 or len(candidate) == 1:
        chain = [parse_term(side) for side in (gold if len(gold) > 1 else candidate)]
        known = [term for term in chain if term is not None and not symbols(term)]
        if any(_same_term(known[-1], term) is not True for term in known[:-1]):
            return False  # 27 = 26 states two values
        if len(gold) > 1 and len(known) < len(gold):
            return False  # a + 3z = 0 asks for more than 0
        return _same_value(gold[-1], candidate[-1])
    ours, theirs = _difference(gold), _difference(candidate)
    if ours is None or theirs is None:
        return None if ours is None else False
    ratio = Term("/", (ours, theirs))
    values = [value for value in _values(ratio) if value is not None]
    if len(values) < 2:
        return None
    return all(values) and all(_close(values[0], value) for value in values) and _proved(ratio)


def _difference(equation: list[str]) -> Term | None:
    left, right = parse_term(equation[0]), parse_term(equation[-1])
    return minus(left, right) if left and right and len(equation) == 2 else None


def _same_value(gold: str, candidate: str) -> bool | None:
    percents = gold.endswith("%"), candidate.endswith("%")
    gold, candidate = (text.strip("+% ") for text in (gold, candidate))
    if gold.replace(" ", "") == candidate.replace(" ", ""):
        return True
    if "\\infty" in gold + candidate:
        return False
    bases = _BASE.fullmatch(gold), _BASE.fullmatch(candidate)
    if any(bases):
        return _same_in_base(gold, candidate, bases)
    a, b = parse_term(gold), parse_term(candidate)
    if a is None or b is None:
        return None if a is None else False
    same = _same_term(a, b)
    if same is False and percents[0] != percents[1]:  # 50 % is 0.5 as well as 50
        hundredth = Term("num", value=Fraction(1, 100))
        percent, other = (a, b) if percents[0] else (b, a)
        return _same_term(Term("*", (percent, hundredth)), other)
    return same


def _same_in_base(
    gold: str, candidate: str, bases: tuple[re.Match[str] | None, re.Match[str] | None]
) -> bool:
    """A base that is not named is the gold's."""
    digits = [
        match[1] if match else text for match, text in zip(bases, (gold, candidate), strict=True)
    ]
    return digits[0] == digits[1] and not (bases[0] and bases[1] and bases[0][2] != bases[1][2])


def _same_term(gold: Term, candidate: Term) -> bool | None:
    if not symbols(gold) and not symbols(candidate):
        return _same_constant(gold, candidate)
    pairs = [
        (x, y)
        for x, y in zip(_values(gold, candidate), _values(candidate, gold), strict=True)
        if x is not None
    ]
    if any(y is None or not _close(x, y) for x, y in pairs):
        return False
    return _proved(minus(gold, candidate)) if len(pairs) > 1 else None


def _same_constant(gold: Term, candidate: Term) -> bool | None:
    values: list[Fraction | complex] = []
    for term in (gold, candidate):
        try:
            values.append(value_of(term, {}))
        except (TooLarge, ArithmeticError, ValueError):
            return False if values else None
    return _close(values[0], values[1])


def _values(term: Term, other: Term | None = None) -> list[Fraction | complex | None]:
    """Evaluate at the points; None where there is no value."""
    names = sorted(symbols(term) | (symbols(other) if other else frozenset()))
    values: list[Fraction | complex | None] = []
    for point in POINTS:
        spread = {
            name: point[place % len(point)] + place // len(point)
            for place, name in enumerate(names)
        }
        try:
            values.append(value_of(term, spread))
        except (TooLarge, ArithmeticError, ValueError):
            values.append(None)
    return values


def _close(a: Fraction | complex, b: Fraction | complex) -> bool:
    """Integers must be equal, others within the relative tolerance."""
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        if a.denominator == b.denominator == 1:
            return a == b
        return abs(a - b) <= Fraction(RELATIVE_TOLERANCE) * max(abs(a), abs(b))
    try:
        x, y = complex(a), complex(b)
    except OverflowError:  # one is an exact number beyond floats, the other is a float
        return False
    return abs(x - y) <= max(RELATIVE_TOLERANCE * max(abs(x), abs(y)), 1e-12)


def _proved(term: Term) -> bool | None:
    """Have sympy prove that a term does not depend on its unknowns; None if it cannot."""
    return True if symbolic.in_worker(constant, (term,), TIMEOUT_S) else None
