"""Code items: one-line functions with unit tests."""

import random
from collections.abc import Callable

from data_schemas.rows import Domain
from tasks.curation.marketplace.items import MarketItem

_Values = list[int]
_PAIRS: tuple[tuple[str, str, Callable[[int, int], int]], ...] = (
    ("{a} plus {b}", "{a} + {b}", lambda a, b: a + b),
    ("{a} minus {b}", "{a} - {b}", lambda a, b: a - b),
    ("{a} times {b}", "{a} * {b}", lambda a, b: a * b),
    ("the larger of {a} and {b}", "max({a}, {b})", max),
    ("the smaller of {a} and {b}", "min({a}, {b})", min),
)
_LISTS: tuple[tuple[str, str, Callable[[_Values], int]], ...] = (
    ("the sum of {x}", "sum({x})", sum),
    ("the largest of {x}", "max({x})", max),
    ("the smallest of {x}", "min({x})", min),
    ("the length of {x}", "len({x})", len),
    ("the first of {x}", "{x}[0]", lambda x: x[0]),
    ("the last of {x}", "{x}[-1]", lambda x: x[-1]),
)
_AFTER: tuple[tuple[str, str, Callable[[int, int], int]], ...] = (
    ("plus {k}", "+ {k}", lambda value, k: value + k),
    ("minus {k}", "- {k}", lambda value, k: value - k),
    ("times {k}", "* {k}", lambda value, k: value * k),
)
_FUNCTIONS = ("f", "g", "total", "price", "cost", "score")
_PAIR_NAMES = (("a", "b"), ("p", "q"), ("m", "n"), ("u", "v"))
_LIST_NAMES = ("x", "s", "r", "w", "z")


def draw_code(rng: random.Random, level: int) -> MarketItem:
    """Draw a one-line function: an operation, then a chain of two, then list functions."""
    name = rng.choice(_FUNCTIONS)
    if level <= 2:
        return _pair_function(rng, name, level)
    return _list_function(rng, name, level)


def _pair_function(rng: random.Random, name: str, level: int) -> MarketItem:
    first, second = rng.choice(_PAIR_NAMES)
    (phrase, code, compute), wrong = _pick_two(rng, _PAIRS)
    names = {"a": first, "b": second}
    phrase, code, wrong_code = (text.format(**names) for text in (phrase, code, wrong[1]))
    after, tail, apply = _AFTER[rng.randrange(3)]
    k = rng.randint(2, 9)
    if level == 1:
        after, tail = "", ""
    phrase, code = _chain(phrase, after.format(k=k)), _wrap(code, tail.format(k=k))
    wrong_code = _wrap(wrong_code, tail.format(k=k))
    cases = [tuple(rng.sample(range(1, 30), 2)) for _ in range(3)]
    tests = []
    for left, right in cases:
        value = compute(left, right)
        expected = apply(value, k) if level > 1 else value
        tests.append(f"assert {name}({left}, {right}) == {expected}")
    return _code_item(f"{name}({first}, {second})", phrase, (code, wrong_code), tests, level)


def _list_function(rng: random.Random, name: str, level: int) -> MarketItem:
    variable = rng.choice(_LIST_NAMES)
    (phrase, code, compute), wrong = _pick_two(rng, _LISTS)
    phrase, code, wrong_code = (text.format(x=variable) for text in (phrase, code, wrong[1]))
    k = rng.randint(2, 9)
    cases = [[rng.randint(1, 20) for _ in range(rng.randint(3, 5))] for _ in range(3)]
    if level == 3:
        after, tail, apply = _AFTER[rng.randrange(3)]
        phrase, code = _chain(phrase, after.format(k=k)), _wrap(code, tail.format(k=k))
        wrong_code = _wrap(wrong_code, tail.format(k=k))
        expected = [apply(compute(case), k) for case in cases]
    elif level == 4:
        other_phrase, other_code, other = rng.choice(
            [entry for entry in _LISTS if entry[2] is not compute]
        )
        phrase = f"{phrase} minus {other_phrase.format(x=variable)}"
        code = f"{code} - {other_code.format(x=variable)}"
        wrong_code = f"{wrong_code} - {other_code.format(x=variable)}"
        expected = [compute(case) - other(case) for case in cases]
    else:
        word, sign = rng.choice((("over", ">"), ("under", "<")))
        phrase = f"how many of {variable} are {word} {k}"
        code = f"sum(i {sign} {k} for i in {variable})"
        wrong_code = f"sum(i for i in {variable} if i {sign} {k})"
        expected = [sum(i > k if sign == ">" else i < k for i in case) for case in cases]
    tests = [
        f"assert {name}({case}) == {value}" for case, value in zip(cases, expected, strict=True)
    ]
    return _code_item(f"{name}({variable})", phrase, (code, wrong_code), tests, level)


def _code_item(
    signature: str, phrase: str, right_wrong: tuple[str, str], tests: list[str], level: int
) -> MarketItem:
    right, wrong = right_wrong
    return MarketItem(
        domain=Domain.CODE,
        language="en",
        level=level,
        prompt=f"Write {signature}: {phrase}.",
        verifier="code_tests",
        answer={"mode": "asserts", "tests": tests, "setup": ""},
        steps=right,
        shortcut="ok",
        solution=f"def {signature}:\n    return {right}",
        blunder_steps=wrong,
        blunder=f"def {signature}:\n    return {wrong}",
    )


def _pick_two(rng: random.Random, entries: tuple) -> tuple:
    return tuple(rng.sample(entries, 2))


def _chain(phrase: str, after: str) -> str:
    return f"{phrase}, {after}" if after else phrase


def _wrap(code: str, tail: str) -> str:
    if not tail:
        return code
    simple = code.endswith((")", "]"))
    return f"{code if simple else f'({code})'} {tail}"
