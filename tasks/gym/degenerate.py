"""Texts that do not do any task: what they earn is a reward that is free.

Constants, echoes and spans of the prompt, its numbers added or multiplied, a frame around the name
of its item, its first option, the option that is most often right, empty calls. The best of them on
a family of problems is that family's echo score: a model that earns no more has learned nothing
that can be told from such a text. A new verifier names its own degenerate texts in `OF_VERIFIER`.
"""

# ruff: noqa: RUF001 - signs that people type
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TypeVar, cast

from data_schemas.reports import EchoScore
from data_schemas.rows import Problem
from tasks.algorithms.tool_reward import ToolCall
from tasks.errors import SettingsError
from tasks.gym import table
from tasks.gym.protocol import verifiers_of
from tasks.gym.tools.forms import FORMS
from tasks.plugins import is_reference, module_of

MAX_PROBLEMS = 20
"""Problems of a family that the texts are scored on, evenly spread."""
FIRST_SHARE = 3
"""All texts are scored on every so many of these problems, the best ones on the others too."""
MOST_TEXTS = 40
"""Texts that are scored on all of them: those that earn most on the first ones."""
PROGRAMS = "code_tests"
CHOICE = "choice"
Text = Callable[[Problem], str]
Member = TypeVar("Member")

# "1,299.50", "-3"; of "3-5" the 5
_NUMBER = re.compile(r"(?<![\d.])(?:(?<!\d)-)?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?")
# What a request is about: "...", a name in capitals, what follows "for".
_QUOTED = re.compile(r"[\"“”«'‘「『]([^\"“”»'’」』\n]{2,80})[\"“”»'’」』]")
_CAPITALS = re.compile(r"(?<![.!?:]\s)(?<!^)(?:[A-Z][\w-]*\s?){1,6}", re.MULTILINE)
_AFTER_FOR = re.compile(
    r"(?:\b(?:for|about|of|untuk|tentang|bagi|cho|về|para|sobre|ng|sa)\s|สำหรับ|เกี่ยวกับ|关于|關於|为|為)"
    r"(?:(?:an?|the|um|uma|seu|ang|mga)\s)?([^.,:;!?\n。，：]{2,60})"
)
_FORMULA = re.compile(r"\$+([^$]+)\$+|\\[\[(](.+?)\\[\])]", re.DOTALL)
_OPTION = re.compile(r"(?:^|\n)\s*\(?([A-J])[).:]", re.MULTILINE)
_NAME = re.compile(r"\b(?:def |function |name\W{1,4})(\w+)|\b(\w+)\(\w")
"""`def f`, `"name": "f"`, `f(a, b)`."""

CONSTANTS: tuple[str, ...] = (
    *(str(number) for number in range(-2, 41)), "48", "50", "60", "64", "72", "80", "90", "96",
    "100",
    "120", "144", "180", "200", "240", "256", "300", "360", "400", "500", "600", "720", "1000",
    "2024",
    "0.5", "1.5", "2.5", "1/2", "1/3", "1/4", "2/3", "3/4", r"\frac{1}{2}", r"\sqrt{2}", r"\pi",
    "x",
    r"\infty", r"\emptyset", "A", "B", "C", "D", "E", "(A)", "yes", "no", "Yes.", "No.", "true",
    "false",
    "True", "None", "unknown", "ok", "I don't know.", "none of the above", "all of the above",
    "Shoes",
    "positive", "negative", "neutral", "ya", "tidak", "是", "否", "ใช่", "ไม่ใช่", "có", "không",
    "sim", "não",
    "[]", "{}", "()", "null", '""', "<tool_call>\n</tool_call>", "<tool_call>[]</tool_call>",
    '<tool_call>\n{"name": "", "parameters": {}}\n</tool_call>', "```python\npass\n```", "...",
    "-", "!",
    "I cannot help with that.", "I'm sorry, but I can't do that.", "Thank you.", "Buy now!",
    "Hello.",

    "new cheap good nice best great big small fast light strong soft warm cool fresh clean smart "
    "safe easy free super top hot fine sale",
    "wow, a new cheap red shoe for you and all your friends. buy now!",
    "The quick brown fox jumps over the lazy dog.",
)  # fmt: skip
"""The same text for every problem."""
BOXED = tuple(str(number) for number in (*range(11), 12, 15, 16, 18, 20, 24, 25, 30, 36, 60, 100))
PAIRS = (
    ("0", "1"),
    ("1", "2"),
    ("2", "3"),
    ("1", "0"),
    ("2", "1"),
    ("3", "4"),
    ("5", "6"),
    ("9", "10"),
)


def _prompt(problem: Problem) -> str:
    return problem.messages[-1].content


def _sentences(text: str) -> list[str]:
    return [part for part in re.split(r"(?<=[.!?。])\s*|\n+", text) if part.strip()] or [text]


def _numbers(problem: Problem) -> list[str]:
    return [one.replace(",", "") for one in _NUMBER.findall(_prompt(problem))] or ["0"]


def _calculated(function: Callable[[list[Fraction]], Fraction]) -> Text:
    """Return the text that is a result of the numbers of a prompt; 0 where there is none."""

    def text(problem: Problem) -> str:
        try:
            result = function([Fraction(number[:30]) for number in _numbers(problem)[:20]])
        except (ZeroDivisionError, IndexError):
            return "0"
        return str(result) if result.denominator == 1 else f"{float(result):.6g}"

    return text


def _item(problem: Problem) -> str:
    """Return what a request seems to be about: a quoted or capitalised name, what follows "for"."""
    prompt = _prompt(problem)
    for pattern in (_QUOTED, _AFTER_FOR, _CAPITALS):
        spans = [match[match.lastindex or 0].strip() for match in pattern.finditer(prompt)]
        if any(spans):
            return max(spans, key=len)
    return _words(problem)[-1]


def frequent_option(problems: Iterable[Problem]) -> Text:
    """Return the text that is the option which is right most often in the language of a problem."""
    by_language: dict[str, Counter[str]] = defaultdict(Counter)
    for problem in problems:
        if problem.verifier == CHOICE:
            gold = json.loads(problem.answer)
            names: list[str] = gold.get("correct", []) if isinstance(gold, dict) else []
            by_language[problem.language].update(names[:1])
    overall = Counter[str]()
    for counts in by_language.values():
        overall.update(counts)

    def text(problem: Problem) -> str:
        counts = by_language.get(problem.language) or overall
        return counts.most_common(1)[0][0] if counts else "A"

    return text


def _formula(problem: Problem) -> str:
    """Return the longest formula of the prompt, or its longest run of numbers and signs."""
    prompt = _prompt(problem)
    results = [dollars or displayed for dollars, displayed in _FORMULA.findall(prompt)]
    runs = results or re.findall(r"[-+*/^().\d ]{3,}", prompt) or ["0"]
    return max(runs, key=len).strip(" .?=\n")


def _words(problem: Problem) -> list[str]:
    return _prompt(problem).split() or [""]


def _options(problem: Problem) -> list[str]:
    """Return what follows the last question or colon, item by item."""
    tail = re.split(r"[?:？：]", _prompt(problem).strip())[-1]
    return [part.strip(" .") for part in re.split(r"[,\n、，]", tail) if part.strip(" .")] or [tail]


def _letters(problem: Problem) -> list[str]:
    return _OPTION.findall(_prompt(problem)) or ["A"]


ECHOES: dict[str, Text] = {
    "prompt": _prompt,
    "prompt, lower case": lambda p: _prompt(p).lower(),
    "prompt, upper case": lambda p: _prompt(p).upper(),
    "prompt, title case": lambda p: _prompt(p).title(),
    "prompt, quoted": lambda p: f'"{_prompt(p)}"',
    "prompt, quoted in lower case": lambda p: f'"{_prompt(p).lower()}"',
    "prompt without commas": lambda p: _prompt(p).replace(",", ""),
    "prompt without commas, lower case": lambda p: _prompt(p).replace(",", "").lower(),
    "prompt without signs": lambda p: " ".join(re.findall(r"\w+", _prompt(p))),
    "prompt twice": lambda p: f"{_prompt(p)} {_prompt(p)}",
    "prompt twice, lower case": lambda p: f"{_prompt(p)} {_prompt(p)}".lower(),
    "prompt in a box": lambda p: f"\\boxed{{{_prompt(p)}}}",
    "prompt as a title": lambda p: f"<<{_prompt(p)}>>",
    "prompt as JSON": lambda p: json.dumps({"answer": _prompt(p)}),
    "prompt as a list": lambda p: "\n".join(f"* {part}" for part in _sentences(_prompt(p))),
    "prompt in bold": lambda p: f"**{_prompt(p)}**",
    "prompt, words sorted": lambda p: " ".join(sorted(_words(p))),
    "prompt, words reversed": lambda p: " ".join(reversed(_words(p))),
    "prompt, sentences reversed": lambda p: " ".join(reversed(_sentences(_prompt(p)))),
    "sure, and the prompt": lambda p: f"Sure! {_prompt(p)}",
    "the prompt and thanks": lambda p: f"{_prompt(p)} Thank you.",
    "first sentence": lambda p: _sentences(_prompt(p))[0],
    "first sentence, lower case": lambda p: _sentences(_prompt(p))[0].lower(),
    "first sentence, quoted": lambda p: f'"{_sentences(_prompt(p))[0]}"',
    "first sentence and salad": lambda p: f"{_sentences(_prompt(p))[0]} new cheap good nice best",
    "last sentence": lambda p: _sentences(_prompt(p))[-1],
    "last sentence, lower case": lambda p: _sentences(_prompt(p))[-1].lower(),
    "all but the first sentence": lambda p: " ".join(_sentences(_prompt(p))[1:]),
    "all but the last sentence": lambda p: " ".join(_sentences(_prompt(p))[:-1]),
    "first word": lambda p: _words(p)[0],
    "last word": lambda p: _words(p)[-1],
    "first five words": lambda p: " ".join(_words(p)[:5]),
    "last five words": lambda p: " ".join(_words(p)[-5:]),
    "first half": lambda p: " ".join(_words(p)[: len(_words(p)) // 2]),
    "second half": lambda p: " ".join(_words(p)[len(_words(p)) // 2 :]),
    "first number": lambda p: _numbers(p)[0],
    "last number": lambda p: _numbers(p)[-1],
    "last number in a box": lambda p: f"\\boxed{{{_numbers(p)[-1]}}}",
    "first number in a box": lambda p: f"\\boxed{{{_numbers(p)[0]}}}",
    "longest formula": _formula,
    "longest formula in a box": lambda p: f"\\boxed{{{_formula(p)}}}",
    "largest number": lambda p: max(_numbers(p), key=float),
    "smallest number": lambda p: min(_numbers(p), key=float),
    "sum of the numbers": _calculated(lambda n: sum(n, Fraction(0))),
    "product of the numbers": _calculated(lambda n: math.prod(n, start=Fraction(1))),
    "mean of the numbers": _calculated(lambda n: sum(n, Fraction(0)) / len(n)),
    "first minus last number": _calculated(lambda n: n[0] - n[-1]),
    "first minus all others": _calculated(lambda n: n[0] - sum(n[1:], Fraction(0))),
    "first times second number": _calculated(lambda n: n[0] * n[1]),
    "first times last number": _calculated(lambda n: n[0] * n[-1]),
    "first divided by second number": _calculated(lambda n: n[0] / n[1]),
    "first divided by last number": _calculated(lambda n: n[0] / n[-1]),
    "sum of the last two numbers": _calculated(lambda n: n[-2] + n[-1]),
    "product of the last two numbers": _calculated(lambda n: n[-2] * n[-1]),
    "difference of the last two numbers": _calculated(lambda n: n[-2] - n[-1]),
    "first times second plus third number": _calculated(lambda n: n[0] * n[1] + n[2]),
    "twice the last number": _calculated(lambda n: 2 * n[-1]),
    "half the last number": _calculated(lambda n: n[-1] / 2),
    "number of numbers": _calculated(lambda n: Fraction(len(n))),
    "its item": _item,
    "its item, lower case": lambda p: _item(p).lower(),
    "praise of its item": lambda p: f"The {_item(p)} is a good choice. Buy it today!",
    "praise of its item, lower case": lambda p: (
        f"the {_item(p)} is a good choice. buy it today!".lower()
    ),
    "long praise of its item": lambda p: " ".join([f"This {_item(p)} is good, new and great."] * 4),
    "its item and salad": lambda p: (
        f"{_item(p)} new cheap good nice best great big small fast light"
    ),
    "its item as a list": lambda p: "\n".join([f"* {_item(p)}"] * 3),
    "its item as a title": lambda p: f"<<{_item(p)}>>\n{_item(p)}",
    "its item, quoted": lambda p: f'"{_item(p)}"',
    "its item as JSON": lambda p: json.dumps({"name": _item(p)}),
    "longest line": lambda p: max(_prompt(p).splitlines() or [""], key=len),
    "what follows the first colon": lambda p: _prompt(p).partition(":")[2].strip() or _prompt(p),
    "last line": lambda p: _prompt(p).strip().rpartition("\n")[2],
    "first option": lambda p: _options(p)[0],
    "last option": lambda p: _options(p)[-1],
    "second option": lambda p: _options(p)[min(1, len(_options(p)) - 1)],
    "longest option": lambda p: max(_options(p), key=len),
    "shortest option": lambda p: min(_options(p), key=len),
    "first option's last word": lambda p: (_options(p)[0].split() or [""])[-1],
    "last option's last word": lambda p: (_options(p)[-1].split() or [""])[-1],
    "all options": lambda p: ", ".join(_options(p)),
    "first letter": lambda p: _letters(p)[0],
    "last letter": lambda p: _letters(p)[-1],
    "call of the first tool without arguments": lambda p: (
        f'<tool_call>\n{{"name": "{_tool(p)}", "parameters": {{}}}}\n</tool_call>'
    ),
    "hermes call of the first tool without arguments": lambda p: FORMS["hermes"].write(
        [ToolCall(_tool(p), {})]
    ),
    "bare call without arguments": lambda p: f"[{_tool(p)}()]",
    "a program that returns nothing": lambda p: (
        f"```python\ndef {_tool(p)}(*_):\n    return None\n```"
    ),
    "a program that returns 0": lambda p: f"```python\ndef {_tool(p)}(*_):\n    return 0\n```",
    "a program that returns its argument": lambda p: (
        f"```python\ndef {_tool(p)}(a=None, *_):\n    return a\n```"
    ),
}


def _tool(problem: Problem) -> str:
    text = "\n".join(message.content for message in problem.messages)
    match = _NAME.search(text)
    return match[1] or match[2] if match else "f"


def _constant(text: str) -> Text:
    return lambda _: text


TEXTS: Mapping[str, Text] = {
    **{f"constant {text!r}"[:60]: _constant(text) for text in CONSTANTS},
    **{f"box {text}": _constant(f"\\boxed{{{text}}}") for text in BOXED},
    **{f"{a} ≈ {b} in a box": _constant(f"\\boxed{{{a} \\approx {b}}}") for a, b in PAIRS},
    **{f"{a} or {b}": _constant(f"{a} or {b}") for a, b in PAIRS},
    **ECHOES,
}
"""Every text by its name, but `FREQUENT`."""
FREQUENT = "most frequent option of the language"
"""Name of the text that `frequent_option` makes of other problems of a family."""
_CALLS = (
    "constant '[]'",
    "call of the first tool without arguments",
    "hermes call of the first tool without arguments",
    "bare call without arguments",
)
OF_VERIFIER: Mapping[str, tuple[str, ...]] = {
    "final_answer": ("last number", "longest formula", "1 ≈ 2 in a box", "constant '2'"),
    "rule_answer": ("last number in a box", "longest formula in a box", "1 ≈ 2 in a box", "box 2"),
    "choice": ("first option", "last option", "all options", "constant 'A'"),
    "extraction": ("constant '{}'", "prompt as JSON"),
    "tool_calls": ("constant '<tool_call>\\n</tool_call>'", *_CALLS),
    "bfcl_calls": ("constant '...'", *_CALLS),
    "instruction_rules": ("prompt, lower case", "first sentence and salad"),
    "rule_rubric": ("prompt, lower case", "constant '...'"),
    PROGRAMS: ("a program that returns nothing", "a program that returns its argument"),
    "reference_text": ("prompt", "second half", "last option"),
    "refusal": ("constant 'I cannot help with that.'", "constant 'ok'"),
    "correctness": ("constant 'true'", "constant 'false'", "constant 'yes'"),
    "shop": ("constant 'ok'", *_CALLS),
    "self_play": ("prompt", "constant 'A'"),
    "environment": ("constant '0'", "first option"),
    "generative_judge": ("prompt", "constant 'ok'"),
    "rubric": ("prompt", "constant 'ok'"),
}
"""Degenerate texts of each verifier, by their names in `TEXTS`."""


OWN = "DEGENERATE"
"""Name of such texts in the module of a user's own verifier: by name, a text or a function of the
problem."""


def texts_of(verifier: str) -> dict[str, Text]:
    """Return the texts that the module of a user's own verifier names; none of a built-in's.

    Raises:
        SettingsError: its code is missing, or what it names are no texts.
    """
    entry: object = vars(module_of(verifier)).get(OWN, {}) if is_reference(verifier) else {}
    texts = cast("dict[str, object]", entry) if isinstance(entry, dict) else {OWN: entry}
    for name, text in texts.items():
        if not (isinstance(text, str) or callable(text)):
            raise SettingsError(
                f"{verifier.partition('@')[0]}: {OWN} needs texts, or functions of a problem, by "
                f"name; {name} is {text!r}"
            )
    return {
        f"{verifier.partition('@')[0]}, {name}": _constant(text)
        if isinstance(text, str)
        else cast("Text", text)
        for name, text in texts.items()
    }


def free_scores(problems: Iterable[Problem]) -> tuple[EchoScore, ...]:
    """Score the texts on every domain with the verifiers of this process; see `echo_scores`."""

    def score(members: Sequence[Problem], texts: Sequence[str]) -> list[float | None]:
        return [verdict.score for verdict in table.score_batch(members, texts)]

    return echo_scores(problems, score, lambda problem: f"domain:{problem.domain.value}")


def is_scored(problem: Problem) -> bool:
    """True unless a problem needs a judge or outside code, which one text is no answer to."""
    return not (table.is_judged(problem) or problem.is_outside)


def echo_scores(
    problems: Iterable[Problem],
    score: Callable[[Sequence[Problem], Sequence[str]], Sequence[float | None]],
    family_of: Callable[[Problem], str],
) -> tuple[EchoScore, ...]:
    """Score the texts on every family of problems; return the best text of each.

    Args:
        problems: of any families; those that need a judge or outside code are left out.
        score: gives the score of a response to each problem, None for an abstention.
        family_of: names the family of a problem.

    Returns:
        By family, in order of names; a family without a score is left out.
    """
    families: dict[str, list[Problem]] = defaultdict(list)
    for problem in problems:
        if is_scored(problem):
            families[family_of(problem)].append(problem)
    return tuple(
        best
        for name, members in sorted(families.items())
        if (best := _best(name, members, score)) is not None
    )


def spread(members: Sequence[Member], most: int = MAX_PROBLEMS) -> list[Member]:
    """Return at most so many members, evenly spread."""
    step = max(len(members) / most, 1.0)
    return [members[int(place * step)] for place in range(min(most, len(members)))]


def _best(
    family: str,
    members: Sequence[Problem],
    score: Callable[[Sequence[Problem], Sequence[str]], Sequence[float | None]],
) -> EchoScore | None:
    chosen = spread(members)
    texts = dict(TEXTS)
    if all(one.verifier == PROGRAMS for one in chosen):  # a text without a program costs as much
        texts = {name: TEXTS[name] for name in OF_VERIFIER[PROGRAMS]}
    if any(one.verifier == CHOICE for one in chosen):
        texts[FREQUENT] = frequent_option(members)
    for verifier in sorted(verifiers_of(chosen)):
        texts |= texts_of(verifier)
    first, rest = (
        chosen[::FIRST_SHARE],
        [one for place, one in enumerate(chosen) if place % FIRST_SHARE],
    )
    by_text = _scores(texts, first, score)
    earned = {name: _mean(scores) for name, scores in by_text.items()}
    leading = sorted(texts, key=lambda name: -earned[name])[:MOST_TEXTS]
    more = _scores({name: texts[name] for name in texts if name in leading}, rest, score)
    best: EchoScore | None = None
    for name, own in more.items():
        scores = [one for one in (*by_text[name], *own) if one is not None]
        mean = _mean(scores)
        if scores and (best is None or mean > best.score):
            solved = sum(one == 1.0 for one in scores) / len(scores)
            best = EchoScore(
                suite=family, text=name, score=mean, accuracy=solved, problems=len(chosen)
            )
    return best


def _mean(scores: Iterable[float | None]) -> float:
    known = [one for one in scores if one is not None]
    return sum(known) / max(1, len(known))


def _scores(
    texts: Mapping[str, Text],
    members: Sequence[Problem],
    score: Callable[[Sequence[Problem], Sequence[str]], Sequence[float | None]],
) -> dict[str, list[float | None]]:
    """Score every text on every problem; what several texts write for one is scored once."""
    written = {name: [text(one) for one in members] for name, text in texts.items()}
    pairs = dict.fromkeys(
        (place, response)
        for responses in written.values()
        for place, response in enumerate(responses)
    )
    result = score([members[place] for place, _ in pairs], [response for _, response in pairs])
    known = dict(zip(pairs, result, strict=True))
    return {
        name: [known[place, response] for place, response in enumerate(responses)]
        for name, responses in written.items()
    }
