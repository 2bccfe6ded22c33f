"""Instruction items: an ad with one to four checkable rules, named by IFEval's ids."""

import random
from collections.abc import Sequence

from data_schemas.rows import Domain
from tasks.curation.marketplace.items import MarketItem
from tasks.curation.marketplace.words import ADJECTIVES, COLOURS, ENGLISH_GOODS

_RULES_PER_LEVEL = (1, 2, 2, 3, 4)
_ENDINGS = ("Buy now!", "Hurry up!", "Order today!", "Thank you.")


def draw_instruction(rng: random.Random, level: int) -> MarketItem:
    """Draw a request for an ad with one to four checkable rules (IFEval's ids)."""
    colour, good = rng.choice(COLOURS), rng.choice(ENGLISH_GOODS)
    num_rules = _RULES_PER_LEVEL[level - 1]
    rules = sorted(rng.sample(_RULES, num_rules), key=_RULES.index)
    if level >= 3 and "keywords:existence" not in rules:
        rules[rng.randrange(num_rules)] = "keywords:existence"
        rules.sort(key=_RULES.index)
    words = rng.sample(ADJECTIVES, 2 if level >= 3 else 1)
    spare = rng.choice([word for word in ADJECTIVES if word not in words])
    ad = _Ad(colour, good, words, spare, rng.choice(_ENDINGS), rng.randint(8, 10))
    broken = rng.choice(rules)
    kwargs = [ad.kwargs(rule) for rule in rules]
    return MarketItem(
        domain=Domain.INSTRUCTION,
        language="en",
        level=level,
        prompt=f"Ad for a {colour} {good}. " + " ".join(ad.request(rule) for rule in rules),
        verifier="instruction_rules",
        answer={
            "instruction_id_list": rules,
            "kwargs": kwargs,
            "about": [f"{colour} {good}"],
            "language": "en",
        },
        steps=", ".join(ad.note(rule) for rule in rules),
        shortcut="ok",
        solution=ad.text(set(rules)),
        blunder_steps="ok",
        blunder=ad.text(set(rules) - {broken}, broken),
    )


_NOTES = {
    "keywords:existence": "words",
    "length_constraints:number_words": "long",
    "punctuation:no_comma": "no comma",
    "change_case:english_lowercase": "lowercase",
    "startend:end_checker": "end",
    "startend:quotation": "quotes",
}
_RULES = list(_NOTES)


class _Ad:
    """An ad that satisfies a given set of rules and tends to break the others."""

    def __init__(
        self, colour: str, good: str, words: Sequence[str], spare: str, ending: str, num_words: int
    ) -> None:
        self._thing = f"{colour} {good}"
        self._words = words
        self._spare = spare
        self._ending = ending
        self._num_words = num_words

    def request(self, rule: str) -> str:
        """Return the request for a rule in words."""
        return {
            "keywords:existence": f"Say {' and '.join(self._words)}.",
            "length_constraints:number_words": f"At least {self._num_words} words.",
            "punctuation:no_comma": "No commas.",
            "change_case:english_lowercase": "Lowercase.",
            "startend:end_checker": f"End with {self._ending}",
            "startend:quotation": "In quotes.",
        }[rule]

    def note(self, rule: str) -> str:
        """Return the short note about a rule for the worked steps."""
        if rule == "keywords:existence":
            return f"say {' '.join(self._words)}"
        return _NOTES[rule]

    def kwargs(self, rule: str) -> dict[str, object]:
        """Return the arguments of a rule in IFEval's form."""
        if rule == "keywords:existence":
            return {"keywords": list(self._words)}
        if rule == "length_constraints:number_words":
            return {"relation": "at least", "num_words": self._num_words}
        if rule == "startend:end_checker":
            return {"end_phrase": self._ending}
        return {}

    def text(self, rules: set[str], broken: str = "") -> str:
        """Write the ad so that it satisfies `rules` and, where possible, breaks `broken`."""
        words = list(self._words) if "keywords:existence" in rules else []
        if broken == "keywords:existence":
            words = [self._spare]
        words = words or [self._spare]
        if "punctuation:no_comma" in rules:
            text = f"A {' '.join(words)} {self._thing}"
        else:
            text = f"Wow, a {', '.join(words)} {self._thing}"
        if "length_constraints:number_words" in rules:
            text += " for you and all your friends"
        text += "."
        if "startend:end_checker" in rules:
            text += f" {self._ending}"
        if "change_case:english_lowercase" in rules:
            text = text.lower()
        if "startend:quotation" in rules:
            text = f'"{text}"'
        return text
