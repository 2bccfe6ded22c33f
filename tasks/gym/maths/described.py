r"""Sets of points that are described: `(x, y) with each in \{1, -1\} and an even number of -1's`.

Also `(\pm 1, \pm 1, \pm 1)` with a number of minus signs. The points are written out, so that they
are compared with a list of them; what is said in other words stays unread.
"""

import re
from collections.abc import Callable, Collection, Sequence
from itertools import product

MAX_POINTS = 64
"""Most points that are written out."""
_NUMBER_OF = (
    r"(?:an?\s+)?(?P<how>even|odd|exactly\s+\w+|at\s+least\s+\w+|at\s+most\s+\w+|\w+)\s+"
    r"(?:number\s+of\s+)?"
)
_NAMES = r"[a-z](?:_\{?\d\}?)?(?:\s*,\s*[a-z](?:_\{?\d\}?)?)*"
_MEMBER = r"-?\d+"
# "(x, y) with each x, y \in \{1, -1\} and an even number of -1's"
_EACH = re.compile(
    rf"\((?P<names>{_NAMES})\)\s*,?\s*(?:with|where)\s+(?:each\s+(?:of\s+)?|all\s+(?:of\s+)?|both\s+)?"
    rf"(?:(?P<about>{_NAMES})\s*)?(?:are\s+|is\s+)?(?:\\in|in)\s*\\?\{{(?P<members>{_MEMBER}(?:\s*,\s*{_MEMBER})*)\\?\}}"
    rf"(?:\s*,?\s*(?:and|with)\s+{_NUMBER_OF}(?P<counted>{_MEMBER})(?:'?s)?)?"
)
# "(\pm 1, \pm 1) with an even number of minus signs"
_SIGNED = re.compile(
    r"\((?P<values>\\pm\s*\d+(?:\s*,\s*\\pm\s*\d+)+)\)\s*,?\s*(?:with|where)\s+(?:there\s+(?:is|are)\s+)?"
    rf"{_NUMBER_OF}(?:minus|negative)(?:\s+signs?|s)"
)
_TEXT = re.compile(r"\\(?:text|mathrm)\s*\{([^{}]*)\}")
_COUNTS = {"no": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}


def points_of(text: str) -> str:
    """Return the points that a description has, `(1,1), (-1,-1)`; '' for any other text."""
    if "with" not in text and "where" not in text:
        return ""
    plain = " ".join(_TEXT.sub(r" \1 ", text).replace(", ,", ",").split()).strip(" .")
    each, signed = _EACH.fullmatch(plain), _SIGNED.fullmatch(plain)
    if each:
        names = each["names"].replace(" ", "")
        about = (each["about"] or names).replace(" ", "")
        members = dict.fromkeys(member.strip() for member in each["members"].split(","))
        choices = [list(members)] * len(names.split(",")) if about == names else []
        counted = {each["counted"]}
        how = each["how"]
    elif signed:
        sizes = [value.replace("\\pm", "").strip() for value in signed["values"].split(",")]
        choices = [[size, f"-{size}"] for size in sizes]
        counted = {f"-{size}" for size in sizes}
        how = signed["how"]
    else:
        return ""
    holds = _counter(how)
    return "" if holds is None or not choices else _written(choices, counted, holds)


def _counter(how: str | None) -> Callable[[int], bool] | None:
    """Return what a number must be, `even` or `at most two`; None for words that are not read."""
    match (how or "at least no").split():
        case ["even" | "odd" as parity]:
            return lambda number: number % 2 == (parity == "odd")
        case [*words, count] if count.isdigit() or count in _COUNTS:
            limit = int(count) if count.isdigit() else _COUNTS[count]
            tests: dict[str, Callable[[int], bool]] = {
                "at least": lambda number: number >= limit,
                "at most": lambda number: number <= limit,
                "exactly": lambda number: number == limit,
            }
            return tests.get(" ".join(words))
        case _:
            return None


def _written(
    choices: Sequence[Sequence[str]], counted: Collection[str | None], holds: Callable[[int], bool]
) -> str:
    points = 1
    for members in choices:
        points *= len(members)
    if points > MAX_POINTS:
        return ""
    return ", ".join(
        f"({','.join(point)})"
        for point in product(*choices)
        if holds(sum(member in counted for member in point))
    )
