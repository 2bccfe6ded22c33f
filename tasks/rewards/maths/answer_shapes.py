r"""What a written answer is: a value, words, or a tuple, interval, set, union, equation of parts.

Texts come in LaTeX or as people type them; parts stay texts, to be read by `latex_terms`.
"""

# ruff: noqa: RUF001 - signs that people type
import re
import unicodedata
from dataclasses import dataclass

_SIGNS = {
    "−": "-",
    "≤": "<=",
    "≥": ">=",
    "∪": "\\cup ",
    "∈": "\\in ",
    "∞": "\\infty ",
    "±": "\\pm ",
    "°": "",
    "。": "",
}
_REWRITES = tuple(
    (re.compile(pattern), by)
    for pattern, by in (
        (r"\\[dtc]frac(?![A-Za-z])", r"\\frac"),
        (r"\\(?:left|right|displaystyle|limits|big|Big|bigg|Bigg)(?![A-Za-z])", ""),
        (r"(?<=\d),\\!\s*|\\!\s*|\{,\}", ""),
        (r"\\[,;: ]|\\q?quad(?![A-Za-z])|~|\$|\\[()\[\]]", " "),
        (r"\^\s*(?:\{\s*\\circ\s*\}|\\circ)|\\degree(?![A-Za-z])", ""),
        (r"\\lt(?![A-Za-z])", "<"),
        (r"\\gt(?![A-Za-z])", ">"),
        (r"\\l(?:e|eq|eqslant)(?![A-Za-z])", "<="),
        (r"\\g(?:e|eq|eqslant)(?![A-Za-z])", ">="),
        (r"\\(?:cdot|times)(?![A-Za-z])", "*"),
        (r"\\text\s*\{\s*,?\s*(?:or|and)\s*\}|(?<=[\s\d)}])(?:or|and)(?=\s)", ","),
    )
)
_TEXT = re.compile(r"\\(?:text(?:bf|it|rm|normal)?|mathrm|mathbf|mbox|operatorname)\s*\{([^{}]*)\}")
_UNIT = re.compile(
    r"(?<=[\d})a-z!%])\s*(?:\\(?:text(?:bf|it|rm|normal)?|mathrm|mbox)\s*\{[^{}]*\}(?:\s*\^\s*\{?\d\}?)?\s?)+$"
)
_WRITTEN_UNIT = re.compile(r"[\d})]\s*\\(?:text|mathrm|mbox)\s*\{([^{}]*)\}(?:\^\{?\d\}?)?$")
_PLAIN_UNIT = re.compile(
    r"([-+]?[\d.,]+(?:\s*/\s*\d+)?)"
    r"(?:\s*(?:km|cm|mm|kg|mg|ml|ft|hr|min)\b|\s+(?!pi\b|sqrt|log|sin|cos|tan|exp)[A-Za-z]{3,})"
    r"[A-Za-z\s./]*(?:\^?[23])?"
)
_THOUSANDS = re.compile(r"-?\d{1,3}(?:(?:,\d{3})+|(?: \d{3})+)(?:\.\d+)?")
_NAME = re.compile(
    r"\(?(?:\\angle)?\\?[A-Za-z]+(?:_(?:\{[^{}]*\}|\w)|\^\{-1\})?(?:[(,][\w\\]+)*\)?"
)
_MATRIX = re.compile(r"\\begin\{[pbv]?matrix\}(.*)\\end\{[pbv]?matrix\}", re.DOTALL)
_RELATION = re.compile(r"(<=|>=|<|>)")


@dataclass(frozen=True, slots=True)
class Shape:
    """A kind (value, words, list, set, union, ratio, equation ..., or brackets) and its parts."""

    kind: str
    parts: tuple[str, ...]
    name: str = ""
    """Of `x = 5`: x."""


def normalised(text: str) -> str:
    """Strip what does not change the meaning; letters keep their case."""
    text = unicodedata.normalize("NFKC", text).replace("\\%", "%").replace("\\$", "")
    for sign, by in _SIGNS.items():
        text = text.replace(sign, by)
    # In a matrix it ends a row, elsewhere a backslash was escaped twice.
    text = text.replace("\\\\", "\\cr " if "matrix}" in text else "\\")
    for pattern, by in _REWRITES:
        text = pattern.sub(by, text)
    return _UNIT.sub("", re.sub(r"\s+", " ", text).strip(" ;").rstrip(" .;")).rstrip(" .")


def unit(text: str) -> str:
    r"""Return the unit after a number as it is written in \text, without a plural s; '' if none."""
    found = _WRITTEN_UNIT.search(text.strip(" $."))
    return found[1].strip(" .").casefold().removesuffix("s") if found else ""


def shape(text: str) -> Shape:
    """Tell what a normalised text is, by its outermost signs."""
    words = _TEXT.sub(r"\1", text)
    whole = _TEXT.fullmatch(text) is not None and re.search(r"[^\W\d_]", words) is not None
    if whole or (
        not re.search(r"[\d\\^=+*/<>|]", words)
        and (words != text or re.search(r"[^\W\d_]{3}|^\W*[A-Z]\W*$", words))
    ):
        return Shape("words", (" ".join(re.sub(r"[^\w\s]", " ", words).casefold().split()),))
    text = _TEXT.sub(_without_words, text).strip(" ,")
    unit = _PLAIN_UNIT.fullmatch(text)
    text = unit[1] if unit else text
    if _THOUSANDS.fullmatch(text):
        return Shape("value", (re.sub("[, ]", "", text),))
    matrix = _MATRIX.fullmatch(text)
    if matrix:
        rows = [row for row in matrix[1].split("\\cr") if row.strip()]
        return Shape(f"matrix {len(rows)}", tuple(c.strip() for r in rows for c in r.split("&")))
    member = split(text, "\\in")
    if len(member) == 2 and _is_name(member[0]):
        return shape(member[1])
    pieces = [sign for piece in split(text, ",") for sign in _both_signs(piece)]
    for kind, parts in (
        ("list", pieces),
        ("ratio", split(text, ":")),
        ("union", split(text, "\\cup")),
    ):
        if len(parts) > 1:
            return Shape(kind, tuple(parts))
    return _single(text)


def _without_words(match: re.Match[str]) -> str:
    return match[1] if re.search(r"\d", match[1]) else " "


def sides(text: str) -> list[str]:
    """Cut a normalised equation at its outermost equality signs."""
    return [text] if _RELATION.search(text) else split(text, "=")


def _is_name(text: str) -> bool:
    return _NAME.fullmatch(text.replace(" ", "")) is not None


def _both_signs(text: str) -> list[str]:
    if "\\pm" not in text:
        return [text]
    return [text.replace("\\pm", sign) for sign in "+-"]


def _single(text: str) -> Shape:
    relations = _RELATION.split(text)
    if len(relations) > 1:
        return _inequality([part.strip() for part in relations])
    equal = sides(text)
    if len(equal) == 1:
        return _bracketed(text)
    if not _is_name(equal[0]):
        return Shape("equation", tuple(equal))
    inner = shape(equal[-1])
    return Shape(inner.kind, inner.parts, equal[0].replace(" ", ""))


def _bracketed(text: str) -> Shape:
    braces = re.fullmatch(r"\\\{(.*)\\\}|\{(.*)\}", text)
    if braces and braces[1] is not None:
        return Shape("set", tuple(filter(None, split(braces[1], ","))))
    if braces and "," in braces[2]:
        return Shape("set", tuple(split(braces[2], ",")))
    if text[:1] in "([" and text[-1:] in ")]" and len(text) > 1:
        inner = split(text[1:-1], ",")
        if len(inner) > 1:
            return Shape(text[0] + text[-1], tuple(inner))
    return Shape("value", (text,))


def _inequality(parts: list[str]) -> Shape:
    """Read a < x <= b, x > a and a > x as intervals."""
    if len(parts) == 5 and _is_name(parts[2]) and parts[1][0] == parts[3][0]:
        left, first, _, second, right = parts
        if first[0] == ">":
            left, first, second, right = right, second, first, left
    elif len(parts) == 3 and (_is_name(parts[0]) or _is_name(parts[2])):
        left, sign, right = parts
        below = (sign[0] == "<") == _is_name(left)
        bound = right if _is_name(left) else left
        left, first = ("-\\infty", "<") if below else (bound, sign)
        second, right = (sign, bound) if below else ("<", "\\infty")
    else:
        return Shape("inequality", tuple(parts))
    opening, closing = ("[" if "=" in first else "("), ("]" if "=" in second else ")")
    return Shape(opening + closing, (left, right))


def split(text: str, separator: str) -> list[str]:
    """Cut at a separator outside all brackets; half-open intervals close with either bracket."""
    parts, depth, start, place = list[str](), 0, 0, 0
    while place < len(text):
        if text[place] in "([{":
            depth += 1
        elif text[place] in ")]}":
            depth -= 1
        elif depth == 0 and text.startswith(separator, place):
            after = text[place + len(separator) : place + len(separator) + 1]
            if not (separator[0] == "\\" and after.isalpha()):
                parts.append(text[start:place].strip())
                start = place = place + len(separator)
                continue
        place += 1
    return [*parts, text[start:].strip()]
