"""Falsifications of a final answer: hedges, ranges, negations, two answers at once."""

import random

from tests.examiner.case import Answer, Question
from tests.examiner.maths.edits import integer, single
from tests.examiner.maths.exact import latex, number
from tests.examiner.maths.golds import Gold
from tests.examiner.maths.right import SLOT, bare
from tests.examiner.phrasing import (
    BETWEEN,
    EITHER,
    MINUS,
    NOT,
    OR,
    TO,
    box,
    decimal,
    small_words,
    state_answer,
    with_language,
)

SIZES = ("thousand", "million", "billion")


def magnitude(question: Question, source: random.Random) -> str | None:
    exact = single(question)
    value = exact.rational if exact else None
    shown = None if not value else decimal(value)
    if shown is None:
        return None
    size = source.choice(SIZES)
    forms = (f"The answer is {shown} {size}.", box(f"{shown} \\text{{ {size}}}"))
    return source.choice(forms)


def relation(question: Question, source: random.Random) -> str | None:
    gold: Gold = question.facts
    if single(question) is None:
        return None
    signs = ("> {}", "< {}", "\\neq {}", "\\geq {}", "\\le {}", "x > {}", "x \\neq {}", "\\ne {}")
    return box(source.choice(signs).format(gold.parts[0]), source)


def negation(question: Question, source: random.Random) -> Answer | None:
    shown = bare(question, source)
    language = source.choice(tuple(NOT))
    if shown is None:
        return None
    text = source.choice(NOT[language]).format(shown)
    return Answer(text, with_language(question.problem, language))


def minus_word(question: Question, source: random.Random) -> Answer | None:
    value = integer(question)
    language = source.choice(tuple(MINUS))
    if value is None or value <= 0:
        return None
    text = state_answer(f"{MINUS[language]} {value}", source, language)
    return Answer(text, with_language(question.problem, language))


def either(question: Question, source: random.Random) -> Answer | None:
    value = integer(question)
    language = source.choice(tuple(EITHER))
    if value is None:
        return None
    pair = [str(value), str(value + source.choice((-3, -2, -1, 1, 2, 3)))]
    source.shuffle(pair)
    text = source.choice(EITHER[language]).format(*pair)
    if language == "en" and source.random() < 0.4:
        return Answer(box(source.choice(("{} \\text{{ or }} {}", "{}, {}")).format(*pair), source))
    return Answer(state_answer(text, source, language), with_language(question.problem, language))


def between(question: Question, source: random.Random) -> Answer | None:
    value = integer(question)
    language = source.choice(tuple(BETWEEN))
    if value is None:
        return None
    low, high = sorted((value, value + source.choice((-5, -2, -1, 1, 2, 5))))
    if language == "en" and source.random() < 0.4:
        forms = ("[{}, {}]", "{}\\text{{ to }}{}", "{} < x < {}", "{}\\text{{--}}{}")
        return Answer(box(source.choice(forms).format(low, high), source))
    text = state_answer(source.choice(BETWEEN[language]).format(low, high), source, language)
    return Answer(text, with_language(question.problem, language))


def at_least(question: Question, source: random.Random) -> str | None:
    value = integer(question)
    if value is None:
        return None
    word = source.choice(("at least", "at most", "more than", "less than", "anything but", "not"))
    return source.choice(
        (state_answer(f"{word} {value}", source), box(f"\\text{{{word} }}{value}"))
    )


def second_answer(question: Question, source: random.Random) -> str | None:
    value = integer(question)
    if value is None:
        return None
    pair = [str(value), str(value + source.choice((-2, -1, 1, 2, 10)))]
    source.shuffle(pair)
    forms = (
        "The answer is $\\boxed{{{}}}$.\n\nThe answer is $\\boxed{{{}}}$.",
        "$\\boxed{{{}}}$ or $\\boxed{{{}}}$",
        "The answer is {}.\nThe answer is {}.",
        "#### {}\n#### {}",
        "$\\boxed{{{}}}$\n\nAlternatively: $\\boxed{{{}}}$",
    )
    return source.choice(forms).format(*pair)


def afterthought(question: Question, source: random.Random) -> Answer | None:
    """State another value in a sentence of its own, or as the end of a range, after the answer."""
    value = integer(question)
    language = source.choice(tuple(OR))
    if value is None or value < 2:
        return None
    pair = [value, value + source.choice((-1, 1, 2, 10))]
    source.shuffle(pair)
    first, other = str(pair[0]), small_words(pair[1], language)
    other = other if other and source.random() < 0.5 else str(pair[1])
    if source.random() < 0.5:
        text = source.choice(TO[language]).format(f"$\\boxed{{{first}}}$", other)
    else:
        stated = state_answer(first, source, language).rstrip(" .。")
        end = {"zh": "。", "th": " "}.get(language, ". ")
        text = f"{stated}{end}{source.choice(OR[language]).format(other)}"
    return Answer(text, with_language(question.problem, language))


def wrong_chain(question: Question, source: random.Random) -> str | None:
    value = integer(question)
    if value is None:
        return None
    wrong = value + source.choice((-2, -1, 1, 2, 10))
    forms = (
        f"The answer is ${value} = \\boxed{{{wrong}}}$.",
        box(f"{value} = {wrong}"),
        f"The answer is {value} + 0 = $\\boxed{{{wrong}}}$.",
    )
    return source.choice(forms)


def wrong_solution(question: Question, source: random.Random) -> str | None:
    value = single(question)
    if value is None or not question.solution:
        return None
    return question.solution.replace(SLOT, latex(value + number(source.choice((-1, 1, 2, 10)))))


def thought_only(question: Question, source: random.Random) -> str | None:
    value = integer(question)
    if value is None:
        return None
    after = source.choice(
        ("", "I am not sure.", box(str(value + 1)), f"The answer is {value - 1}.")
    )
    return f"<think>\n{box(str(value))}\n</think>\n{after}"


def unfinished(question: Question, source: random.Random) -> str | None:
    value = integer(question)
    if value is None:
        return None
    forms = (
        f"<think>\nThe answer is $\\boxed{{{value}}}$.",
        f"So the answer is $\\boxed{{{value}",
        "$\\boxed{}$",
        f"$\\boxed{{\\phantom{{{value}}}}}$",
        "$\\boxed{?}$",
        "I cannot find the answer.",
    )
    return source.choice(forms)


def breaking(question: Question, source: random.Random) -> str | None:
    """Write a wrong answer that is laborious to read."""
    value = integer(question)
    if value is None or value == 20_000:
        return None
    wrong = value + 1
    forms = (
        f"The answer to {' ' * 20_000}{wrong}",
        "<tool_call>" * 8_000 + str(wrong),
        f"<<1+1=2>>\n#### {wrong}",
        f"<<{wrong}>>",
        box(f"4^{{1010}} + {wrong}"),
        box(f"9^{{9^{{9^9}}}} + {wrong}"),
        box("{" * 5_000 + str(wrong) + "}" * 5_000),
        "\\boxed{" * 3_000 + str(wrong),
        box("(" * 400 + str(wrong) + ")" * 400),
        box(f"\\frac{{{wrong}}}{{0}}"),
        f"The answer is {'9' * 50_000}.",
        box("+".join(["1"] * 20_000)),
        "The answer is " + "not " * 20_000 + str(wrong),
        f"{'$' * 20_000}{wrong}",
        box(f"{wrong}!!!!!!!!"),
        box(f"({wrong})^{{({wrong})^{{({wrong})}}}}!"),
        "answer: " * 10_000 + str(wrong),
        "1," * 30_000 + str(wrong),
        box("\\sqrt{" * 300 + str(wrong * 7 + 1) + "}" * 300 + "+" + str(wrong + 5)),
    )
    return source.choice(forms)
