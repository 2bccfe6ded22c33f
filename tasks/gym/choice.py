"""Score whether the response picks the right option, in any of twelve languages.

Gold: {"correct": [aliases], "others": [[aliases of a competing option], ...]}.
Markers of a final answer are built by a grammar: noun x verb x language, in both orders ("the
best choice is B", "B is the correct answer", 故选B, 【答案】B, JSON). The last marker counts, all
markers must agree, and nothing before them is an assertion but an option that the text begins
with, so that a second answer cannot repair a wrong first one. Without a marker the whole text
counts. An option that is denied ("not X", "X is wrong") is not asserted. A right option of one
letter counts at the beginning of a clause, after words like "I choose option"; the clauses before
may only deny other options. The right option must not be denied anywhere and must not be a guess
("maybe X", "X or something else").
"""

import re
from functools import partial
from typing import Annotated

from pydantic import AfterValidator, Field

from data_schemas.rows import Problem
from data_schemas.verdicts import Verdict, abstain, response_fault, scored
from tasks.algorithms.language_tags import primary
from tasks.gym.denials import WINDOW, clauses, fold, plain
from tasks.gym.json_answer import without_container
from tasks.gym.options.announcements import HEADING, MARKER, REVERSED, deny_false_options
from tasks.gym.options.languages import NEGATED, compile_folded
from tasks.gym.options.letters import divide_letters
from tasks.gym.options.mentions import (
    BEFORE_LETTER,
    BORDER,
    MAX_MENTIONS,
    Span,
    end_of_naming,
    find_mentions,
    group_lists,
    is_inside,
    is_letter,
)
from tasks.gym.options.regions import COMMAS, DOTS, assertions
from tasks.gym.options.rejections import (
    find_beside_denied,
    find_denied,
    find_explained_away,
    find_refuted,
    is_denied,
    is_hedged,
)
from tasks.gym.options.selections import select, unselected
from tasks.gym.options.spellings import respell
from tasks.gym.protocol import Gold, verify_answer

# "a and c are right"
_IS_RIGHT = compile_folded(
    r"(?<!\w)(?:right|correct|true|valid|benar|tepat|betul|đúng|cert[ao]s|corret[ao]s|correct[ao]s|"
    r"correctes|justes|richtig|korrekt|giust[ei]|corrett[ei]|tama)(?!\w)|[对對]|正[确確]|ถูก"
)
_READ = frozenset(
    (
        *("en", "zh", "yue", "id", "ms", "pt", "es", "fr", "de", "it", "vi", "th", "tl"),
        *("und", "mul", "zxx"),
    )
)
"""Languages whose words are read, and the tags of texts without one."""
_OTHER_SCRIPTS = frozenset(
    (
        *("ja", "ko"),
        *("ru", "uk", "be", "bg", "sr", "mk", "kk", "ky", "mn"),
        *("el", "hy", "ka", "he", "ar", "fa", "ur", "ps", "hi"),
        *("mr", "ne", "bn", "ta", "te", "kn", "ml", "gu", "pa", "si", "lo"),
        *("km", "my", "am"),
    )
)
"""Unread languages of a script of their own, which shows whether a response is in them."""
_LATIN_WORD = re.compile(r"(?<!\w)(?!the(?!\w))[^\W\d_]{2}")
_OWN_SCRIPT = re.compile(
    r"[\u0370-\u0dff\u0e80-\u0eff\u1000-\u13ff\u1780-\u17ff\u3041-\u30ff\uac00-\ud7a3]"
)
"""Their letters; of Chinese characters the words of Chinese are read."""
_FOREIGN_LETTER = re.compile(r"[^\W\d_\u0000-\u024f\u1e00-\u1eff]")
"""A letter that is not Latin: a refusal of `A` alone needs none of them to be read."""


def _visible(text: str) -> str:
    if not fold(text):
        raise ValueError(f"{text!r} has no visible characters to search for")
    return text


Alias = Annotated[str, AfterValidator(_visible)]


class MultipleChoice(Gold):
    """Names of the right option and of every competing option."""

    correct: tuple[Alias, ...] = Field(min_length=1, strict=False)
    others: tuple[tuple[Alias, ...], ...] = Field(default=(), strict=False)


def verify(problem: Problem, response: str) -> Verdict:
    """Score 1 if the right option is asserted and no competing one is, else 0."""
    is_read = primary(problem.language) in _READ
    return verify_answer(
        problem,
        response,
        MultipleChoice,
        _check if is_read else partial(_check_unread, primary(problem.language)),
    )


def _check_unread(language: str, gold: MultipleChoice, answer: str) -> Verdict:
    """Decide in a language that is not read: abstain where its own words stand beside an option.

    In a Latin script they are all words but those of announcements in languages that are read.
    """
    verdict = _check(gold, answer)
    text = plain(without_container(answer))
    names = [plain(name) for option in (gold.correct, *gold.others) for name in option]
    for name in sorted(names, key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", " ", text)
    refused = verdict.reason in ("wrong", "hedged", "several_answers")
    if language in _OTHER_SCRIPTS:
        unread = (_FOREIGN_LETTER if refused else _OWN_SCRIPT).search(text)
    else:
        unread = _LATIN_WORD.search(REVERSED.sub(" ", MARKER.sub(" ", HEADING.sub(" ", text))))
    return abstain("language_unread", verdict.detail) if unread else verdict


def _check(gold: MultipleChoice, answer: str) -> Verdict:
    options = [frozenset(map(fold, option)) for option in (gold.correct, *gold.others)]
    text, unclear = divide_letters(without_container(answer), options)
    stated = respell(plain(text), options)
    text = select(stated, options)
    denying = deny_false_options(text)
    regions, announced = assertions(denying, options)
    *earlier, last = (BORDER.sub(" ", region) for region in regions)
    verdict = _decide(gold, last, announced=announced)
    for region in earlier if verdict.solved else ():
        other = _decide(gold, region, announced=announced)
        if other.detail.startswith("asserts") or find_denied(
            region, find_mentions(gold.correct, region, right=False)
        ):
            return scored(0.0, "several_answers", f"{region[:60]!r} before {last[:60]!r}")
    if unclear and (verdict.solved or (verdict.reason == "wrong" and unclear & options[0])):
        return abstain("letter_or_word", f"{sorted(unclear)} in {last[:80]!r}")
    is_denied_only = verdict.reason == "wrong" and not verdict.detail.startswith("asserts")
    if left_open := unselected(stated, options):
        return abstain(left_open, last[:80])
    if denying != text and is_denied_only:
        return abstain("false_option_named", last[:80])
    if verdict.solved and _affirms_several(gold, answer):
        return abstain("others_affirmed", last[:80])
    return verdict


def _affirms_several(gold: MultipleChoice, answer: str) -> bool:
    """Say whether a text begins by calling a list of competing options right: `A、C都对`.

    Only a question for the false option makes its answer the one that is left.
    """
    text = COMMAS.sub(r"\1 and ", DOTS.sub(r"\1&", plain(without_container(answer)[:WINDOW])))
    clause, _, following = clauses(text).partition("|")
    clause = BORDER.sub(" ", clause)
    spans = [span for option in gold.others for span in find_mentions(option, clause, right=False)]
    first = next(iter(group_lists(clause, spans)), [])
    if len(first) < 2 or not BEFORE_LETTER.fullmatch(clause[: first[0][0]]):
        return False
    after = clause[first[-1][1] :]
    is_question = "?" in after or following.lstrip().startswith("?")
    return bool(_IS_RIGHT.search(after)) and not NEGATED.search(after) and not is_question


def _decide(gold: MultipleChoice, asserted: str, *, announced: bool) -> Verdict:
    """Decide on the clauses of one announcement, or of a text that announces nothing."""
    mentions = find_mentions(gold.correct, asserted, right=True)
    others = [(option[0], find_mentions(option, asserted, right=False)) for option in gold.others]
    if len(mentions) + sum(len(spans) for _, spans in others) > MAX_MENTIONS:
        return response_fault("flooded", f"more than {MAX_MENTIONS} mentions of options")
    # "Shoes" inside the right answer "Running Shoes" is not a second answer, nor the reverse.
    rivals = [
        (name, span)
        for name, spans in others
        for span in spans
        if span not in mentions and not is_inside(span, mentions)
    ]
    spans = [span for _, span in rivals]
    until = end_of_naming(asserted, spans)
    named = [span for span in mentions if not is_inside(span, spans)]
    right = [span for span in named if span[0] < until or not is_letter(asserted, span)]
    denied = find_denied(asserted, [*spans, *right]) | find_explained_away(asserted, spans, right)
    # What was announced is not taken back: "Answer: A is wrong. B" asserts A.
    denied |= set[Span]() if announced else find_refuted(asserted, spans)
    denied |= find_beside_denied(asserted, rivals, denied)
    for name, span in rivals:
        if span not in denied:
            return scored(0.0, "several_answers" if right else "wrong", f"asserts {name!r}")
    if not right:
        return scored(0.0, "wrong", f"none of {list(gold.correct)[:4]!r} in {asserted[:80]!r}")
    anywhere = (*mentions, *find_mentions(gold.correct, asserted, right=False))
    named = [span for span in anywhere if not is_inside(span, spans)]
    if any(span in denied or is_denied(asserted, span, mentions) for span in named):
        return scored(0.0, "wrong", f"denied in {asserted[:80]!r}")
    asking = [alias for alias in gold.correct if plain(alias).rstrip().endswith("?")]
    questions = find_mentions(asking, asserted, right=True)
    if any(is_hedged(asserted, span, asks=span in questions) for span in right):
        return scored(0.0, "hedged", asserted[:80])
    return scored(1.0, "correct", asserted[:80])
