r"""Vectors as sums of unit vectors: `2\mathbf{i} - \mathbf{j}` is (2, -1)."""

import re
from fractions import Fraction

from tasks.gym.maths.latex_terms import LatexTerm, parse_term

_STYLE = r"\\(?:mathbf|boldsymbol|bm|vec|hat|overrightarrow)\s*"
_UNIT = r"\\?(?P<{}>[ijk])(?:math)?(?![A-Za-z])"
# "\mathbf{i}", "\hat{\mathbf{i}}", "\vec i", "\hat\imath"
_WRITTEN = re.compile(
    rf"{_STYLE}(?:\{{\s*{_STYLE}\{{\s*{_UNIT.format('inner')}\s*\}}\s*\}}|"
    rf"\{{\s*(?:{_STYLE})?{_UNIT.format('braced')}\s*\}}|(?:{_STYLE})?{_UNIT.format('bare')})"
)
# "2i - j + 3k": with an i and a j it is no complex number.
_PLAIN = re.compile(
    r"(?=[^j]*j)(?=[^i]*i)"
    r"(?:\s*[-+]?\s*(?:\d[\d./]*|\\frac\{\d+\}\{\d+\}|\\sqrt\{\d+\})?\s*\*?\s*[ijk](?![A-Za-z]))+"
    r"\s*"
)
_NAMES = {"i": "\\iota", "j": "\\upsilon", "k": "\\kappa"}
"""Letters that stand for the unit vectors in a term; an answer that has them itself is left."""


def plain_vectors(text: str) -> str:
    r"""Write the unit vectors of a sum in one style, `\mathbf i`; a single one may be anything."""
    units = list(_WRITTEN.finditer(text)) if "\\" in text else []
    return _WRITTEN.sub(_marked, text) if len({_letter(match) for match in units}) > 1 else text


def components(text: str) -> tuple[LatexTerm, ...] | None:
    """Return two or three components; None for what is no sum of at least two unit vectors."""
    if any(name in text for name in _NAMES.values()):
        return None
    pattern = r"[ijk]" if _PLAIN.fullmatch(text) else r"\\mathbf ([ijk])"
    text = re.sub(pattern, lambda match: f"{_NAMES[match[0][-1]]} ", text)
    names = [name for name in _NAMES.values() if name in text]
    term = parse_term(text) if len(names) > 1 else None
    if term is None or _degree(term) != 1:
        return None
    axes = list(_NAMES.values())[: 3 if _NAMES["k"] in names else 2]
    return tuple(_at(term, axis) for axis in axes)


def _letter(match: re.Match[str]) -> str:
    return match["inner"] or match["braced"] or match["bare"]


def _marked(match: re.Match[str]) -> str:
    return f"\\mathbf {_letter(match)} "


def _degree(term: LatexTerm) -> int | None:
    """Return 1 for a sum of multiples of unit vectors, 0 without any, None for anything else."""
    if term.kind in ("num", "sym"):
        return int(term.name in _NAMES.values())
    degrees = [_degree(part) for part in term.parts]
    match term.kind:
        case "+" if degrees[0] == degrees[1]:
            return degrees[0]
        case "*" if degrees in ([0, 0], [0, 1], [1, 0]):
            return sum(degree or 0 for degree in degrees)
        case "/" if degrees[1] == 0:
            return degrees[0]
        case _:
            return 0 if set(degrees) == {0} else None


def _at(term: LatexTerm, axis: str) -> LatexTerm:
    """Return the component along one axis: the sum with 1 for its unit vector and 0 for others."""
    if term.kind == "sym" and term.name in _NAMES.values():
        return LatexTerm("num", value=Fraction(term.name == axis))
    return LatexTerm(
        term.kind, tuple(_at(part, axis) for part in term.parts), term.name, term.value
    )
