"""Classes of answers to multiple choice: the right option said in other ways, and not said at all.

An option has a letter, a text, or both. The words around it are chosen so that they name no option.
"""

import random
import re
import unicodedata
from dataclasses import dataclass

from tests.examiner.case import Answer, AnswerClass, Question
from tests.examiner.phrasing import (
    EITHER,
    NOT,
    OPTION,
    SENTENCES,
    with_language,
)

_FULL_WIDTH = {ord(char): ord(char) + 0xFEE0 for char in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
_BECAUSE = (
    "It is the only one that fits.",
    "This follows from the text above.",
    "Everything else can be ruled out.",
)


@dataclass(frozen=True, slots=True)
class Options:
    """What can be chosen; letters are '' where the set has none."""

    letters: tuple[str, ...]
    texts: tuple[str, ...]
    right: int
    language: str = "en"

    def names(self, place: int) -> list[str]:
        """Return every way to name an option: its letter, its text."""
        return [name for name in (self.letters[place], self.texts[place]) if name]

    def wrong(self, source: random.Random) -> int:
        """Draw one of the other options."""
        return source.choice([place for place in range(len(self.texts)) if place != self.right])


def letter(question: Question, source: random.Random) -> str | None:
    options: Options = question.facts
    mark = options.letters[options.right]
    styles = (
        "{}",
        "({})",
        "{}.",
        "**{}**",
        "Answer: {}",
        "**Answer:** ({})",
        "\\boxed{{{}}}",
        "#### {}",
    )
    return source.choice(styles).format(mark) if mark else None


def text(question: Question, source: random.Random) -> str | None:
    options: Options = question.facts
    styles = ("{}", "Answer: {}", "The answer is {}.", "**{}**", '"{}"')
    return source.choice(styles).format(_plain(options, options.right))


def both(question: Question, source: random.Random) -> str | None:
    options: Options = question.facts
    mark, said = options.letters[options.right], _plain(options, options.right)
    styles = ("{}) {}", "({}) {}", "{}. {}", "Answer: {}. {}", "The answer is ({}) {}.")
    return source.choice(styles).format(mark, said) if mark else None


def in_language(question: Question, source: random.Random) -> Answer | None:
    options: Options = question.facts
    if not options.letters[options.right]:
        return None
    language = options.language if options.language != "en" else source.choice(tuple(SENTENCES))
    said = source.choice(SENTENCES[language]).format(options.letters[options.right])
    return Answer(said, with_language(question.problem, language))


def named(question: Question, source: random.Random) -> Answer | None:
    """Name the letter in a clause, half the time after the denial of another one."""
    options: Options = question.facts
    if not options.letters[options.right]:
        return None
    language = options.language if options.language != "en" else source.choice(tuple(OPTION))
    said = source.choice(OPTION[language]).format(options.letters[options.right])
    if source.random() < 0.5:
        other = options.letters[options.wrong(source)]
        said = f"{_SHORT_NOT[language][0].format(other).rstrip('.')}. {said}"
    return Answer(said, with_language(question.problem, language))


def other_case(question: Question, source: random.Random) -> str | None:
    options: Options = question.facts
    said = _plain(options, options.right)
    changed = source.choice((said.upper(), said.lower(), said.swapcase()))
    return f"Answer: {changed}" if changed != said and said.isascii() else None


def ampersand(question: Question, source: random.Random) -> str | None:
    options: Options = question.facts
    said = _plain(options, options.right)
    changed = said.replace(" and ", " & ") if " and " in said else said.replace(" & ", " and ")
    others = [t for place, t in enumerate(options.texts) if place != options.right]
    if changed == said or changed in others:
        return None
    return source.choice(("{}", "Answer: {}")).format(changed)


def full_width(question: Question, source: random.Random) -> str | None:
    options: Options = question.facts
    mark = options.letters[options.right]
    return source.choice(("{}", "答案是{}")).format(mark.translate(_FULL_WIDTH)) if mark else None


def thinking(question: Question, source: random.Random) -> str | None:
    options: Options = question.facts
    other = options.names(options.wrong(source))[0]
    said = options.names(options.right)[0]
    return f"<think>Perhaps {other}? Answer: {other}. No, that cannot be.</think>\n\nAnswer: {said}"


def explained(question: Question, source: random.Random) -> str | None:
    options: Options = question.facts
    said = options.names(options.right)[-1]
    because = source.choice(_BECAUSE)
    if any(re.search(rf"\b{re.escape(t)}\b", because, re.IGNORECASE) for t in options.texts):
        return None
    return f"Answer: {said}\n\n{because}"


def others_denied(question: Question, source: random.Random) -> str | None:
    """Say of the other letters, behind the right one, that they are wrong."""
    return _with_denials(question.facts, question.facts.right, source)


def denied_with_others(question: Question, source: random.Random) -> str | None:
    """Name another letter, and say of the rest, the right one among them, that they are wrong."""
    return _with_denials(question.facts, question.facts.wrong(source), source)


def _with_denials(options: Options, chosen: int, source: random.Random) -> str | None:
    if not options.letters[chosen] or len(options.letters) < 3:
        return None
    said = source.choice(("Answer: {}.", "The answer is {}.", "**Answer: {}**\n\n", "({})."))
    rest = [mark for place, mark in enumerate(options.letters) if place != chosen]
    *first, last = rest
    together = (
        f"{', '.join(first)} and {last} are incorrect.",
        f"{', '.join(first)}, and {last} are wrong.",
        f"Options {', '.join(first)} and {last} are ruled out.",
        f"Not {' or '.join(rest)}.",
    )
    alone = ("{} is wrong.", "{} is incorrect.", "Option {} is not correct.", "It is not {}.")
    separately = " ".join(source.choice(alone).format(mark) for mark in rest)
    return f"{said.format(options.letters[chosen])} {source.choice((*together, separately))}"


def other_letter(question: Question, source: random.Random) -> str | None:
    options: Options = question.facts
    mark = options.letters[options.wrong(source)]
    styles = ("{}", "({})", "Answer: {}", "The answer is ({}).", "\\boxed{{{}}}")
    return source.choice(styles).format(mark) if mark else None


def other_text(question: Question, source: random.Random) -> str | None:
    options: Options = question.facts
    styles = ("{}", "Answer: {}", "The answer is {}.")
    return source.choice(styles).format(_plain(options, options.wrong(source)))


def negation(question: Question, source: random.Random) -> Answer | None:
    options: Options = question.facts
    names = options.names(options.right)
    denied = source.choice(names).rstrip(".。")
    language = options.language
    if language == "en" and len(denied) == 1:  # a letter may be denied in any language
        language = source.choice(tuple(NOT))
    said = source.choice((*NOT[language], *_SHORT_NOT[language])).format(denied)
    return Answer(said, with_language(question.problem, language))


def either(question: Question, source: random.Random) -> Answer | None:
    options: Options = question.facts
    language, places = options.language, (options.right, options.wrong(source))
    pair = [_plain(options, place) for place in places]
    if options.letters[0] and source.random() < 0.6:
        language = source.choice(tuple(EITHER)) if language == "en" else language
        pair = [options.letters[place] for place in places]
    source.shuffle(pair)
    said = source.choice(EITHER[language]).format(*pair)
    return Answer(
        source.choice(SENTENCES[language]).format(said), with_language(question.problem, language)
    )


def denied_together(question: Question, source: random.Random) -> Answer | None:
    options: Options = question.facts
    other = options.wrong(source)
    language = options.language
    pair = [_plain(options, other), _plain(options, options.right)]
    if options.letters[0] and source.random() < 0.6:
        language = source.choice(tuple(EITHER)) if language == "en" else language
        pair = [options.letters[other], options.letters[options.right]]
    source.shuffle(pair)
    alternatives = "{} or {}" if language == "en" else EITHER[language][0]
    said = _SHORT_NOT[language][0].format(alternatives.format(*pair))
    return Answer(said, with_language(question.problem, language))


def all_options(question: Question, source: random.Random) -> str | None:
    options: Options = question.facts
    names = [options.names(place)[0] for place in range(len(options.texts))]
    source.shuffle(names)
    return source.choice(("Answer: {}", "{}")).format(", ".join(names))


def corrected(question: Question, source: random.Random) -> str | None:
    options: Options = question.facts
    pair = [options.names(p)[0] for p in (options.right, options.wrong(source))]
    source.shuffle(pair)
    styles = ("Answer: {}\nAnswer: {}", "The answer is {}.\n\nThe answer is {}.", "{}\n{}")
    return source.choice(styles).format(*pair)


def no_choice(question: Question, source: random.Random) -> str | None:
    forms = ("Neither of them.", "None of these.", "I do not know.", "Answer:", "?", "It depends.")
    said = source.choice(forms)
    texts = question.facts.texts
    return (
        None if any(re.search(rf"\b{re.escape(t)}\b", said, re.IGNORECASE) for t in texts) else said
    )


def _plain(options: Options, place: int) -> str:
    """An option's text without the full stop at its end."""
    return unicodedata.normalize("NFC", options.texts[place]).strip().rstrip(".。")


_SHORT_NOT = {
    "en": ("Not {}.", "It is not {}.", "Anything but {}."),
    "zh": ("不是{}", "并非{}"),
    "id": ("Bukan {}.", "Bukanlah {}."),
    "ms": ("Bukan {}.",),
    "pt": ("Não é {}.",),
    "vi": ("Không phải {}.",),
    "th": ("ไม่ใช่ {}",),
}

RIGHT = (
    AnswerClass("letter", True, "the letter, in eight usual forms", "A -> **Answer:** (A)", letter),
    AnswerClass("text", True, "the option's text", "circle -> The answer is circle.", text),
    AnswerClass("letter_and_text", True, "letter and text", "A -> (A) circle", both),
    AnswerClass(
        "in_language",
        True,
        "a sentence in one of seven languages",
        "A -> Jawabannya adalah A.",
        in_language,
    ),
    AnswerClass(
        "named",
        True,
        "a clause that names the letter, in seven languages",
        "A -> Bukan B. Pilihan A",
        named,
    ),
    AnswerClass(
        "other_case",
        True,
        "the text in capitals or small letters",
        "circle -> Answer: CIRCLE",
        other_case,
    ),
    AnswerClass(
        "ampersand", True, "'&' for 'and' and back", "Toys and Hobbies -> Toys & Hobbies", ampersand
    ),
    AnswerClass("full_width", True, "a full-width letter", "A -> Ａ", full_width),  # noqa: RUF001
    AnswerClass(
        "thinking",
        True,
        "another option within the thinking",
        "A -> <think>Answer: B. No.</think> Answer: A",
        thinking,
    ),
    AnswerClass(
        "explained",
        True,
        "an explanation that names no option",
        "A -> Answer: A It is the only one that fits.",
        explained,
    ),
    AnswerClass(
        "others_denied",
        True,
        "behind the letter, that the others are wrong",
        "A -> Answer: A. B and C are incorrect.",
        others_denied,
    ),
)
WRONG = (
    AnswerClass("other_letter", False, "another option's letter", "A -> (B)", other_letter),
    AnswerClass("other_text", False, "another option's text", "circle -> kite", other_text),
    AnswerClass(
        "negation", False, "not the right option, in seven languages", "A -> Bukan A.", negation
    ),
    AnswerClass(
        "either",
        False,
        "the right option or another, in seven languages",
        "A -> Jawaban: B atau A",
        either,
    ),
    AnswerClass(
        "denied_together",
        False,
        "neither the right option nor another, in seven languages",
        "A -> Bukan B atau A.",
        denied_together,
    ),
    AnswerClass(
        "denied_with_others",
        False,
        "another letter, and behind it that the right one is wrong",
        "A -> Answer: B. A and C are incorrect.",
        denied_with_others,
    ),
    AnswerClass("all_options", False, "every option", "A -> Answer: B, A, C", all_options),
    AnswerClass(
        "corrected", False, "two options, each as the answer", "A -> Answer: A Answer: B", corrected
    ),
    AnswerClass("no_choice", False, "no option", "A -> None of these.", no_choice),
)
