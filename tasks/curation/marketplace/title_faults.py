"""Answers to open-text tasks with known faults, as policies of the family's tasks make them.

A fault is a word by which an answer differs from the tidy title: a part that is wrong or missing,
or a slogan, a repeated word, a foreign one or one in the wrong place. The family's rule verifier,
the similarity to the reference, scores 1 only without a fault; case and spaces are none to it.
"""

import random
from collections.abc import Callable
from dataclasses import replace

from tasks.curation.marketplace.open_text import Title
from tasks.curation.marketplace.words import BRANDS, LANGUAGES

Fault = Callable[[random.Random, Title], str]


def same_title(rng: random.Random, tidy: Title) -> str:
    """Write the tidy title in another case: to the rule verifier it is equal."""
    return rng.choice((str.lower, str.upper))(tidy.text)


def wrong_brand(rng: random.Random, tidy: Title) -> str:
    """Write another brand, or none."""
    others = [brand for brand in BRANDS if brand != tidy.brand]
    return replace(tidy, brand=rng.choice(("", *rng.sample(others, 4)))).text


def wrong_colour(rng: random.Random, tidy: Title) -> str:
    """Write another colour of the language, or none."""
    others = [colour for colour in tidy.language.colours if colour != tidy.colour]
    return replace(tidy, colour=rng.choice(("", *others))).text


def wrong_good(rng: random.Random, tidy: Title) -> str:
    """Write another good, none, or the beginning of the good with the end of another one."""
    others = [good for row in tidy.language.goods for good in row if good != tidy.good]
    other = rng.choice(others)
    mixed = tidy.good[: (len(tidy.good) + 1) // 2] + other[len(other) // 2 :]
    name = rng.choice(("", other, other, mixed))
    return replace(tidy, good=name if name != tidy.good else other).text


def wrong_pack(rng: random.Random, tidy: Title) -> str:
    """Write another pack, none, or one that was not asked for."""
    others = [f"x{size}" for size in range(2, 10) if f"x{size}" != tidy.pack]
    return replace(tidy, pack=rng.choice(("", *others) if tidy.pack else others)).text


def added_word(rng: random.Random, tidy: Title) -> str:
    """Insert a slogan, a word of the title again, or a word of a title in any language."""
    language, words = rng.choice(LANGUAGES), tidy.text.split(" ")
    foreign = rng.choice((*BRANDS, *language.colours, *rng.choice(language.goods)))
    words.insert(
        rng.randrange(len(words) + 1),
        rng.choice((f"{tidy.language.sale}!", rng.choice(words), foreign)),
    )
    return " ".join(words)


def moved_word(rng: random.Random, tidy: Title) -> str:
    """Write the words in another order."""
    words = tidy.text.split(" ")
    moved = words.copy()
    while moved == words:
        rng.shuffle(moved)
    return " ".join(moved)


def two_faults(rng: random.Random, tidy: Title) -> str:
    """Write another title of the same pack, in which only the language is right."""
    language = tidy.language
    good = rng.choice(rng.choice(language.goods))
    other = Title(language, rng.choice(BRANDS), rng.choice(language.colours), good, tidy.pack)
    return other.text


def only_slogans(rng: random.Random, tidy: Title) -> str:
    """Write nothing but slogans."""
    return " ".join([f"{tidy.language.sale}!"] * rng.randint(1, 3))


FAULTS: tuple[Fault, ...] = (
    wrong_brand,
    wrong_colour,
    wrong_good,
    wrong_pack,
    added_word,
    moved_word,
    two_faults,
    only_slogans,
)
"""Each may by chance write the tidy title."""


def first_fault(tidy: str, answer: str) -> str | None:
    """Return an answer up to its first word that differs from the title; None without a fault.

    An answer that ends too early, or goes on, is returned up to there.
    """
    expected, words = tidy.split(), answer.split()
    if [word.casefold() for word in expected] == [word.casefold() for word in words]:
        return None
    for place, word in enumerate(words):
        if place >= len(expected) or word.casefold() != expected[place].casefold():
            return " ".join(words[: place + 1])
    return " ".join(words)
