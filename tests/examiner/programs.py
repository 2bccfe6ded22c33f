"""Classes of programs: a reference solution in varied Markdown, and programs that fail a test.

A falsified program is the reference with its results changed, so that at least one assertion fails
by construction and nothing has to be run to know it.
"""

import ast
import random
import re
from dataclasses import dataclass
from typing import Any

from tests.examiner.case import AnswerClass, Question


@dataclass(frozen=True, slots=True)
class Reference:
    """A program that passes its tests, and what one of the tests expects."""

    source: str
    function: str
    arguments: str = ""
    """Source of the arguments of the last test that compares a call with a literal, as source; ''
    if there is none."""
    expected: Any = None
    constants: tuple[Any, ...] = ()
    """What the tests expect, where all are literals."""


def reference(source: str, function: str, tests: list[str]) -> Reference:
    """Read what the tests expect."""
    found = [expectation(test, function) for test in tests]
    known = [pair for pair in found if pair is not None]
    arguments, expected = known[-1] if known else ("", None)
    constants = tuple(value for _, value in known) if len(known) == len(found) else ()
    return Reference(source.replace("\r\n", "\n"), function, arguments, expected, constants)


def expectation(test: str, function: str) -> tuple[str, Any] | None:
    """Return the arguments and the value of `assert f(...) == literal`; None for other tests."""
    try:
        (statement,) = ast.parse(test.strip()).body
    except (SyntaxError, ValueError):
        return None
    match statement:
        case ast.Assert(
            test=ast.Compare(
                left=ast.Call(func=ast.Name(id=name), args=args, keywords=[]) as call,
                ops=[ast.Eq()],
                comparators=[right],
            )
        ) if name == function and args:
            try:
                value = ast.literal_eval(right)
                [ast.literal_eval(arg) for arg in args]
            except (ValueError, SyntaxError):
                return None
            return ", ".join(ast.unparse(arg) for arg in call.args), value
        case _:
            return None


def plain(question: Question, source: random.Random) -> str:
    label = source.choice(("python", "py", "python3", "Python", "", 'python title="main.py"'))
    return f"```{label}\n{question.facts.source}\n```"


def bare(question: Question, source: random.Random) -> str:
    del source
    return question.facts.source


def described(question: Question, source: random.Random) -> str:
    before = source.choice(
        ("Here is the solution:", "## Solution\n\nWe `return` the result.", "Sure!")
    )
    after = "It takes linear time. Don't forget to test it."
    return f"{before}\n\n```python\n{question.facts.source}\n```\n\n{after}"


def other_fences(question: Question, source: random.Random) -> str:
    mark = source.choice(("~~~", "````", "~~~~"))
    return f"{mark}python\n{question.facts.source}\n{mark}"


def windows(question: Question, source: random.Random) -> str:
    del source
    return f"Here:\n\n```python\n{question.facts.source}\n```\n".replace("\n", "\r\n")


def indented(question: Question, source: random.Random) -> str:
    gap = source.choice(("   ", "  "))
    body = "\n".join(gap + line for line in f"```python\n{question.facts.source}\n```".split("\n"))
    return (
        f"{source.choice(('1.', '1)'))} The function:\n\n{body}"
        if gap == "   "
        else f"- The function:\n\n{body}"
    )


def usage_after(question: Question, source: random.Random) -> str:
    reference: Reference = question.facts
    arguments = f"({reference.arguments})" if reference.arguments else ""
    call = f"print({reference.function}{arguments})"
    title = source.choice(("Example usage:", "### Usage", "You can call it like this:"))
    return f"```python\n{reference.source}\n```\n\n{title}\n\n```python\n{call}\n```"


def output_after(question: Question, source: random.Random) -> str:
    label = source.choice(("text", "", "json", "console", "output", "plaintext"))
    shown = repr(question.facts.expected)
    return f"```python\n{question.facts.source}\n```\n\nOutput:\n\n```{label}\n{shown}\n```"


def shell_before(question: Question, source: random.Random) -> str:
    label = source.choice(("bash", "sh", "shell", "text", "c", "console"))
    check = f"```{label}\npython --version\n```"
    return f"First:\n\n{check}\n\nThen:\n\n```python\n{question.facts.source}\n```"


def draft_before(question: Question, source: random.Random) -> str:
    reference: Reference = question.facts
    draft = f"def {reference.function}(*args):\n    raise NotImplementedError"
    note = source.choice(("A first draft:", "The signature:"))
    return f"{note}\n\n```python\n{draft}\n```\n\nIn full:\n\n```python\n{reference.source}\n```"


def thinking(question: Question, source: random.Random) -> str:
    del source
    reference: Reference = question.facts
    draft = f"```python\ndef {reference.function}(*args):\n    return None\n```"
    return f"<think>\nPerhaps\n{draft}\n</think>\n\n```python\n{reference.source}\n```"


def wrapped(question: Question, source: random.Random) -> str:
    del source
    return _with(question.facts, "return ('wrong', _right(*args, **kwargs))")


def one_test_wrong(question: Question, source: random.Random) -> str | None:
    """Change the result for the arguments of one test."""
    del source
    reference: Reference = question.facts
    changed = _changed(reference.expected)
    if not reference.arguments or changed is None or changed == reference.expected:
        return None
    return _with(
        reference,
        f"if not kwargs and repr(args) == repr(({reference.arguments},)):",
        f"    return {changed!r}",
        "return _right(*args, **kwargs)",
    )


def constant(question: Question, source: random.Random) -> str | None:
    """Return what one test expects, always, where another expects something else."""
    reference: Reference = question.facts
    if not reference.constants:
        return None
    value = source.choice(reference.constants)
    if all(value == other for other in reference.constants):
        return None
    return f"```python\ndef {reference.function}(*args):\n    return {value!r}\n```"


def printed(question: Question, source: random.Random) -> str | None:
    del source
    if question.facts.expected is None:
        return None
    return _with(question.facts, "print(_right(*args, **kwargs))")


def renamed(question: Question, source: random.Random) -> str | None:
    del source
    reference: Reference = question.facts
    name = re.compile(rf"\b{reference.function}\b")
    return f"```python\n{name.sub(f'{reference.function}_v2', reference.source)}\n```"


def ends_early(question: Question, source: random.Random) -> str:
    leave = source.choice(("import sys; sys.exit(0)", "import os; os._exit(0)", "raise SystemExit"))
    return f"```python\n{question.facts.source}\n\n{leave}\n```"


def cut_off(question: Question, source: random.Random) -> str:
    del source
    return f"```python\n{question.facts.source.rstrip()}\n    return (\n```"


def in_words(question: Question, source: random.Random) -> str:
    reference: Reference = question.facts
    forms = (
        f"<think>\n```python\n{reference.source}\n```\n</think>",
        f"Write a function `{reference.function}` that goes through the input once.",
        f"```text\n{reference.function} returns the right result\n```",
    )
    return source.choice(forms)


def _with(reference: Reference, *lines: str) -> str:
    body = "\n".join(f"    {line}" for line in lines)
    name = reference.function
    wrapper = f"_right = {name}\ndef {name}(*args, **kwargs):\n{body}"
    return f"```python\n{reference.source}\n\n{wrapper}\n```"


def _changed(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return f"{value}x"
        case list():
            return [*value, 1]
        case tuple():
            return (*value, 1)
        case _:
            return None


_P = "def f(x): return x"
RIGHT = (
    AnswerClass(
        "fence", True, "a fence with a usual label or none", f"{_P} -> ```py {_P} ```", plain
    ),
    AnswerClass("bare", True, "the program and nothing else", f"{_P} -> {_P}", bare),
    AnswerClass(
        "described",
        True,
        "prose before and after",
        f"{_P} -> Sure! ```{_P}``` It takes linear time.",
        described,
    ),
    AnswerClass(
        "other_fences",
        True,
        "tildes, or more than three backticks",
        f"{_P} -> ~~~python {_P} ~~~",
        other_fences,
    ),
    AnswerClass("windows", True, "CRLF line ends", f"{_P} -> ```python\\r\\n{_P}", windows),
    AnswerClass("indented", True, "a fence within a list item", f"{_P} -> 1. ```{_P}```", indented),
    AnswerClass(
        "usage_after",
        True,
        "a block that only calls the function, after it",
        f"{_P} -> ```{_P}``` ```print(f(1))```",
        usage_after,
    ),
    AnswerClass(
        "output_after",
        True,
        "a block of output, after it",
        f"{_P} -> ```{_P}``` ```text 1```",
        output_after,
    ),
    AnswerClass(
        "shell_before",
        True,
        "a block of another language, before it",
        f"{_P} -> ```bash python``` ```{_P}```",
        shell_before,
    ),
    AnswerClass(
        "draft_before",
        True,
        "an unfinished version before the full one",
        f"{_P} -> ```def f(*args): raise``` ```{_P}```",
        draft_before,
    ),
    AnswerClass(
        "thinking",
        True,
        "another program within the thinking",
        f"{_P} -> <think>```def f(): ...```</think> ```{_P}```",
        thinking,
    ),
)
WRONG = (
    AnswerClass(
        "wrapped", False, "every result within a tuple", "f(1) = 1 -> ('wrong', 1)", wrapped
    ),
    AnswerClass(
        "one_test_wrong",
        False,
        "another result for the arguments of one test",
        "f(1) = 1 -> 2",
        one_test_wrong,
    ),
    AnswerClass(
        "constant",
        False,
        "what one test expects, for all of them",
        "-> def f(*args): return 1",
        constant,
    ),
    AnswerClass("printed", False, "the result printed, not returned", "-> print(1)", printed),
    AnswerClass("renamed", False, "a function of another name", "f -> f_v2", renamed),
    AnswerClass(
        "ends_early",
        False,
        "the process ended with status 0 before any test",
        "-> sys.exit(0)",
        ends_early,
    ),
    AnswerClass("cut_off", False, "a program that does not compile", "-> return (", cut_off),
    AnswerClass(
        "in_words",
        False,
        "no program, or only within the thinking",
        "-> Write a function `f`.",
        in_words,
    ),
)
