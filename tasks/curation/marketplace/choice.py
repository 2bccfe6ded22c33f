"""Choice items: the category of a title, or the brand with the best price, in eight languages."""

import random
from collections.abc import Sequence

from data_schemas.rows import Domain
from tasks.curation.marketplace.items import MarketItem
from tasks.curation.marketplace.words import BRANDS, CATEGORIES, LANGUAGES, Vocabulary, with_colour


def draw_choice(rng: random.Random, level: int) -> MarketItem:
    """Draw a category or price question in any language; more options with the level."""
    language = rng.choice(LANGUAGES)
    if level in (2, 4):
        return _brand_by_price(rng, language, level)
    return _category_of_title(rng, language, level)


def _category_of_title(rng: random.Random, language: Vocabulary, level: int) -> MarketItem:
    num_options = {1: 2, 3: 3, 5: 4}[level]
    indices = rng.sample(range(len(CATEGORIES)), num_options)
    right, wrong = indices[0], indices[1]
    good = rng.choice(language.goods[right])
    rng.shuffle(indices)
    names = [language.categories[index] for index in indices]
    title = with_colour(language, good, rng.choice(language.colours)) + " " + rng.choice(BRANDS)
    return _choice_item(
        language,
        level,
        f"{language.which_category.format(title=title)} {', '.join(names)}",
        names,
        (language.categories[right], f"{good}: {CATEGORIES[right]}"),
        (language.categories[wrong], f"{good}: {CATEGORIES[wrong]}"),
    )


def _brand_by_price(rng: random.Random, language: Vocabulary, level: int) -> MarketItem:
    num_options = 2 if level == 2 else 3
    brands = rng.sample(BRANDS, num_options)
    prices = rng.sample(range(10, 100), num_options)
    cheapest = rng.random() < 0.5
    ranked = sorted(zip(prices, brands, strict=True), reverse=not cheapest)
    ask = language.cheapest if cheapest else language.dearest
    offers = ", ".join(f"{price} {brand}" for brand, price in zip(brands, prices, strict=True))
    return _choice_item(
        language,
        level,
        f"{ask} {offers}",
        brands,
        (ranked[0][1], f"{ranked[0][0]} {ranked[0][1]}"),
        (ranked[1][1], f"{ranked[1][0]} {ranked[1][1]}"),
    )


def _choice_item(
    language: Vocabulary,
    level: int,
    prompt: str,
    options: Sequence[str],
    right: tuple[str, str],
    wrong: tuple[str, str],
) -> MarketItem:
    (solution, steps), (blunder, blunder_steps) = right, wrong
    return MarketItem(
        domain=Domain.CHOICE,
        language=language.tag,
        level=level,
        prompt=prompt,
        verifier="choice",
        answer={
            "correct": [solution],
            "others": [[option] for option in options if option != solution],
        },
        steps=steps,
        shortcut="ok",
        solution=solution,
        blunder_steps=blunder_steps,
        blunder=blunder,
    )
