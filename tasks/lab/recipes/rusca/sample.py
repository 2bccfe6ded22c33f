"""The sample house: ads with a hidden house style, and the presets that train on it."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path

from data_schemas.rows import MERGED, Domain
from tasks.curation.adapters.general import problem_or_demonstration
from tasks.curation.adapters.table import Adapter
from tasks.curation.items import Item
from tasks.curation.marketplace.drawing import draw_items
from tasks.curation.marketplace.words import ADJECTIVES, COLOURS, ENGLISH, MATERIALS
from tasks.curation.rows import RawRow
from tasks.store.files import write_bytes

# A hidden house style: ads are asked for without a word of the rules that they are judged by.
#
# The request is bare ('Ad for a white cotton kite.'). The rubric has three rules, which depend on
# the category of the good, and an ad that says the word of another category breaks one: no ad fits
# all. Each rule is a criterion in the words of the instructions that the model was taught
# (`tasks.curation.marketplace.instruction`) and is checked by IFEval's verifier, without a judge.
# Teaching material never names a material, so it shares no request.

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


# The sample house: ads with a hidden house style, and the instructions that teach its rules.
#
# `problems.jsonl` contains bare requests, each with its rubric; `demonstrations.jsonl` contains
# the sample world's instructions, in which every rule is written out.

SOURCE = f"{__name__}:SAMPLE"
"""Its name in settings."""
PROBLEMS = "problems.jsonl"
DEMONSTRATIONS = "demonstrations.jsonl"
DEMONSTRATIONS_PER_PARENT = 700


def generate(seed: int, folder: Path) -> None:
    """Write both files; the same seed gives the same bytes."""
    rng = random.Random(f"sample house/{seed}")
    common = {"domain": Domain.INSTRUCTION, "language": "en"}
    problems = [
        common
        | {
            "id": f"p{number:05d}",
            "level": 1,
            "prompt": request.prompt,
            "verifier": "rule_rubric",
            "answer": request.answer,
        }
        for number, request in enumerate(draw_requests(rng))
    ]
    items = draw_items(rng, Domain.INSTRUCTION, problems=False)
    demonstrations = [
        common
        | {
            "id": f"d{number:05d}{parent[0]}",
            "level": item.level,
            "prompt": item.prompt,
            "response": item.careful,
            "parent": parent,
            "verifier": item.verifier,
            "answer": item.answer,
        }
        for parent in MERGED
        for number, item in enumerate(islice(items, DEMONSTRATIONS_PER_PARENT))
    ]
    for name, rows in ((PROBLEMS, problems), (DEMONSTRATIONS, demonstrations)):
        lines = [json.dumps(row, ensure_ascii=False) for row in rows]
        write_bytes(folder / name, ("\n".join(lines) + "\n").encode())


def sample_house(row: RawRow) -> list[Item]:
    """Read a row of the generated ads with a hidden house style, as `prompt_jsonl`.

    What a demonstration answers verifies it and is no problem: its rules are not hidden.
    """
    return problem_or_demonstration(row, "sample_house")


SAMPLE = Adapter(
    sample_house, ("domain", "language", "prompt"), (PROBLEMS, DEMONSTRATIONS), generate
)
