"""Every verifier on texts of 100 kB that are made to be slow to read: under one CPU second each."""

import random
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import adversarial
import pytest

from tasks.gym import table
from tasks.gym.instructions.rules import KINDS
from tasks.gym.judging import comparisons, rubric
from tasks.gym.judging.comparison_prompt import parse_label
from tasks.gym.judging.scripted import ScriptedJudge, preferring
from tasks.gym.program_text import ProgramForm, find_program
from tasks.gym.sandbox.toolchains import Language
from tests.timing import timed

Call = Callable[[str], object]
ROOT = Path(table.__file__).parent
LIMIT_S = 1.0
SOURCES = {
    "final_answer": ("maths", "denials.py"),
    "rule_answer": ("maths", "denials.py"),
    "choice": ("choice.py", "options", "denials.py"),
    "extraction": ("extraction.py",),
    "tool_calls": ("tools",),
    "bfcl_calls": ("tools",),
    "instruction_rules": ("instructions",),
    "code_tests": ("program_text.py", "code_tests.py"),
    "generative_judge": ("judging",),
    "rubric": ("judging",),
    "rule_rubric": ("judging",),
    "reference_text": ("reference_text.py",),
    "refusal": ("refusal.py",),
    "shop": ("environments/shop.py", "tools/tool_calls.py"),
    "environment": ("environments/outside/play.py", "tools/tool_calls.py"),
}
"""Files and folders whose literals and patterns a verifier's texts are made of."""
CHOICES = {"correct": ["รองเท้า", "shoes and bags", "A"], "others": [["กระเป๋า", "B"], ["是"]]}
NO_COMMAS = {
    "criterion": "No commas.",
    "points": 1.0,
    "verifier": "instruction_rules",
    "answer": {"instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]},
}
CALL = {"name": "f", "parameters": {"a": 1}}
GOLDS: dict[str, list[tuple[str, object]]] = {
    "rule_rubric": [("en", {"criteria": [NO_COMMAS], "aggregation": "ruscarl"})],
    "shop": [
        ("en", {"orders": [[412, 7, "mug", "new"]], "goal": {"412": "cancel"}, "say": "done"})
    ],
    "environment": [
        (
            "en",
            {"library": "example", "environment": "guess", "task": {"number": 3}, "version": "1"},
        )
    ],
    "final_answer": [("en", {"value": "26"}), ("id", {"value": "\\frac{1}{2}, 3"})],
    "rule_answer": [("en", {"value": "x^2+1"}), ("vi", {"value": "(1,2]"})],
    "choice": [(language, CHOICES) for language in ("en", "th", "zh", "pt", "vi", "id", "ms")],
    "extraction": [("en", {"fields": {"brand": "Acme", "size": 4, "tags": ["a", "b"]}})],
    "tool_calls": [
        ("en", {"calls": []}),
        ("en", {"calls": [CALL, {"name": "g", "parameters": {}}]}),
        ("en", {"calls": [CALL], "form": "toolrl", "answer": True}),
    ],
    "bfcl_calls": [
        ("en", {"calls": [], "functions": [{"name": "f"}, {"name": "shop.find"}]}),
        ("en", {"calls": [{"name": "f", "parameters": {"a": [1, ""]}}] * 2}),
    ],
    "refusal": [("en", {"refuse": True}), ("zh", {"refuse": False})],
    "reference_text": [("en", {"reference": "Red shoes for kids. " * 20})],
}
ARGUMENTS: dict[str, Any] = {
    "keywords": ["a", "中"],
    "forbidden_words": ["zq", "é"],
    "keyword": "a",
    "relation": "at least",
    "let_relation": "at least",
    "capital_relation": "at least",
    "letter": "a",
    "first_word": "a",
    "postscript_marker": "P.S.",
    "section_spliter": "Section",
    "prompt_to_repeat": "do it",
    "end_phrase": "the end.",
    "start_phrase": "so",
    "word_to_accentuate": {"lecon": "leçon"},
    "forbidden_char": "ç",
    "script": "thai",
    "opening": "《",
    "closing": "》",
    "ending": "です",
    "language": "en",
}
"""Kinds of instructions; the others are numbers."""


def instructions() -> Iterator[object]:
    """Golds of every kind of instruction."""
    for kind, entry in KINDS.items():
        for language in ("en", "th", "zh-TW") if kind.startswith("sea:count") else ("en",):
            arguments = {key: ARGUMENTS.get(key, 3) for key in entry.arguments}
            arguments |= {"language": language} if "language" in arguments else {}
            yield {"instruction_id_list": [kind], "kwargs": [arguments]}


def calls(name: str, problem: Callable[..., Any]) -> Iterator[Call]:
    """Every way in which a verifier reads a text."""
    judge = ScriptedJudge(preferring(len))
    match name:
        case "instruction_rules":
            for gold in instructions():
                yield partial(table.VERIFIERS[name], problem(name, gold))
        case "code_tests":
            for language in Language:
                for form in (
                    ProgramForm(language, frozenset({"f"})),
                    ProgramForm(language, reads_input=True),
                ):
                    yield partial(find_program, form=form)
        case "generative_judge":
            gold = {"mode": "reference", "reference": "Red shoes"}
            yield partial(comparisons.verifier(judge), problem(name, gold))
            yield parse_label
        case "rubric":
            gold = {"criteria": [{"criterion": "red", "points": 1.0}], "aggregation": "ruscarl"}
            met = ScriptedJudge(lambda _: '{"met": true}')
            yield partial(rubric.verifier(met, table.VERIFIERS), problem(name, gold))
        case _:
            for language, gold in GOLDS[name]:
                asked = problem(name, gold).model_copy(update={"language": language})
                yield partial(table.VERIFIERS[name], asked)


def units(name: str, draw: random.Random) -> list[str]:
    paths = [ROOT / part for part in SOURCES[name]]
    files = [file for path in paths for file in (path.rglob("*.py") if path.is_dir() else [path])]
    modules = [".".join(file.relative_to(ROOT.parents[1]).with_suffix("").parts) for file in files]
    found = [*adversarial.COMMON, *adversarial.literals(files)]
    for pattern in adversarial.patterns(modules):
        found += filter(None, adversarial.near_matches(pattern, draw))
    return found


def check(name: str, problem: Callable[..., Any], seeds: range) -> None:
    readers = list(calls(name, problem))
    for seed in seeds:
        draw = random.Random(f"{name} {seed}")
        text = adversarial.long_text(units(name, draw), draw)
        for call in readers:
            seconds, _ = timed(partial(call, text), LIMIT_S)
            assert seconds < LIMIT_S, (seed, call, text[:80], text[-80:])


def test_every_verifier_has_sources() -> None:
    assert table.VERIFIERS.keys() == SOURCES.keys()


@pytest.mark.slow
def test_the_texts_show_that_an_expression_is_quadratic() -> None:
    pattern = re.compile(r"\s+#")
    units = [unit for unit in adversarial.near_matches(pattern, random.Random(0)) if unit]
    growth = []
    for seed in range(12):
        short, long = (
            adversarial.long_text(units, random.Random(seed), length) for length in (4_000, 16_000)
        )
        least = [timed(partial(pattern.findall, text), 0.0)[0] for text in (short, long)]
        growth.append(least[1] / least[0])

    assert max(growth) > 8.0  # four times the text: about 4 if linear, 16 if quadratic


@pytest.mark.slow
@pytest.mark.parametrize("name", SOURCES)
def test_no_text_of_100_kb_takes_a_cpu_second(name: str, problem) -> None:
    check(name, problem, range(2 if name == "instruction_rules" else 3))


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", SOURCES)
def test_none_of_many_texts_takes_a_cpu_second(name: str, problem) -> None:
    check(name, problem, range(100, 200))
