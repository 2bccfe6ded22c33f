"""Open-text items: a messy title to tidy up, scored against a reference."""

import random
from dataclasses import dataclass, replace

from data_schemas.rows import Domain
from tasks.curation.marketplace.items import MarketItem
from tasks.curation.marketplace.words import BRANDS, LANGUAGES, Vocabulary, with_colour


@dataclass(frozen=True, slots=True)
class Title:
    """The parts of a tidy title; a part that is missing is ''."""

    language: Vocabulary
    brand: str
    colour: str
    good: str
    pack: str
    """x2 to x9."""

    @property
    def text(self) -> str:
        """The title: brand, good and colour in the order of the language, pack."""
        words = (self.brand, with_colour(self.language, self.good, self.colour).strip(), self.pack)
        return " ".join(word for word in words if word)


@dataclass(frozen=True, slots=True)
class OpenTextTask:
    """A messy title, what it should be, and a colour that it is not."""

    tidy: Title
    messy: str
    other_colour: str

    @property
    def prompt(self) -> str:
        """The request."""
        return f"{self.tidy.language.tidy} {self.messy}"


def draw_task(rng: random.Random, level: int) -> OpenTextTask:
    """Draw a messy title: shuffled, then with a sale slogan, repeated words and upper case."""
    language = rng.choice(LANGUAGES)
    brand, good = rng.choice(BRANDS), rng.choice(rng.choice(language.goods))
    colour, other_colour = rng.sample(language.colours, 2)
    size = rng.randint(2, 9)
    pack = f"x{size}" if level >= 2 else ""
    pieces = [brand, colour, good, *([pack] if pack else [])]
    rng.shuffle(pieces)
    if level >= 3:
        pieces.insert(rng.randrange(len(pieces) + 1), f"{language.sale}!")
    if level >= 4:
        pieces.append(rng.choice((brand, good)))
    messy = " ".join(pieces)
    if level >= 5:
        messy = messy.upper()
    return OpenTextTask(Title(language, brand, colour, good, pack), messy, other_colour)


def draw_open_text(rng: random.Random, level: int) -> MarketItem:
    """Draw a task with its answer and a typical slip: a colour, the brand, or nothing tidied."""
    task = draw_task(rng, level)
    tidy = task.tidy
    slips = (replace(tidy, colour=task.other_colour).text, replace(tidy, brand="").text, task.messy)
    return MarketItem(
        domain=Domain.OPEN_TEXT,
        language=tidy.language.tag,
        level=level,
        prompt=task.prompt,
        verifier="reference_text",
        answer={"reference": tidy.text},
        steps=f"{tidy.brand}, {tidy.colour}, {tidy.good}",
        shortcut="ok",
        solution=tidy.text,
        blunder_steps="ok",
        blunder=rng.choice(slips),
    )
