"""Score a final answer in three steps: locate, parse, compare. Both maths verifiers use them.

The verifiers differ in where they search, not in how they interpret an expression. An answer that
cannot be parsed or compared in time is wrong. A gold that cannot be read is an abstention, and so
is an answer of which the gold leaves open whether it is right. A worker that fails at 1 = 1 too is
an error, of which no verdict comes.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Self, TypeAlias

from pydantic import Field, model_validator

from data_schemas.rows import Problem
from data_schemas.verdicts import Verdict, abstain, scored
from tasks.algorithms.folding import visible
from tasks.gym.json_answer import without_container
from tasks.gym.maths import matrices, symbolic
from tasks.gym.maths.compare import is_cut_off, rational, same
from tasks.gym.maths.locate import Place, boxes, joint, lenient
from tasks.gym.maths.parse import Answer, parse
from tasks.gym.maths.quantities import is_another, is_unit, without_unit
from tasks.gym.maths.reading import AnswerForm
from tasks.gym.maths.symbolic import SymbolicResult
from tasks.gym.maths.times import time_in, times_in_digits
from tasks.gym.maths.undecided import (
    COMMA,
    COUNTED,
    DIGITS,
    EXCLAMATION,
    INVERSE,
    PRODUCT,
    RATIO,
    UNFINISHED,
    is_exclaimed,
    is_inverse_of,
    is_open_comma,
    is_open_count,
    is_open_product,
    is_open_ratio,
    is_unfinished,
    undecided,
)
from tasks.gym.maths.words import HEDGES
from tasks.gym.protocol import Gold, verify_answer
from tasks.gym.workers import WorkerFailure, WorkerStarvation, WorkerTimeout

MAX_CANDIDATES = 8
"""A response that states more values is guessing."""
BUDGET_S = 0.7
"""CPU seconds of a worker for all comparisons of one response together, so that no response takes
a second, with `symbolic.SLACK_S` and what we do ourselves."""
TIMEOUT_S = 10.0
"""CPU seconds after which a worker is killed that imports sympy and compares."""
SHOWN = 80
"""Most characters of an answer in a verdict's detail."""
SHOWN_ANSWERS = 4
ANOTHER_EVENT = "another event"
ECHO = "a formula of the problem"
MAX_VALUE = 200
"""Most characters of a gold that is a value; a longer one is a solution."""

# "\frac", "x^2", "a_1", "|x|".
_FORMULA = re.compile(r"\\[A-Za-z]|[\^_|]")
# "48g" is a weight where the gold is a number; elsewhere, and in the formula "$48g$" unless the
# problem has that unit, 48 times g.
_TIGHT_UNIT = re.compile(r"^(\$?\d+(?:[.,]\d+)*)([gmshlLJNWVK])(\$?\.?)$")
_WORK = re.compile(
    r"\\(?:i*int|sum|prod|lim|oint|(?:d|t)?frac\s*\{\s*(?:\\partial|d)\s*\}\s*\{\s*(?:\\partial|d))(?![A-Za-z])"
)
"""Work that an answer leaves to its reader; it is one only where the gold leaves it too."""
# "~~5~~"
_STRUCK = re.compile(r"(?<![\w}$\\])~~(?=\S)[^~\n\\$]{1,80}(?<=\S)~~")
# "<thinking>4</thinking>": a thought under a name that no chat template has
_THOUGHT = re.compile(
    r"\A\s*<(?P<tag>thinking|thoughts?|reasoning|scratchpad|reflection)>(?:(?!</?(?P=tag)>).)*</(?P=tag)>"
    r"(?!.*</?(?P=tag)>)(?=\s*\S)",
    re.DOTALL,
)
Locate: TypeAlias = Callable[[str, str], Sequence[Place]]
"""Maps a text and its language to the places that state an answer."""


# '["4", "5"]', of a cell that was a list
_TEXTS_IN_JSON = re.compile(r"\[\s*\"(?:[^\"\\]|\\.)*\"\s*(?:,\s*\"(?:[^\"\\]|\\.)*\"\s*)*\]")


class FinalAnswer(Gold):
    """The value that the answer must have."""

    value: str = Field(pattern=r"\S")
    tolerance: float | None = Field(default=None, gt=0, description="absolute; None: exact")
    unit: str = Field(default="", description="of the value, which the answer may leave out")
    chain: tuple[str, ...] = Field(
        default=(),
        description="intermediate whole numbers, in order; not scored: the detail names the first "
        "that a response does not write",
    )

    @model_validator(mode="after")
    def _says_what_is_right(self) -> Self:
        if self.unit and not is_unit(self.unit):
            raise ValueError(f"unit {self.unit!r} is not one of tasks/gym/maths/quantities.py")
        if _TEXTS_IN_JSON.fullmatch(self.value.strip()):
            raise ValueError("the value is a list of texts: alternatives, or all of them wanted?")
        return self


def decide(problem: Problem, response: str, locate: Locate) -> Verdict:
    """Score 1 if everything that is stated as the final answer has the gold value, else 0."""
    form = AnswerForm.of("\n".join(message.content for message in problem.messages))
    check = partial(_check, problem.language, locate, form, response)
    return verify_answer(problem, response, FinalAnswer, check)


def same_answer(
    gold: str, candidate: str, language: str = "en", tolerance: float | None = None
) -> bool | None:
    """Compare two written answers; None if the gold cannot be read or a worker failed on it."""
    ours, theirs = parse(gold, language), parse(candidate, language)
    read = AnswerForm().read
    budget = _Budget(BUDGET_S)
    return _compare(read(ours, ours), read(theirs, ours), budget, _fraction(tolerance)).equal


@dataclass(slots=True)
class _Budget:
    """What the comparisons of one response may still take."""

    cpu_s: float


@dataclass(frozen=True, slots=True)
class _Comparison:
    equal: bool | None
    how: str


def _check(
    language: str, locate: Locate, form: AnswerForm, response: str, gold: FinalAnswer, answer: str
) -> Verdict:
    answer = form.plain(
        without_container(visible(_STRUCK.sub(" ", _THOUGHT.sub("", answer)))), gold.value
    )
    gold = gold.model_copy(update={"value": form.plain(gold.value, gold.value)})
    whole, allowed = _gold(gold.value, language), _fraction(gold.tolerance)
    ours = form.read(whole, whole)
    if ours.kind == "clock":
        answer = times_in_digits(answer)
    places = list(locate(answer, language))
    if gold.unit:
        numbers = [without_unit(place.text, gold.unit) for place in places]
        numbers = [
            None if is_another(place.after, gold.unit) else number
            for place, number in zip(places, numbers, strict=True)
        ]
        if None in numbers:
            place = places[numbers.index(None)]
            other = f"{place.text} {place.after}"[:SHOWN]
            return scored(0.0, "other_unit", f"gold in {gold.unit}; {other!r}")
        places = [
            replace(place, text=text) for place, text in zip(places, numbers, strict=True) if text
        ]
    if len(places) > MAX_CANDIDATES and all(place.how == "box" for place in places):
        many = joint(answer)
        places = [Place(many, "boxes of a list")] if many else places
    if not 1 <= len(places) <= MAX_CANDIDATES:
        reason = "several_answers" if places else "no_answer"
        return scored(0.0, reason, f"gold {_excerpt(ours)}; {len(places)} answers found")
    places = [_as_gold(place, language, form, gold.value, whole, ours) for place in places]
    answers = [(place, form.read(_read(place, whole, language), whole)) for place in places]
    budget = _Budget(BUDGET_S)
    compare = partial(_compare, budget=budget, tolerance=allowed)
    answers, comparisons = _compared(language, form, gold.value, whole, answers, compare)
    if any(not one.equal for one in comparisons) and all(place.how == "box" for place in places):
        whole_list = Place(joint(answer), "boxes of a list")
        theirs = form.read(parse(whole_list.text, language), whole)
        one = _compare(ours, theirs, budget, allowed)
        if one.equal:
            answers, comparisons = [(whole_list, theirs)], [one]
    verdicts = [one.equal for one in comparisons]
    readings = [
        f"{place.how} {_excerpt(theirs)}: {one.how}"
        for (place, theirs), one in zip(answers[:SHOWN_ANSWERS], comparisons, strict=False)
    ]
    detail = f"gold {_excerpt(ours)}; {'; '.join(readings)}{_lacking(gold.chain, response)}"
    if all(verdicts):
        return scored(1.0, "correct", detail)
    if False in verdicts:
        return scored(0.0, "several_answers" if len(answers) > 1 else "wrong", detail)
    return abstain("undecided" if ours.readable else "gold_unreadable", detail)


def _as_gold(
    place: Place, language: str, form: AnswerForm, gold: str, whole: Answer, ours: Answer
) -> Place:
    """Write a place as a gold that is a number or a time wants it read."""
    if ours.kind == "clock":
        return replace(place, text=time_in(place.sentence) or place.text)
    if not _is_number(whole):
        return place
    text = form.in_full(place.text, gold, language)
    if "$" not in text or form.measures(text):
        text = _TIGHT_UNIT.sub(r"\1 \2\3", text)
    return replace(place, text=text)


def _compared(
    language: str,
    form: AnswerForm,
    gold: str,
    whole: Answer,
    answers: Sequence[tuple[Place, Answer]],
    compare: Callable[[Answer, Answer], _Comparison],
) -> tuple[list[tuple[Place, Answer]], list[_Comparison]]:
    """Compare every answer with the gold.

    What makes an answer suspect, or another one, counts only where it is not already the gold: a
    formula of the problem may be the answer, and so may the box of `x >= 4`.
    """
    ours = form.read(whole, whole)
    results = list[tuple[Place, Answer]]()
    comparisons = list[_Comparison]()
    for place, theirs in answers:
        one = _Comparison(False, ANOTHER_EVENT)
        if not form.is_another_call(place.sentence or place.text):
            one = _Comparison(False, ECHO)
            spelling = parse(place.text, language)
            if spelling.text == whole.text or not form.is_echo(place.text, gold):
                one = compare(ours, theirs)
        bare = form.read(parse(place.bare, language), whole) if place.bare else None
        alone = compare(ours, bare) if bare and one.equal is not True else one
        if bare and alone.equal:
            one, theirs = alone, bare
        if one.how not in (ANOTHER_EVENT, ECHO):
            one = _settled(ours, theirs, form, place, one)
        if one.equal and place.text != gold and _is_number(whole) and is_unfinished(place.text):
            one = _Comparison(None, UNFINISHED)
        results.append((place, theirs))
        comparisons.append(one)
    return results, comparisons


def _settled(
    ours: Answer, theirs: Answer, form: AnswerForm, place: Place, one: _Comparison
) -> _Comparison:
    """Correct a comparison where values are not all: of matrices, and what a gold leaves open."""
    stated = [(answer.name, answer.text) for answer in (ours, theirs)]
    if stated[0] != stated[1] and (form.matrices or matrices.has_matrices(ours.text)):
        one = _with_matrices(ours, theirs, one)
    if is_open_count(ours, theirs, form.words):
        return _Comparison(None, COUNTED)
    for why, is_open in ((PRODUCT, is_open_product), (COMMA, is_open_comma)):
        if one.equal and is_open(ours, theirs, form.words):
            return _Comparison(None, why)
    if one.equal and is_inverse_of(ours, theirs):
        return _Comparison(None, INVERSE)
    if one.equal and not form.ratio and is_open_ratio(ours, theirs):
        return _Comparison(None, RATIO)
    if one.equal is not False:
        return one
    why = DIGITS if is_cut_off(ours, theirs, place.text) else undecided(ours, theirs, form.words)
    if place.how != "box" and is_exclaimed(ours, theirs):
        why = EXCLAMATION
    return _Comparison(None, why) if why else one


def _with_matrices(ours: Answer, theirs: Answer, one: _Comparison) -> _Comparison:
    if not matrices.has_products(ours) and not matrices.has_products(theirs):
        return one
    equal = matrices.agree(ours, theirs)
    if equal is None:  # what does not even agree as numbers is not the same
        return _Comparison(None, "a product of matrices") if one.equal else one
    return _Comparison(equal, "matrices")


def _lacking(chain: Sequence[str], response: str) -> str:
    """Name the first intermediate result that is not written behind those before it; '' = none."""
    numbers = iter(re.findall(r"\d+", response) if chain else ())
    for result in chain:
        if result not in numbers:  # reads on from the result before
            return f"; the intermediate result {result} is not written"
    return ""


def _read(place: Place, gold: Answer, language: str) -> Answer:
    """Parse a place; a sentence identical to the gold is parsed as a whole."""
    whole = parse(place.sentence, language) if place.sentence else None
    return whole if whole and whole.text == gold.text else parse(place.text, language)


def _gold(value: str, language: str) -> Answer:
    """Parse the gold: a value, its boxes, or the answer of a whole solution."""
    boxed = dict.fromkeys(place.text for place in boxes(value))
    whole = parse(", ".join(boxed) or value, language)
    if whole.readable or len(value) < MAX_VALUE:
        return whole
    places = lenient(value, language)
    return parse(places[0].text, language) if len(places) == 1 else whole


def _fraction(tolerance: float | None) -> Fraction | None:
    return None if tolerance is None else Fraction(str(tolerance))


def _excerpt(answer: Answer) -> str:
    text = answer.text if len(answer.text) <= SHOWN else f"{answer.text[:SHOWN]}..."
    return f"{text!r} ({answer.kind})"


def _compare(
    ours: Answer, theirs: Answer, budget: _Budget, tolerance: Fraction | None
) -> _Comparison:
    equal = same(ours, theirs, tolerance)
    # A number has no spelling beyond our grammar that an answer would be written in.
    plain = _is_number(ours) or not _FORMULA.search(theirs.text) or HEDGES.search(theirs.text)
    if equal is None and not theirs.readable and plain:
        return _Comparison(False, "unread")
    if equal is not None:
        return _Comparison(equal, "same" if equal else "different")
    work = set(_WORK.findall(theirs.text)) - set(_WORK.findall(ours.text))
    if work or budget.cpu_s <= 0:
        return _Comparison(False, "left to be worked out" if work else "out of time")
    return _ask_sympy(ours, theirs, budget)


def _ask_sympy(ours: Answer, theirs: Answer, budget: _Budget) -> _Comparison:
    """Ask sympy, which takes its time from the budget.

    Raises:
        EngineError: a worker cannot compare 1 with 1 either, or got no time of the machine: no
            fault of the response.
    """
    gold, candidate = (answer.text.replace("\\cr ", "\\\\ ") for answer in (ours, theirs))
    try:
        outcome, took_s = symbolic.in_worker(
            symbolic.compare, (gold, candidate, budget.cpu_s), TIMEOUT_S
        )
        budget.cpu_s -= took_s
    except (WorkerTimeout, WorkerFailure) as error:
        budget.cpu_s = 0.0
        if isinstance(error, WorkerStarvation) or not _equals_itself("1"):
            raise
        if not ours.readable and not _equals_itself(gold):
            return _Comparison(None, f"{error}")
        return _Comparison(False, f"the answer cannot be compared: {error}")
    if outcome is SymbolicResult.GOLD_UNREAD and not ours.readable:
        return _Comparison(None, outcome)
    # An integral that we cannot solve is no fault of a value that we read at once.
    if outcome is SymbolicResult.OUT_OF_TIME and _WORK.search(gold) and theirs.kind == "value":
        return _Comparison(None, f"the work that the gold leaves: {outcome}")
    return _Comparison(outcome is SymbolicResult.SAME, f"{outcome} (math-verify)")


def _is_number(gold: Answer) -> bool:
    """Say whether a gold is one rational number, of which every spelling is in our grammar."""
    return gold.kind == "value" and rational(gold.term) is not None


def _equals_itself(text: str) -> bool:
    """Say whether a worker finds a text equal to itself, so that what failed was another one."""
    try:
        outcome, _ = symbolic.in_worker(symbolic.compare, (text, text, BUDGET_S), TIMEOUT_S)
        return outcome is SymbolicResult.SAME
    except (WorkerTimeout, WorkerFailure):
        return False
