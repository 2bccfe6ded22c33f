"""Extraction items: a product title and the attributes to extract from it as JSON."""

import random

from data_schemas.rows import Domain
from tasks.curation.marketplace.items import MarketItem, compact
from tasks.curation.marketplace.words import BRANDS, LANGUAGES, MATERIALS, with_colour


def draw_extraction(rng: random.Random, level: int) -> MarketItem:
    """Draw a product title and one to four attributes to extract; high levels add distractors."""
    language = rng.choice(LANGUAGES)
    brand, material = rng.choice(BRANDS), rng.choice(MATERIALS)
    good = rng.choice(rng.choice(language.goods))
    colour, other_colour = rng.sample(language.colours, 2)
    size, pack = rng.randint(20, 48), rng.randint(2, 9)
    values: dict[str, object] = {
        "brand": brand,
        "color": colour,
        "item": good,
        "material": material,
        "size": size,
        "pack": pack,
    }
    pieces = [brand, with_colour(language, good, colour), material, f"size {size}", f"x{pack}"]
    rng.shuffle(pieces)
    if level >= 4:
        pieces.append(f"({other_colour} {rng.choice(BRANDS)})")
    names = rng.sample(list(values), min(level, 4))
    fields = {name: values[name] for name in names}
    broken = rng.choice(names)
    slips: dict[str, object] = {
        "brand": rng.choice(BRANDS),
        "color": other_colour,
        "item": material,
        "material": rng.choice([other for other in MATERIALS if other != material]),
        "size": pack,
        "pack": size,
    }
    return MarketItem(
        domain=Domain.EXTRACTION,
        language=language.tag,
        level=level,
        prompt=f"{' '.join(pieces)}\nJSON: {', '.join(names)}",
        verifier="extraction",
        answer={"fields": fields},
        steps=", ".join(str(values[name]) for name in names),
        shortcut="ok",
        solution=compact(fields),
        blunder_steps="ok",
        blunder=compact({**fields, broken: slips[broken]}),
    )
