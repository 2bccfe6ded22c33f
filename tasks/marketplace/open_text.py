"""Open-text items: a messy title to tidy up, scored against a reference."""

import random

from data_schemas.prompts import Domain
from tasks.marketplace.items import Item
from tasks.marketplace.words import BRANDS, LANGUAGES, with_colour


def draw_open_text(rng: random.Random, level: int) -> Item:
    """Draw a messy title: shuffled, then with a sale slogan, repeated words and upper case."""
    language = rng.choice(LANGUAGES)
    brand, good = rng.choice(BRANDS), rng.choice(rng.choice(language.goods))
    colour, other_colour = rng.sample(language.colours, 2)
    pack = rng.randint(2, 9)
    pieces = [brand, colour, good]
    tail = ""
    if level >= 2:
        pieces.append(f"x{pack}")
        tail = f" x{pack}"
    rng.shuffle(pieces)
    if level >= 3:
        pieces.insert(rng.randrange(len(pieces) + 1), f"{language.sale}!")
    if level >= 4:
        pieces.append(rng.choice((brand, good)))
    messy = " ".join(pieces)
    if level >= 5:
        messy = messy.upper()
    tidy = f"{brand} {with_colour(language, good, colour)}{tail}"
    slips = (
        f"{brand} {with_colour(language, good, other_colour)}{tail}",
        f"{with_colour(language, good, colour)}{tail}",
        messy,
    )
    return Item(
        domain=Domain.OPEN_TEXT,
        language=language.tag,
        level=level,
        prompt=f"{language.tidy} {messy}",
        verifier="reference_text",
        answer={"reference": tidy},
        steps=f"{brand}, {colour}, {good}",
        shortcut="ok",
        solution=tidy,
        blunder_steps="ok",
        blunder=rng.choice(slips),
    )
