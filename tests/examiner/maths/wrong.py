r"""Falsifications of a final answer that are another value.

Every changed text is read again exactly and dropped unless its value differs from the gold's.
"""

import random
from fractions import Fraction

from tests.examiner.case import Answer, Question
from tests.examiner.maths.edits import (
    edited,
    integer,
    joined,
    replaced,
    single,
    with_request,
)
from tests.examiner.maths.exact import latex, number, root
from tests.examiner.maths.golds import Gold, Shape
from tests.examiner.phrasing import box, decimal, state_answer

_OTHER_UNITS = {
    "cm": "m", "m": "cm", "mm": "m", "km": "m", "inches": "feet", "feet": "inches", "ft": "in",
    "in": "ft", "hours": "minutes", "minutes": "hours", "min": "s", "seconds": "minutes",
    "days": "weeks", "weeks": "days", "years": "months", "months": "years", "dollars": "cents",
    "cents": "dollars", "mph": "km", "degrees": "radians", "$": "cents",
}  # fmt: skip
_SUPERSCRIPT = str.maketrans("23456789", "²³⁴⁵⁶⁷⁸⁹")


def digit(question: Question, source: random.Random) -> str | None:
    return edited(question, source, r"\d", lambda d: str((int(d) + source.randint(1, 9)) % 10))


def swapped_digits(question: Question, source: random.Random) -> str | None:
    return edited(question, source, r"(?<!\d)\d\d+", lambda d: _transposed(d, source))


def operator(question: Question, source: random.Random) -> str | None:
    other = {"+": "-", "-": "+"}
    return edited(question, source, r"(?<=[\w})])\s*[-+]", lambda sign: other[sign.strip()])


def sum_as_product(question: Question, source: random.Random) -> str | None:
    return edited(question, source, r"(?<=[\w})])\s*[-+]\s*(?=[a-zA-Z(\\])", lambda _: " ")


def flat_exponent(question: Question, source: random.Random) -> str | None:
    return edited(question, source, r"\^\{?\d+\}?", lambda power: power.strip("^{}"))


def letter(question: Question, source: random.Random) -> str | None:
    value = single(question)
    if value is None or not value.letters:
        return None
    new = source.choice(sorted(set("abcdkmnpqrtxyz") - value.letters))
    return edited(question, source, r"(?<![\\a-zA-Z])[a-zA-Z](?![a-zA-Z{])", lambda _: new)


def root_lost(question: Question, source: random.Random) -> str | None:
    return edited(question, source, r"\\sqrt\s*(?=\{)", lambda _: "")


def sign(question: Question, source: random.Random) -> str | None:
    gold: Gold = question.facts
    if not gold.values or gold.shape is Shape.INTERVAL:
        return None
    place = source.randrange(len(gold.values))
    if not gold.values[place].terms:
        return None
    return replaced(gold, place, latex(-gold.values[place]))


def off_by_one(question: Question, source: random.Random) -> str | None:
    gold: Gold = question.facts
    if not gold.values or gold.shape is Shape.INTERVAL:
        return None
    place = source.randrange(len(gold.values))
    return replaced(gold, place, latex(gold.values[place] + number(source.choice((1, -1)))))


def ten_times(question: Question, source: random.Random) -> str | None:
    value = _rational(question)
    if not value:
        return None
    shifted = decimal(value * source.choice((Fraction(10), Fraction(1, 10))))
    return shifted and box(shifted)


def reciprocal(question: Question, source: random.Random) -> str | None:
    del source
    value = _rational(question)
    if value is None or value in (0, 1, -1):
        return None
    return box(latex(number(1 / value)))


def long_number(question: Question, source: random.Random) -> Answer | None:
    """Ask for a value of many digits: the gold times a large number, of which the end is wrong."""
    value = integer(question)
    if not value:
        return None
    factor = source.randrange(10**9, 10**10)
    below = source.choice((1, 1, 7, 9))
    true, false = (Fraction(value * factor + part, below) for part in (0, source.randint(1, 9)))
    problem = with_request(question, f"Multiply the result by {factor}/{below}.", _plain(true))
    return Answer(box(_plain(false), source), problem)


def long_number_right(question: Question, source: random.Random) -> Answer | None:
    """Ask as `long_number` does, and answer right."""
    value = integer(question)
    if not value:
        return None
    factor = source.randrange(10**9, 10**10)
    text = f"{value * factor}"
    return Answer(
        box(text, source), with_request(question, f"Multiply the result by {factor}.", text)
    )


def half_more(question: Question, source: random.Random) -> str | None:
    value = integer(question)
    if value is None or value < 0:
        return None
    form = source.choice(
        ("$\\boxed{{{}.5}}$", "$\\boxed{{{}\\frac{{1}}{{2}}}}$", "The answer is {} and a half.")
    )
    return form.format(value)


def decimal_appended(question: Question, source: random.Random) -> str | None:
    value = integer(question)
    if value is None:
        return None
    tail = source.choice((".1", ".01", ", 1", ",1", ".7"))
    return box(f"{value}{tail}", source)


def comma_for_point(question: Question, source: random.Random) -> str | None:
    value = _rational(question)
    shown = None if value is None else decimal(value)
    if shown is None or "." not in shown or question.problem.language != "en":
        return None
    return box(shown.replace(".", ", "), source)


def grouped_zeros(question: Question, source: random.Random) -> str | None:
    value = integer(question)
    if value is None or not 0 < value < 1000 or question.problem.language != "en":
        return None
    return state_answer(f"{value},000", source)


def factorial(question: Question, source: random.Random) -> str | None:
    value = integer(question)
    if value is None or not 3 <= value <= 200:
        return None
    return box(f"{value}!", source)


def superscript(question: Question, source: random.Random) -> str | None:
    value = integer(question)
    if value is None or value < 12 or value % 10 < 2:
        return None
    base, exponent = value // 10, value % 10
    if base**exponent == value:
        return None
    return box(f"{base}{str(exponent).translate(_SUPERSCRIPT)}", source)


def power(question: Question, source: random.Random) -> str | None:
    value = integer(question)
    if value is None or value in (0, 1):
        return None
    return box(f"{value}^{source.choice((2, 3))}" if value > 0 else f"({value})^2", source)


def embedded(question: Question, source: random.Random) -> str | None:
    """Write an expression that ends in the gold number and is worth something else."""
    value = integer(question)
    if value is None or not 2 <= value <= 10**6:
        return None
    other = source.randint(2, 9)
    forms = {
        f"{other} \\cdot {value}": Fraction(other * value),
        f"{value + other} - {value}": Fraction(other),
        f"\\frac{{{other}}}{{{value}}}": Fraction(other, value),
        f"{other} + {value}": Fraction(other + value),
        f"{other}^{{{value}}}": None,
        f"\\sqrt{{{value}}}": root(Fraction(value)).rational if value <= 10**6 else None,
        f"{other}/{value}": Fraction(other, value),
        f"{other}x + {value}": None,
        f"a_{{{value}}}": None,
        f"{other}√2 + {value}": None,
    }
    text = source.choice(sorted(forms))
    if forms[text] == value:
        return None
    return source.choice((box(text), f"The answer is ${text}$."))


def order(question: Question, source: random.Random) -> str | None:
    gold: Gold = question.facts
    if gold.shape is not Shape.POINT:
        return None
    places = source.sample(range(len(gold.values)), len(gold.values))
    if [gold.values[place] for place in places] == list(gold.values):
        return None
    return box(f"({', '.join(gold.parts[place] for place in places)})", source)


def bracket(question: Question, source: random.Random) -> str | None:
    gold: Gold = question.facts
    if gold.shape is not Shape.INTERVAL:
        return None
    other = source.choice([b for b in ("()", "[]", "(]", "[)") if b != gold.brackets])
    return box(f"{other[0]}{gold.parts[0]}, {gold.parts[1]}{other[1]}", source)


def element_dropped(question: Question, source: random.Random) -> str | None:
    gold: Gold = question.facts
    if gold.shape not in (Shape.LIST, Shape.POINT) or len(gold.parts) < 2:
        return None
    kept = list(gold.parts)
    del kept[source.randrange(len(kept))]
    return box(joined(gold, kept), source)


def element_added(question: Question, source: random.Random) -> str | None:
    gold: Gold = question.facts
    if gold.shape not in (Shape.LIST, Shape.POINT, Shape.VALUE) or gold.unit:
        return None
    new = source.randint(2, 60)
    if number(new) in gold.values:
        return None
    parts = [*gold.parts]
    parts.insert(source.randint(0, len(parts)), str(new))
    joint = ", ".join(parts)
    return box(f"({joint})" if gold.shape is Shape.POINT else joint, source)


def other_base(question: Question, source: random.Random) -> str | None:
    gold: Gold = question.facts
    if gold.shape is not Shape.BASE or len(gold.parts[0]) < 2:
        return None
    digits, base = gold.parts
    return box(f"{digits}_{{{int(base) + source.randint(1, 3)}}}", source)


def other_option(question: Question, source: random.Random) -> str | None:
    gold: Gold = question.facts
    if gold.shape is not Shape.OPTION:
        return None
    other = source.choice([letter for letter in "ABCDE" if letter != gold.parts[0]])
    return box(source.choice(("{}", "\\text{{({})}}", "\\textbf{{({})}}")).format(other), source)


def other_unit(question: Question, source: random.Random) -> str | None:
    gold: Gold = question.facts
    if gold.unit not in _OTHER_UNITS or gold.values[0].rational == 0:
        return None
    return box(f"{gold.parts[0]}\\text{{ {_OTHER_UNITS[gold.unit]}}}", source)


def _rational(question: Question) -> Fraction | None:
    value = single(question)
    return None if value is None else value.rational


def _plain(value: Fraction) -> str:
    if value.denominator == 1:
        return str(value.numerator)
    return f"\\frac{{{value.numerator}}}{{{value.denominator}}}"


def _transposed(digits: str, source: random.Random) -> str:
    place = source.randrange(len(digits) - 1)
    return digits[:place] + digits[place + 1] + digits[place] + digits[place + 2 :]
