"""Which method finds a leaked test question: `python -m tests.bench.curation.leaks DATA`.

Suite: the 1,319 test questions of GSM8K. MGSM's English questions are 250 of them, and its Chinese
ones their translations. The other sets are made of the first 250: the k-th number raised by k,
other names, or reworded (other words, and the sentences in another order).

Methods, in the order in which curation drops by them: 13 words in a row (`contamination.py`), the
same with masked numbers, the similarity of wordings (`overlap/nearness.py`), and the meaning
(`meaning/repeats.py`), here of the encoder in the folder `--encoder`. Each is counted alone.
"""

import argparse
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tasks.curation.contamination import decontaminate
from tasks.curation.items import Item
from tasks.curation.meaning.folder_encoder import FolderEncoder
from tasks.curation.meaning.neighbours import Neighbours
from tasks.curation.overlap.fingerprints import Fingerprinter
from tasks.curation.overlap.nearness import by_wording
from tasks.errors import DataError
from tasks.models.model_folder import SHIPPED
from tasks.platform.command_line import run
from tasks.platform.progress import progress
from tests.records import problem_of

_NUMBER = re.compile(r"\d[\d,]*")
_NAME = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]+")
_SENTENCE = re.compile(r"(?<=[.?!]) +")
_WORDS = {
    "how many": "what number of",
    "buys": "purchases",
    "each": "every single",
    "total": "overall sum",
    "gives": "hands",
    "sold": "traded away",
    "sells": "trades away",
    "makes": "produces",
    "spends": "pays out",
    "week": "seven-day period",
    "has": "owns",
    "left": "remaining",
    "twice": "two times",
    "half": "one half of",
    "eats": "consumes",
    "needs": "requires",
    "takes": "requires",
    "earns": "receives",
    "more than": "over and above",
}


def renumbered(text: str) -> str:
    """Raise the k-th number of a text by k; separators of thousands are lost."""
    found = iter(range(1, len(text) + 1))
    return _NUMBER.sub(lambda one: str(int(one[0].replace(",", "")) + next(found)), text)


def renamed(text: str) -> str:
    """Reverse the capitalised words within sentences."""
    return _NAME.sub(lambda one: one[0][::-1].capitalize(), text)


def reworded(text: str) -> str:
    """Put the last sentence first and the first one last, and use other words."""
    first, *others = _SENTENCE.split(text)
    moved = " ".join([*others[-1:], *others[:-1], first])
    for word, other in _WORDS.items():
        moved = re.sub(rf"\b{word}\b", other, moved, flags=re.IGNORECASE)
    return moved


PLANTED: Mapping[str, Callable[[str], str]] = {
    "other numbers": renumbered,
    "other names": renamed,
    "other numbers and names": lambda text: renamed(renumbered(text)),
    "reworded": reworded,
    "reworded, other numbers": lambda text: reworded(renumbered(text)),
}


def num_found(
    texts: Sequence[str],
    language: str,
    suite: Sequence[str],
    suite_language: str = "en",
    *,
    any_numbers: bool = False,
) -> int:
    """Count the texts that curation drops because of a suite.

    Args:
        texts: to train on.
        language: of the texts.
        suite: questions.
        suite_language: of the suite.
        any_numbers: numbers are masked besides, as curation does for a benchmark.
    """
    items, held_out = _items(texts, language), _items(suite, suite_language)
    left, found = decontaminate(items, held_out)
    if any_numbers:
        found += decontaminate(left, held_out, any_numbers=True)[1]
    return len(found)


def num_near(texts: Sequence[str], suite: Sequence[str]) -> int:
    """Count the texts that curation drops because their wording is near to a suite's question."""
    words = [Fingerprinter().of(_items(some, "en")).words for some in (texts, suite)]
    return sum(map(bool, by_wording(_items(suite, "en"), words[1]).leaks(words[0])))


def questions(path: Path) -> list[str]:
    """Read the questions of a file.

    Raises:
        DataError: the file cannot be read.
    """
    try:
        with path.open() as lines:
            return [json.loads(line)["question"] for line in lines]
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"{path} cannot be read: {error!r}. Set DATA.") from error


def leaks(data: Path, encoder: Path) -> Table:
    """Draw the table of what each method finds of each set."""
    suite = questions(data / "gsm8k" / "test.jsonl")
    sources = suite[:250]
    sets = {
        "MGSM, English": ("en", questions(data / "mgsm" / "en.jsonl")),
        "MGSM, Chinese": ("zh", questions(data / "mgsm" / "zh.jsonl")),
    }
    for name, plant in PLANTED.items():
        sets[name] = ("en", [plant(text) for text in sources])
    sets["GSM8K train"] = ("en", questions(data / "gsm8k" / "train.jsonl"))
    neighbours = Neighbours(_items(suite, "en"), FolderEncoder(encoder))
    methods = ("13 words", "and masked numbers", "wording", "meaning")
    table = Table("leaked", "texts", *methods)
    for name, (language, texts) in progress(sets.items(), "sets"):
        by_meaning = len(neighbours.sieve(_items(texts, language))[1])
        counts = (*_by_words(texts, language, suite), num_near(texts, suite), by_meaning)
        table.add_row(name, f"{len(texts)}", *(f"{count}" for count in counts))
    return table


def _by_words(texts: Sequence[str], language: str, suite: Sequence[str]) -> list[int]:
    return [num_found(texts, language, suite, any_numbers=masked) for masked in (False, True)]


def _items(texts: Sequence[str], language: str) -> list[Item]:
    return [_item(f"{place}", text, language) for place, text in enumerate(texts)]


def _item(key: str, text: str, language: str) -> Item:
    problem = problem_of(
        text, '{"value":"0"}', id=key, language=language, source="leaks", source_row=key
    )
    return Item(problem, text)


def main(arguments: Sequence[str]) -> None:
    """Read the command line and print the table."""
    parser = argparse.ArgumentParser(prog="leaks", description=__doc__)
    parser.add_argument("data", type=Path, help="folder with gsm8k and mgsm")
    parser.add_argument("--encoder", type=Path, default=SHIPPED, help="folder of a text encoder")
    asked = parser.parse_args(arguments)
    Console().print(leaks(asked.data, asked.encoder))


if __name__ == "__main__":
    run(main)
