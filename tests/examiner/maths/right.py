r"""Equivalents of a final answer: the gold value, written in another way or said in other words."""

# ruff: noqa: RUF001 - signs that people type
import math
import random
import re
from fractions import Fraction

from tests.examiner.case import Answer, Question
from tests.examiner.maths.edits import integer, single
from tests.examiner.maths.exact import Exact, latex
from tests.examiner.maths.golds import Gold, Shape
from tests.examiner.phrasing import (
    DECIMAL_COMMA,
    SENTENCES,
    SMALL,
    box,
    decimal,
    local,
    small_words,
    state_answer,
    with_language,
    words,
)

MAX_BOXES = 8
"""Whoever states more answers than this may be taken for guessing."""
SLOT = "<<ANSWER>>"
"""Where a solution states its answer."""
PROSE = ("final_answer",)
"""`rule_answer` promises nothing on a sentence without a box."""
_FORM = re.compile(
    r"form|simpl|express|fraction|decimal|round|nearest|factor|expan|rational|mixed|percent"
    r"|lowest|radical|terms of|scientific",
    re.IGNORECASE,
)
"""Where the question asks for a form, another spelling is open to debate."""
_FRACTION = re.compile(r"\\[dt]?frac\s*(?:\{(\d+)\}\s*\{(\d+)\}|(\d)\s*(\d))")
_FULL_WIDTH = str.maketrans("0123456789", "０１２３４５６７８９")


def boxed(question: Question, source: random.Random) -> str | None:
    """The gold text as it stands."""
    gold: Gold = question.facts
    return None if "$" in gold.text.replace("\\$", "") else box(gold.text, source)


def bare(question: Question, source: random.Random) -> str | None:
    del source
    gold: Gold = question.facts
    if gold.shape is not Shape.VALUE or gold.values[0].rational is None:
        return None
    return f"${gold.parts[0]}$" if "\\" in gold.parts[0] else gold.parts[0]


def hashes(question: Question, source: random.Random) -> str | None:
    stated = bare(question, source)
    return stated and f"We add everything up.\n#### {stated}"


def sentence(question: Question, source: random.Random) -> Answer | None:
    stated = bare(question, source)
    language = source.choice(tuple(SENTENCES))
    if stated is None:
        return None
    return Answer(state_answer(stated, source, language), with_language(question.problem, language))


def fraction(question: Question, source: random.Random) -> str | None:
    gold: Gold = question.facts
    if not _FRACTION.search(gold.text) or "," in gold.text.replace(",\\!", ""):
        return None
    style = source.choice(("\\dfrac{{{}}}{{{}}}", "\\tfrac{{{}}}{{{}}}", "\\frac {{{}}} {{{}}}"))
    return box(_FRACTION.sub(lambda m: style.format(m[1] or m[3], m[2] or m[4]), gold.text))


def slash(question: Question, source: random.Random) -> str | None:
    value = _free_rational(question)
    if value is None or value.denominator == 1:
        return None
    gap = source.choice(("", " "))
    return box(f"{value.numerator}{gap}/{gap}{value.denominator}")


def short_decimal(question: Question, source: random.Random) -> str | None:
    value = _free_rational(question)
    gold: Gold = question.facts
    if value is None or value.denominator == 1:
        return None
    if "." in gold.text:
        return box(f"\\frac{{{value.numerator}}}{{{value.denominator}}}", source)
    shown = decimal(value)
    return shown and box(shown)


def term_order(question: Question, source: random.Random) -> str | None:
    value = single(question)
    if value is None or len(value.terms) < 2 or "(" in question.facts.text:
        return None
    places = list(range(len(value.terms)))
    source.shuffle(places)
    return box(latex(value, dict(zip((m for m, _ in value.terms), places, strict=True))))


def common_factor(question: Question, source: random.Random) -> str | None:
    del source
    value = single(question)
    if value is None or len(value.terms) < 2 or _FORM.search(question.facts.question):
        return None
    factors = [factor for _, factor in value.terms]
    divisor = math.gcd(*(factor.numerator for factor in factors))
    if divisor < 2 or any(factor.denominator > 1 for factor in factors):
        return None
    inner = latex(Exact(tuple((m, f / divisor) for m, f in value.terms)))
    return box(f"{divisor}({inner})")


def root_below(question: Question, source: random.Random) -> str | None:
    del source
    value = single(question)
    if value is None or len(value.terms) != 1 or _FORM.search(question.facts.question):
        return None
    (((radicand, powers), factor),) = value.terms
    scaled = factor * radicand
    if radicand == 1 or powers:
        return None
    sign = "-" if scaled < 0 else ""
    below = f"{scaled.denominator if scaled.denominator > 1 else ''}\\sqrt{{{radicand}}}"
    return box(f"{sign}\\frac{{{abs(scaled.numerator)}}}{{{below}}}")


def spacing(question: Question, source: random.Random) -> str | None:
    gold: Gold = question.facts
    if gold.shape in (Shape.POINT, Shape.INTERVAL):
        inner = source.choice((",\\,", " , ", ",\\; ")).join(gold.parts)
        opening, closing = gold.brackets
        return box(f"\\left{opening}{inner}\\right{closing}")
    if gold.shape is Shape.VALUE and not gold.unit and len(gold.parts[0]) > 1:
        gap = source.choice((" {} ", "\\,{}\\,", "  {}  "))
        inner = re.sub(r"(?<=[\w})])\s*([-+])\s*", lambda m: gap.format(m[1]), gold.parts[0])
        return box(source.choice(("\\ {}\\ ", " {} ", "\\displaystyle {}", "{{{}}}")).format(inner))
    return None


def grouped(question: Question, source: random.Random) -> str | None:
    value = integer(question)
    if value is None or abs(value) < 1000:
        return None
    return box(f"{value:,}".replace(",", source.choice((",", "{,}", ",\\!", "\\,"))))


def local_format(question: Question, source: random.Random) -> Answer | None:
    exact = single(question)
    value = exact.rational if exact else None
    language = source.choice(tuple(SENTENCES))
    shown = None if value is None else local(value, language)
    if shown is None or value is None or not re.search(r"[.,]", shown):
        return None
    if language in DECIMAL_COMMA and value.denominator > 1 and abs(value) < 1000:
        # A comma alone, with three places, might be read as thousands.
        shown = None if len(shown.partition(",")[2]) == 3 else shown
    if shown is None:
        return None
    return Answer(state_answer(shown, source, language), with_language(question.problem, language))


def local_words(question: Question, source: random.Random) -> Answer | None:
    value = integer(question)
    language = source.choice(tuple(SMALL))
    said = None if value is None else small_words(value, language)
    if said is None:
        return None
    text = state_answer(said, source, language)
    return Answer(text, with_language(question.problem, language))


def said_twice(question: Question, source: random.Random) -> str | None:
    value = integer(question)
    if value is None or not 2 <= value < 1000:
        return None
    forms = ("{0} or {1}", "{0} ({1})", "{1} ({0})", "{0} ({2} + 1)", "{0} (1 for a, {2} for b)")
    said = source.choice(forms).format(value, words(value), value - 1)
    return source.choice(("The answer is {}.", "Answer: {}")).format(said)


def number_words(question: Question, source: random.Random) -> str | None:
    value = integer(question)
    if value is None or not 0 <= value < 1_000_000 or question.problem.language != "en":
        return None
    return state_answer(words(value), source)


def working(question: Question, source: random.Random) -> str | None:
    value = integer(question)
    if value is None or abs(value) > 10**9:
        return None
    part = source.randint(1, max(2, abs(value)))
    factor = next((n for n in (7, 5, 3, 2) if value and value % n == 0), 1)
    left = source.choice(
        (
            f"{part} + {_signed(value - part)}",
            f"{value + part} - {part}",
            f"{factor} \\cdot {_signed(value // factor)}",
        )
    )
    return source.choice(
        (
            "The answer is ${} = \\boxed{{{}}}$.",
            "Adding up, the total is\n\\[{} = \\boxed{{{}}}.\\]",
            "The answer is {} = $\\boxed{{{}}}$.",
            "So there are ${}=\\boxed{{{}}}$ in all.",
        )
    ).format(left, value)


def solution(question: Question, source: random.Random) -> str | None:
    del source
    gold: Gold = question.facts
    if not question.solution or "$" in gold.text.replace("\\$", ""):
        return None
    return question.solution.replace(SLOT, gold.text)


def stated_again(question: Question, source: random.Random) -> str | None:
    stated = bare(question, source)
    if stated is None:
        return None
    again = source.choice(("The answer is {}.", "#### {}", "**Answer: {}**", "Final answer: {}"))
    return f"{box(question.facts.parts[0])}\n\n{again.format(stated)}"


def variable(question: Question, source: random.Random) -> str | None:
    gold: Gold = question.facts
    value = single(question)
    if value is None or value.letters or gold.unit:
        return None
    return box(f"{source.choice('xynkt')}{source.choice(('=', ' = '))}{gold.parts[0]}")


def unit(question: Question, source: random.Random) -> str | None:
    gold: Gold = question.facts
    if gold.shape is not Shape.VALUE or gold.values[0].rational is None:
        return None
    amount = gold.parts[0]
    spellings = {
        "": (f"{amount}\\text{{ units}}", f"{amount} \\text{{ units}}"),
        "degrees": (
            f"{amount}^\\circ",
            f"{amount}^{{\\circ}}",
            amount,
            f"{amount}\\text{{ degrees}}",
        ),
        "%": (f"{amount}\\%", f"{amount}\\ \\%", f"{amount}%"),
        "$": (f"\\${amount}", amount, f"\\text{{\\${amount}}}"),
    }.get(gold.unit)
    if spellings is None:
        name = gold.unit
        spellings = (
            f"{amount}\\text{{ {name}}}",
            f"{amount}\\ \\text{{{name}}}",
            f"{amount}~\\mathrm{{{name}}}",
            amount,
        )
    return box(source.choice(spellings))


def thinking(question: Question, source: random.Random) -> str | None:
    value = integer(question)
    if value is None:
        return None
    wrong = value + source.randint(1, 50)
    return f"<think>Is it \\boxed{{{wrong}}}? The answer is {wrong}. No.</think>\n{box(str(value))}"


def afterword(question: Question, source: random.Random) -> str | None:
    stated = boxed(question, source)
    after = (
        "I hope this helps!",
        "Let me know if you have any further questions.",
        "This completes the solution.",
        "You can check this by going through the steps once more.",
    )
    return stated and f"{stated}\n\n{source.choice(after)}"


def markdown(question: Question, source: random.Random) -> str | None:
    stated = bare(question, source)
    if stated is None or "$" in stated:
        return None
    return source.choice(
        (
            "## Solution\n\nWe add both amounts.\n\n**Answer:** $\\boxed{{{}}}$",
            "1. Add both amounts.\n2. State the result.\n\n> $\\boxed{{{}}}$",
            "- Step one is to add.\n- **Final Answer:** \\(\\boxed{{{}}}\\)",
            "| step | result |\n|---|---|\n| total | $\\boxed{{{}}}$ |",
            "**$\\boxed{{{}}}$**",
            "Steps:\r\nadd both amounts.\r\n\r\nThe answer is $\\boxed{{{}}}$.\r\n",
        )
    ).format(stated)


def typed_signs(question: Question, source: random.Random) -> str | None:
    value = single(question)
    if value is None:
        return None
    whole = value.integer
    if whole is not None and whole < 0:
        return box(f"−{-whole}")
    if whole is not None and question.problem.language == "zh":
        return box(str(whole).translate(_FULL_WIDTH), source)
    text = question.facts.parts[0]
    typed = re.sub(r"\\sqrt\{(\d+)\}(?![\w(\\])", r"√\1", text).replace("\\pi", "π")
    return box(typed) if typed != text else None


def power_of_ten(question: Question, source: random.Random) -> str | None:
    value = integer(question)
    if not value or value % 100 or _FORM.search(question.facts.question):
        return None
    exponent = len(str(abs(value))) - 1
    mantissa = decimal(Fraction(value, 10**exponent))
    times = source.choice(("\\times", "\\cdot"))
    return mantissa and box(f"{mantissa} {times} 10^{{{exponent}}}")


def list_order(question: Question, source: random.Random) -> str | None:
    gold: Gold = question.facts
    if gold.shape is not Shape.LIST:
        return None
    parts = source.sample(gold.parts, len(gold.parts))
    joint = source.choice((", ", ",", " \\text{ and } "))
    if len(parts) > 2 or re.search(r"\d,\d{3}(?!\d)", ",".join(parts)):
        joint = ", "  # 81,256 is one number
    return box(joint.join(parts))


def several_boxes(question: Question, source: random.Random) -> str | None:
    gold: Gold = question.facts
    if gold.shape is not Shape.LIST or len(gold.parts) > MAX_BOXES:
        return None
    boxes = [f"$\\boxed{{{part}}}$" for part in source.sample(gold.parts, len(gold.parts))]
    return f"The solutions are {', '.join(boxes[:-1])} and {boxes[-1]}."


def shape_spelling(question: Question, source: random.Random) -> str | None:
    gold: Gold = question.facts
    match gold.shape:
        case Shape.MATRIX:
            width = len(gold.parts) // gold.rows
            lines = [gold.parts[i : i + width] for i in range(0, len(gold.parts), width)]
            inner = " \\\\\n".join(" & ".join(line) for line in lines)
            name = source.choice(("pmatrix", "bmatrix"))
            return box(f"\\begin{{{name}}}\n{inner}\n\\end{{{name}}}")
        case Shape.BASE:
            digits, base = gold.parts
            return box(source.choice((f"{digits}_{{{base}}}", f"{digits}_{{\\text{{{base}}}}}")))
        case Shape.OPTION:
            styles = ("{}", "({})", "\\text{{{}}}", "\\textbf{{({})}}", "\\text{{({})}}")
            return box(source.choice(styles).format(gold.parts[0]))
        case _:
            return None


def chain_in_box(question: Question, source: random.Random) -> str | None:
    value = integer(question)
    if value is None or not 0 < value < 10**9:
        return None
    part = source.randint(1, value)
    return box(f"{part} + {value - part} = {value}")


def _free_rational(question: Question) -> Fraction | None:
    """A rational whose form the question does not ask for."""
    value = single(question)
    return None if value is None or _FORM.search(question.facts.question) else value.rational


def _signed(value: int) -> str:
    return f"({value})" if value < 0 else str(value)
