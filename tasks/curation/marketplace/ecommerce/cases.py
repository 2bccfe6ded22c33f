"""Cases of thirteen e-commerce tasks that a rule can verify, each asked in eight languages.

What is drawn is the case: places in the vocabulary, brands, prices, days. Every language asks for
the same one, so that models are compared between languages on the same cases. Goods at the same
place are of the same category, but not always translations of each other.
"""

import random
from collections.abc import Callable, Mapping, Sequence

from data_schemas.rows import Domain
from tasks.curation.marketplace.ecommerce.phrases import PHRASES, Phrases
from tasks.curation.marketplace.items import MarketItem, compact
from tasks.curation.marketplace.open_text import Title
from tasks.curation.marketplace.words import (
    BRANDS,
    CATEGORIES,
    LANGUAGES,
    NAMES,
    Vocabulary,
    with_colour,
)

Ask = Callable[[Vocabulary, Phrases], MarketItem]
"""Asks for one case in one language."""
_NUM_COLOURS, _GOODS_PER_CATEGORY = 5, 3
_KEYS = ("brand", "color", "item", "pack")
_Good = tuple[int, int]
"""Category and place in it."""


def draw_case(task: str, rng: random.Random) -> list[MarketItem]:
    """Draw one case of a task: an item per language, in the order of LANGUAGES."""
    ask = TASKS[task](rng)
    return [ask(language, PHRASES[language.tag]) for language in LANGUAGES]


def _guide(rng: random.Random) -> Ask:
    """Only one offer has the product, the colour and the price."""
    good, other = _goods(rng, 2)
    colour, another = rng.sample(range(_NUM_COLOURS), 2)
    limit = rng.randint(20, 60)
    brands = rng.sample(BRANDS, 4)
    near, far = rng.randint(5, limit - 1), rng.randint(limit + 1, limit + 30)
    kinds = [
        (good, colour, near),
        (good, colour, far),
        (good, another, near),
        (other, colour, near),
    ]
    offers = list(zip(brands, kinds, strict=True))
    rng.shuffle(offers)

    def ask(language: Vocabulary, phrases: Phrases) -> MarketItem:
        request = phrases.guide.format(item=_item(language, good, colour), limit=limit)
        lines = [f"{brand}: {_item(language, *kind[:2])}, {kind[2]}" for brand, kind in offers]
        return _choice(language, "\n".join([request, *lines]), brands)

    return ask


def _after_sales(rng: random.Random) -> Ask:
    """The reason and the days decide between three outcomes."""
    (good,), colour = _goods(rng, 1), rng.randrange(_NUM_COLOURS)
    reason, days = rng.randrange(3), rng.choice((*range(2, 8), *range(8, 31, 3), *range(31, 60, 5)))
    outcome = reason if days <= (30, 7, 0)[reason] else 2

    def ask(language: Vocabulary, phrases: Phrases) -> MarketItem:
        options = phrases.outcomes
        prompt = phrases.after_sales.format(
            faulty=phrases.reasons[0],
            wrong=phrases.reasons[1],
            refund=options[0],
            exchange=options[1],
            reject=options[2],
            item=_item(language, good, colour),
            days=days,
            reason=phrases.reasons[reason],
            options=", ".join(options),
        )
        return _choice(language, prompt, _first(options, outcome))

    return ask


def _recommendation(rng: random.Random) -> Ask:
    """Two goods of a category were bought; the third is among goods of others."""
    category, *others = rng.sample(range(len(CATEGORIES)), 4)
    first, second, third = rng.sample(range(_GOODS_PER_CATEGORY), 3)
    wrong = [(other, rng.randrange(_GOODS_PER_CATEGORY)) for other in others]
    options = [(category, third), *wrong]
    order = rng.sample(range(len(options)), len(options))

    def ask(language: Vocabulary, phrases: Phrases) -> MarketItem:
        goods = [_name(language, one) for one in options]
        basket = ", ".join(_name(language, (category, place)) for place in (first, second))
        listing = ", ".join(goods[place] for place in order)
        return _choice(
            language, phrases.recommendation.format(bought=basket, options=listing), goods
        )

    return ask


def _rewriting(rng: random.Random) -> Ask:
    """A wordy wish as a search query of brand, product and colour."""
    (good,), (colour, other), brand = _goods(rng, 1), _colours(rng), rng.choice(BRANDS)

    def ask(language: Vocabulary, phrases: Phrases) -> MarketItem:
        request = phrases.request.format(brand=brand, item=_item(language, good, colour))
        query = f"{brand} {_item(language, good, colour)}"
        wrong = f"{brand} {_item(language, good, other)}"
        return _text(language, phrases.rewriting.format(request=request), query, wrong)

    return ask


def _attributes(rng: random.Random) -> Ask:
    """Brand, colour, product and pack of a shuffled title."""
    (good,), (colour, other), brand = _goods(rng, 1), _colours(rng), rng.choice(BRANDS)
    pack = rng.randint(2, 9)
    order = rng.sample(range(3), 3)

    def ask(language: Vocabulary, phrases: Phrases) -> MarketItem:
        parts = (brand, _item(language, good, colour), f"x{pack}")
        title = " ".join(parts[place] for place in order)
        colours = language.colours
        result = (brand, colours[colour], _name(language, good), f"x{pack}")
        fields: dict[str, str] = dict(zip(_KEYS, result, strict=True))
        prompt = phrases.attributes.format(keys=", ".join(_KEYS), title=title)
        return _fields(language, prompt, fields, {"color": colours[other]})

    return ask


def _brand(rng: random.Random) -> Ask:
    """The title names a second brand, with which the product can be used."""
    (good,), colour, brands = _goods(rng, 1), rng.randrange(_NUM_COLOURS), rng.sample(BRANDS, 2)

    def ask(language: Vocabulary, phrases: Phrases) -> MarketItem:
        fits = phrases.fits.format(other=brands[1])
        title = f"{_item(language, good, colour)} {brands[0]}, {fits}"
        return _choice(language, phrases.brand.format(title=title), brands)

    return ask


def _category(rng: random.Random) -> Ask:
    """One of four categories of a title."""
    categories = rng.sample(range(len(CATEGORIES)), 4)
    good, colour = (categories[0], rng.randrange(_GOODS_PER_CATEGORY)), rng.randrange(_NUM_COLOURS)
    brand, order = rng.choice(BRANDS), rng.sample(range(4), 4)

    def ask(language: Vocabulary, phrases: Phrases) -> MarketItem:
        del phrases
        names = [language.categories[place] for place in categories]
        question = language.which_category.format(title=f"{_item(language, good, colour)} {brand}")
        return _choice(language, f"{question} {', '.join(names[place] for place in order)}", names)

    return ask


def _relevance(rng: random.Random) -> Ask:
    """Graded as ESCI's judgments, without complements."""
    good, other = _goods(rng, 2)
    (colour, another), brand, grade = _colours(rng), rng.choice(BRANDS), rng.randrange(3)

    def ask(language: Vocabulary, phrases: Phrases) -> MarketItem:
        offer = ((good, colour), (good, another), (other, colour))[grade]
        exact, substitute, irrelevant = phrases.grades
        prompt = phrases.relevance.format(
            query=_item(language, good, colour),
            title=f"{brand} {_item(language, *offer)}",
            exact=exact,
            substitute=substitute,
            irrelevant=irrelevant,
        )
        return _choice(language, prompt, _first(phrases.grades, grade))

    return ask


def _address(rng: random.Random) -> Ask:
    """The parts of a line with an address."""
    name, city, street = rng.choice(NAMES), rng.randrange(4), rng.randrange(4)
    number, postcode = str(rng.randint(1, 99)), str(rng.randint(10000, 99999))

    def ask(language: Vocabulary, phrases: Phrases) -> MarketItem:
        fields = {
            "name": name,
            "street": phrases.streets[street],
            "number": number,
            "city": phrases.cities[city],
            "postcode": postcode,
        }
        line = phrases.address_line.format(**fields)
        wrong = {"number": postcode, "postcode": number}
        return _fields(language, phrases.address.format(line=line), fields, wrong)

    return ask


def _title(rng: random.Random) -> Ask:
    """A title with a slogan and its words in any order, tidied up as in the sample world."""
    (good,), (colour, other), brand = _goods(rng, 1), _colours(rng), rng.choice(BRANDS)
    pack, order = f"x{rng.randint(2, 9)}", rng.sample(range(5), 5)

    def ask(language: Vocabulary, phrases: Phrases) -> MarketItem:
        del phrases
        colours, name = language.colours, _name(language, good)
        words = (brand, colours[colour], name, pack, f"{language.sale}!")
        messy = " ".join(words[place] for place in order)
        tidy = Title(language, brand, colours[colour], name, pack).text
        wrong = Title(language, brand, colours[other], name, pack).text
        return _text(language, f"{language.tidy} {messy}", tidy, wrong)

    return ask


def _selling_points(rng: random.Random) -> Ask:
    """Three points, each with a fact of the product; the wording is not judged."""
    (good,), colour = _goods(rng, 1), rng.randrange(_NUM_COLOURS)
    brand, price = rng.choice(BRANDS), rng.randint(100, 999)

    def ask(language: Vocabulary, phrases: Phrases) -> MarketItem:
        facts = [brand, language.colours[colour], str(price)]
        instructions = {
            "instruction_id_list": ["keywords:existence", "detectable_format:number_bullet_lists"],
            "kwargs": [{"keywords": facts}, {"num_bullets": len(facts)}],
        }
        item = _item(language, good, colour)
        prompt = phrases.selling_points.format(item=item, brand=brand, price=price)
        points, fewer = ("\n".join(f"* {fact}" for fact in some) for some in (facts, facts[:2]))
        form = (Domain.INSTRUCTION, "instruction_rules", instructions)
        return _question(language, prompt, form, points, fewer)

    return ask


def _matching(rng: random.Random) -> Ask:
    """The same title in another order, or with another colour or pack."""
    (good,), (colour, another), brand = _goods(rng, 1), _colours(rng), rng.choice(BRANDS)
    packs, difference = rng.sample(range(2, 10), 2), rng.choice((0, 0, 1, 2))

    def ask(language: Vocabulary, phrases: Phrases) -> MarketItem:
        left = f"{brand} {_item(language, good, colour)} x{packs[0]}"
        second_colour = another if difference == 1 else colour
        right = f"x{packs[difference == 2]} {_item(language, good, second_colour)} {brand}"
        same, different = phrases.same, phrases.different
        prompt = phrases.matching.format(same=same, different=different, left=left, right=right)
        return _choice(language, prompt, _first((same, different), int(difference > 0)))

    return ask


def _price(rng: random.Random) -> Ask:
    """The change of a purchase."""
    (good,), colour, name = _goods(rng, 1), rng.randrange(_NUM_COLOURS), rng.choice(NAMES)
    count, price = rng.randint(2, 9), rng.randint(11, 99)
    payment = count * price + rng.randint(1, 99)

    def ask(language: Vocabulary, phrases: Phrases) -> MarketItem:
        item = _item(language, good, colour)
        prompt = phrases.price.format(name=name, count=count, price=price, paid=payment, item=item)
        change = str(payment - count * price)
        form = (Domain.MATHS, "final_answer", {"value": change})
        return _question(language, prompt, form, change, str(payment - price))

    return ask


TASKS: dict[str, Callable[[random.Random], Ask]] = {
    "guide": _guide,
    "after_sales": _after_sales,
    "recommendation": _recommendation,
    "rewriting": _rewriting,
    "attributes": _attributes,
    "brand": _brand,
    "category": _category,
    "relevance": _relevance,
    "address": _address,
    "title": _title,
    "selling_points": _selling_points,
    "matching": _matching,
    "price": _price,
}
"""What draws a case of each task."""


def _goods(rng: random.Random, amount: int) -> list[_Good]:
    """Draw goods of different categories."""
    categories = rng.sample(range(len(CATEGORIES)), amount)
    return [(category, rng.randrange(_GOODS_PER_CATEGORY)) for category in categories]


def _colours(rng: random.Random) -> tuple[int, int]:
    colour, other = rng.sample(range(_NUM_COLOURS), 2)
    return colour, other


def _name(language: Vocabulary, good: _Good) -> str:
    return language.goods[good[0]][good[1]]


def _item(language: Vocabulary, good: _Good, colour: int) -> str:
    return with_colour(language, _name(language, good), language.colours[colour])


def _first(options: tuple[str, ...], right: int) -> list[str]:
    """Return options with the right one first."""
    return [options[right], *(one for place, one in enumerate(options) if place != right)]


def _choice(language: Vocabulary, prompt: str, options: Sequence[str]) -> MarketItem:
    """Ask for the first of the options."""
    right, *others = options
    answer: dict[str, object] = {"correct": [right], "others": [[other] for other in others]}
    return _question(language, prompt, (Domain.CHOICE, "choice", answer), right, others[0])


def _fields(
    language: Vocabulary, prompt: str, fields: dict[str, str], wrong: dict[str, str]
) -> MarketItem:
    form = (Domain.EXTRACTION, "extraction", {"fields": fields})
    return _question(language, prompt, form, compact(fields), compact(fields | wrong))


def _text(language: Vocabulary, prompt: str, reference: str, wrong: str) -> MarketItem:
    form = (Domain.OPEN_TEXT, "reference_text", {"reference": reference})
    return _question(language, prompt, form, reference, wrong)


def _question(
    language: Vocabulary,
    prompt: str,
    form: tuple[Domain, str, Mapping[str, object]],
    solution: str,
    blunder: str,
) -> MarketItem:
    """Return an item without worked steps: nobody imitates it."""
    domain, verifier, answer = form
    return MarketItem(
        domain=domain,
        language=language.tag,
        level=1,
        prompt=prompt,
        verifier=verifier,
        answer=dict(answer),
        steps="",
        shortcut="",
        solution=solution,
        blunder_steps="",
        blunder=blunder,
    )
