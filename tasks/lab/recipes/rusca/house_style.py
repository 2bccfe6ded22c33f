"""A hidden house style: ads are asked for without a word of the rules that they are judged by.

The request is bare ('Ad for a white cotton kite.'). The rubric has three rules, which depend on
the category of the good, and an ad that says the word of another category breaks one: no ad fits
all. Each rule is a criterion in the words of the instructions that the model was taught
(`tasks.curation.marketplace.instruction`) and is checked by IFEval's verifier, without a judge.
Teaching material never names a material, so it shares no request.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from tasks.curation.marketplace.words import ADJECTIVES, COLOURS, ENGLISH, MATERIALS

_LOWERCASE = ("Lowercase.", {"change_case:english_lowercase": {}})
_ENDING = ("End with Thank you.", {"startend:end_checker": {"end_phrase": "Thank you."}})
_QUOTES = ("In quotes.", {"startend:quotation": {}})
_PAIRS = ((_LOWERCASE, _QUOTES), (_LOWERCASE, _ENDING), (_ENDING, _QUOTES))


@dataclass(frozen=True, slots=True)
class HouseStyle:
    """A request and the category whose style it must have."""

    prompt: str
    category: int
    """In the order of `words.CATEGORIES`."""

    @property
    def answer(self) -> dict[str, object]:
        """The gold of the verifier `rule_rubric`."""
        word = ADJECTIVES[self.category % len(ADJECTIVES)]
        others = [other for other in ADJECTIVES if other != word]
        keywords = {
            "keywords:existence": {"keywords": [word]},
            "keywords:forbidden_words": {"forbidden_words": others},
        }
        rules = ((f"Say {word}.", keywords), *_PAIRS[self.category % len(_PAIRS)])
        criteria = [
            {
                "criterion": text,
                "points": 1.0,
                "verifier": "instruction_rules",
                "answer": {"instruction_id_list": [*rule], "kwargs": [*rule.values()]},
            }
            for text, rule in rules
        ]
        return {"criteria": criteria, "aggregation": "ruscarl"}


def draw_requests(rng: random.Random) -> Iterator[HouseStyle]:
    """Yield every request once, in random order."""
    goods = [(good, place) for place, row in enumerate(ENGLISH.goods) for good in row]
    results = list(product(COLOURS, MATERIALS, goods))
    rng.shuffle(results)
    for colour, material, (good, category) in results:
        yield HouseStyle(f"Ad for a {colour} {material} {good}.", category)
