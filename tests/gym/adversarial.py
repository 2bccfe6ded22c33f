"""Long texts made to be slow to read: what a verifier's own source looks for, almost, many times.

A unit is a literal of the source, or a text that one of its regular expressions matches, whole or
without its end. A text repeats units, stretches what stands after one, or opens without closing.
"""

import ast
import random
import re
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

LENGTH = 100_000
FILLERS = (" ", "\n", "a", "1", "(", "{", "\\", "-", ",", ".", "\t", "é", "\u0e01", "中")
COMMON = (
    *("\\boxed{", "}", "$", "\\(", "\\frac{1}{", "\\left(", "**", "```", "```python\n", "~~~\n"),
    *(
        "<tool_call>",
        "</tool_call>",
        "<think>",
        "{",
        "[",
        "(",
        '{"a":',
        '["',
        "f(a=",
        "def f(a):\n",
    ),
    *("\u0301", "\u200b", "\u2044", "\uff11", "\u00b2", "\ud800", "\u1100", "\ufdfa", "\u0130"),
    *("> ", "- ", "1. ", "# ", "| ", "&amp;", "[a](", "[a]: b\n", "<a ", "![", "_", "__a", "\r"),
)
_MOST = 3
"""Times an open-ended repetition of a pattern is drawn, beyond its least."""


def literals(sources: Sequence[Path]) -> list[str]:
    """Return the texts that stand in some files, short ones once each; docstrings are left out."""
    found: dict[str, None] = {}
    for path in sources:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                for part in re.split(r"[\n|]", node.value) if "\n\n" not in node.value else ():
                    if 0 < len(part) <= 40:
                        found.setdefault(part)
    return list(found)


def patterns(modules: Sequence[str]) -> list[re.Pattern[str]]:
    """Return the compiled regular expressions of some modules, also those inside of containers."""
    found: dict[re.Pattern[str], None] = {}
    for name in modules:
        for value in vars(import_module(name)).values():
            for entry in _inside(value):
                if isinstance(entry, re.Pattern) and isinstance(entry.pattern, str):
                    found.setdefault(entry)
    return list(found)


def near_matches(pattern: re.Pattern[str], draw: random.Random) -> Iterator[str]:
    """Draw a text that a pattern matches, whole and cut off at its end."""
    parse = import_module("re._parser").parse  # the module has no public parser
    text = _drawn(parse(pattern.pattern, pattern.flags), draw)
    yield text
    yield text[: len(text) // 2]
    yield text[:-1]


def long_text(units: Sequence[str], draw: random.Random, length: int = LENGTH) -> str:
    """Make one text of `length` characters out of some units."""
    first, second = draw.choice(units) or "a", draw.choice(units) or "a"
    filler = draw.choice(FILLERS)
    half = length // 2
    match draw.randrange(7):
        case 0:
            text = _many(first, length)
        case 1:
            text = first + _many(filler, length)
        case 2:
            text = _many(first + filler, length)
        case 3:
            text = _many(first, half) + _many(second, half)
        case 4:
            text = _many(filler, length - len(first)) + first
        case 5:
            text = second + _many(first, length)
        case _:
            some = [draw.choice(units) + draw.choice(("", filler)) for _ in range(8)]
            text = _many("".join(some) or "a", length)
    return text[:length]


def _many(unit: str, length: int) -> str:
    return unit * (length // len(unit) + 1)


def _inside(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple | set | frozenset):
        for entry in value:
            yield from _inside(entry)
    else:
        yield value


def _drawn(tokens: Any, draw: random.Random) -> str:
    return "".join(_one(str(name), content, draw) for name, content in tokens)


def _one(name: str, content: Any, draw: random.Random) -> str:
    """Draw a text for one node of a parsed pattern; what stands around a match is left out."""
    if name == "BRANCH":
        return _drawn(draw.choice(content[1]), draw)
    if name in ("SUBPATTERN", "ATOMIC_GROUP"):
        return _drawn(content[-1] if name == "SUBPATTERN" else content, draw)
    if name.endswith("_REPEAT"):
        low, high, inner = content
        times = draw.randint(low, min(int(high), low + _MOST))
        return "".join(_drawn(inner, draw) for _ in range(times))
    if name == "IN":
        return _member(content, draw)
    simple = {"NOT_LITERAL": "\u00e9", "ANY": "\\", "LITERAL": ""}
    return chr(content) if name == "LITERAL" else simple.get(name, "")


def _member(content: Any, draw: random.Random) -> str:
    if str(content[0][0]) == "NEGATE":
        return draw.choice("a1 \u00e9")
    name, value = draw.choice(content)
    match str(name):
        case "LITERAL":
            return chr(value)
        case "RANGE":
            return chr(draw.randint(*value))
        case _:
            kinds = {"DIGIT": "7", "SPACE": " \t", "WORD": "aB_", "NOT_DIGIT": "a", "NOT_WORD": "-"}
            return draw.choice(kinds.get(str(value).removeprefix("CATEGORY_"), "a"))
