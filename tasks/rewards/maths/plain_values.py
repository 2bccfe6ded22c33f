"""Numbers and words as people write them, compared without a computer algebra system.

Nothing here is symbolic: what is neither a number nor plain words is left undecided (None).
"""

# ruff: noqa: RUF001 - signs that people type
import ast
import math
import operator
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

RELATIVE_TOLERANCE = 1e-6
"""Between numbers of which at least one is not an integer."""

_MAX_CHARACTERS = 120
_CURRENCY = "$€£¥₫฿₹₱₩"
_CURRENCY_WORD = re.compile(r"^(?:US|NT|HK|S|RM|Rp|IDR|USD|THB|VND|BRL|R)\s*\.?\s*(?=[\d$])")
_WRAPPER = re.compile(
    r"\\(?:text(?:bf|it|rm)?|mathrm|mathbf|mbox|operatorname|boxed|fbox)\s*\{([^{}]*)\}"
)
_SPACING = re.compile(r"\\[,;:> ]|~|\\q?quad\b|\\(?:left|right|displaystyle|limits)(?![A-Za-z])")
_DELIMITER = re.compile(r"\\[\[\]()]|\$\$?")
_FRACTION = re.compile(
    r"\\[dtc]?frac\s*(?:\{\s*(-?[\d.,]+)\s*\}|(\d))\s*(?:\{\s*(-?[\d.,]+)\s*\}|(\d))"
)
# 1.500.000 is a number with separators anywhere; 1.500 only after a currency that is written so.
_DOTS = re.compile(r"(?<![\d.,])\d{1,3}(?:\.\d{3}){2,}(?:,\d+)?(?![\d.])")
_DOTS_AFTER_CURRENCY = re.compile(
    r"(?:(?<=Rp)|(?<=Rp )|(?<=Rp\.)|(?<=IDR )|(?<=VND )|(?<=R\$)|(?<=R\$ ))"
    r"\d{1,3}(?:\.\d{3})+(?:,\d+)?(?![\d.])"
)
_DECIMAL_COMMA = re.compile(r"-?\d+,(?:\d{1,2}|\d{4,})")
_NUMBER = r"(?:\d{1,3}(?:[, ]\d{3})+(?![\d])|\d+)(?:\.\d+)?|\.\d+"
_NUMBER_IN_TEXT = re.compile(rf"(?<![\w.])[-+]?\s?(?:{_NUMBER})(?:\s?/\s?\d+)?(?![\d])")
# A word of one or two letters is a unit only if listed: 2x, 2pi and 2i are no quantities.
_UNIT = (
    r"(?:(?:km|cm|mm|kg|mg|ml|lb|oz|ft|in|mi|yd|hr|am|pm|GB|MB|sq|ha|kW|[mgshlL])(?![A-Za-z])|"
    r"(?!sqrt|log|sin|cos|tan|exp|mod)[^\W\d_]{3,})"
)
_QUANTITY = re.compile(
    rf"(?P<sign>[-+]?)\s*(?:[{_CURRENCY}]\s*)?(?P<sign2>[-+]?)(?P<number>{_NUMBER})"
    rf"(?:\s*/\s*(?P<below>\d[\d,]*(?:\.\d+)?)|\s+(?P<top>\d+)\s*/\s*(?P<bottom>\d+))?"
    rf"\s*(?P<percent>%?)\s*"
    rf"(?P<unit>{_UNIT}[^\d=+*<>()\[\]{{}},\\]*(?:\^?[23])?|[{_CURRENCY}]|°\s*[CF]?)?"
)
_OPERATORS: dict[type[ast.AST], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with its unit, '' if it has none; per cent is a unit."""

    value: Fraction
    unit: str


def plain(text: str) -> str:
    """Strip what does not change the meaning: width, delimiters, wrappers, final punctuation.

    Letters keep their case; `same_value` folds it for words only.
    """
    text = unicodedata.normalize("NFKC", text).replace("\u2212", "-").replace("\\\\%", "%")
    text = text.replace("\\%", "%").replace("\\$", "").replace("{,}", ",").replace("**", "")
    text = re.sub(r"\\!\s*", "", text)
    text = text.replace("^\\circ", "°").replace("^{\\circ}", "°").replace("\\circ", "°")
    for _ in range(3):  # wrappers nest: \boxed{\text{\textbf{...}}}
        text = _WRAPPER.sub(r" \1 ", text)
    text = _SPACING.sub(" ", text)
    if not re.search(rf"[{_CURRENCY}]\s*-?[\d.]", text) or text.count("$") % 2 == 0:
        text = _DELIMITER.sub(" ", text)
    text = _DOTS.sub(_without_dots, _DOTS_AFTER_CURRENCY.sub(_without_dots, text))
    text = _CURRENCY_WORD.sub("", text.strip())
    return re.sub(r"\s+", " ", text).strip().rstrip(".;,:!。").strip()


def quantity(text: str) -> Quantity | None:
    """Read a number with optional sign, separators, fraction, currency, per cent and unit.

    Plain arithmetic on numbers is evaluated exactly. None if the text is anything else.
    """
    text = _FRACTION.sub(_plain_fraction, plain(text))
    if not text or len(text) > _MAX_CHARACTERS:
        return None
    match = _QUANTITY.fullmatch(text)
    if match is None:
        value = _arithmetic(text)
        return None if value is None else Quantity(value, "")
    value = Fraction(re.sub(r"[, ]", "", match["number"]))
    if match["below"] is not None:
        below = Fraction(match["below"].replace(",", ""))
        if below == 0:
            return None
        value /= below
    if match["bottom"] is not None:
        if int(match["bottom"]) == 0:
            return None
        value += Fraction(int(match["top"]), int(match["bottom"]))
    if "-" in match["sign"] + match["sign2"]:
        value = -value
    unit = match["percent"] or _unit(match["unit"] or "")
    return Quantity(value, unit)


def bare_number(text: str) -> bool:
    """Say whether the text is one number with at most a short unit, and no equation."""
    return "=" not in text and len(text.split(maxsplit=4)) <= 4 and quantity(text) is not None


def numbers_in(text: str) -> list[str]:
    """Find the numbers of a sentence, in order, as they are written."""
    return [found.strip() for found in _NUMBER_IN_TEXT.findall(plain(text))]


def same_value(gold: str, candidate: str) -> bool | None:
    """Compare two values; None if it takes algebra to tell.

    Units count only if both sides have one. 50 % equals 50 and 0.5.
    """
    gold_plain, candidate_plain = _tight(plain(gold)), _tight(plain(candidate))
    if gold_plain and gold_plain == candidate_plain:
        return True
    gold_quantity, candidate_quantity = quantity(gold), quantity(candidate)
    if gold_quantity is not None and candidate_quantity is not None:
        return _same_quantity(gold_quantity, candidate_quantity)
    if _same_decimal(gold_plain, candidate_quantity):
        return True
    if gold_quantity is not None and not _algebraic(candidate_plain):
        return _same_decimal(candidate_plain, gold_quantity)
    if _bare(gold_plain) and _words(gold_plain) and not _algebraic(candidate_plain):
        return _bare(gold_plain) == _bare(candidate_plain)
    return None


def _same_decimal(text: str, other: Quantity | None) -> bool:
    """Read 1,22 as 1.22, but only if the other side is that number: it may also be a pair."""
    if other is None or not _DECIMAL_COMMA.fullmatch(text):
        return False
    return same_number(Fraction(text.replace(",", ".")), other.value)


def _same_quantity(gold: Quantity, candidate: Quantity) -> bool:
    if "%" in (gold.unit, candidate.unit) and gold.unit != candidate.unit:
        percent, other = (gold, candidate) if gold.unit == "%" else (candidate, gold)
        return any(
            same_number(value, other.value) for value in (percent.value, percent.value / 100)
        )
    if gold.unit and candidate.unit and gold.unit != candidate.unit:
        return False
    return same_number(gold.value, candidate.value)


def same_number(gold: Fraction, candidate: Fraction) -> bool:
    """Integers must be equal; others within the relative tolerance."""
    if gold == candidate:
        return True
    if gold.denominator == 1 and candidate.denominator == 1:
        return False
    return abs(gold - candidate) <= Fraction(RELATIVE_TOLERANCE) * max(abs(gold), abs(candidate))


def _without_dots(match: re.Match[str]) -> str:
    return match[0].replace(".", "").replace(",", ".")


def _plain_fraction(match: re.Match[str]) -> str:
    top = (match[1] or match[2]).replace(",", "")
    bottom = (match[3] or match[4]).replace(",", "")
    return f" {top}/{bottom} "


def _unit(text: str) -> str:
    text = _bare(text.casefold())
    if text in _CURRENCY:
        return ""
    return text[:-1] if len(text) > 3 and text.endswith("s") else text


def _arithmetic(text: str) -> Fraction | None:
    left, _, right = text.rpartition("=")
    if not re.fullmatch(r"[-+*/().\d\s=<>]*|[A-Za-z]\w{0,2}\s*", left):
        return None
    if re.fullmatch(r"\s*[-+]?[\d.]+\s*", left):  # 27 = 26 states two values
        return None
    text = right.replace("\\times", "*").replace("\\cdot", "*").replace("×", "*").strip()
    if not re.fullmatch(r"[-+*/().\d\s]+", text):
        return None
    try:
        return _evaluate(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
        return None


def _evaluate(node: ast.expr) -> Fraction:
    match node:
        case ast.Constant(value=int() | float() as value):
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError("too large")
            return Fraction(str(value))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_evaluate(operand)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _evaluate(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_evaluate(left), _evaluate(right))
        case _:
            raise ValueError("not arithmetic")


def _algebraic(text: str) -> bool:
    """Say whether only algebra can tell what this is worth; never if its braces do not match."""
    if len(text) > 2000 or text.count("{") != text.count("}"):
        return False
    return bool(re.search(r"\\[a-zA-Z]|[\^√π∞_∪∩≤≥<>{}|]|\b(?:sqrt|pi|log|ln|sin|cos)\b", text))


def _words(text: str) -> bool:
    return not re.search(r"[\\^√π∞_{}\d=+*<>|]", text)


def _tight(text: str) -> str:
    text = re.sub(r"\s*([^\w\s])\s*", r"\1", text)
    return text.casefold() if _words(text) else text


def _bare(text: str) -> str:
    return re.sub(r"[^\w\s%°/]|_", "", text).strip()
