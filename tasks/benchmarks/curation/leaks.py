"""Which method finds a leaked test question: `python -m tasks.benchmarks.curation.leaks DATA`.

Suite: the 1,319 test questions of GSM8K. MGSM's English questions are 250 of them, and its Chinese
ones their translations. The other sets are made of the first 250: the k-th number raised by k,
other names, or reworded (other words, and the sentences in another order).

Methods: the 13 words in a row that curation drops (`curation/contamination.py`), and those with
masked numbers that it drops of a benchmark; the Jaccard similarity of word 3-grams, if that with
the original exceeds the one that 1 % of 1,000 training questions of GSM8K have with any question of
the suite; and what curation drops by meaning (`curation/meaning/neighbours.py`).
"""

import argparse
import json
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from data_schemas.prompts import Domain, Message, Problem, Role
from tasks.curation.cleaning.wording import normalise
from tasks.curation.contamination import decontaminate
from tasks.curation.dedup import NGRAM
from tasks.curation.items import Item
from tasks.curation.meaning.folder_encoder import FolderEncoder
from tasks.curation.meaning.neighbours import Neighbours
from tasks.curation.overlap.fingerprints import Fingerprinter, shingles
from tasks.errors import DataError
from tasks.interchange.model_folder import SHIPPED
from tasks.platform.command_line import run

CLEAN = 1000
FALSE_POSITIVES = 0.01
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

Similarity = Callable[[Sequence[str]], NDArray[np.float64]]
"""Maps texts to [texts, questions of the suite]."""


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
    items = [_item(f"{number}", text, language) for number, text in enumerate(texts)]
    held_out = [_item(f"suite-{number}", text, suite_language) for number, text in enumerate(suite)]
    left, found = decontaminate(items, held_out)
    if any_numbers:
        found += decontaminate(left, held_out, any_numbers=True)[1]
    return len(found)


def by_shingles(suite: Sequence[str]) -> Similarity:
    """Return the Jaccard similarity of word 3-grams with every question of a suite."""
    read = Fingerprinter().words
    sizes = np.zeros(len(suite))
    owners: dict[int, list[int]] = defaultdict(list)
    for number, text in enumerate(suite):
        own = shingles(read(normalise(text)), NGRAM).tolist()
        sizes[number] = len(own)
        for one in own:
            owners[one].append(number)

    def compare(texts: Sequence[str]) -> NDArray[np.float64]:
        rows = []
        for text in texts:
            own = shingles(read(normalise(text)), NGRAM).tolist()
            shared = [number for one in own for number in owners.get(one, ())]
            both = np.bincount(np.array(shared, np.int64), minlength=len(suite))
            rows.append(both / (len(own) + sizes - both))
        return np.array(rows)

    return compare


def threshold(clean: NDArray[np.float64]) -> float:
    """Return what 1 % of clean texts exceed.

    Args:
        clean: similarity of each with the nearest question of the suite.
    """
    return float(np.quantile(clean, 1 - FALSE_POSITIVES))


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
    clean = questions(data / "gsm8k" / "train.jsonl")[:CLEAN]
    english = questions(data / "mgsm" / "en.jsonl")
    sources = suite[: len(english)]
    places = [suite.index(text) for text in english]
    sets: dict[str, tuple[str, list[str], list[int] | None]] = {
        "MGSM, English": ("en", english, places),
        "MGSM, Chinese": ("zh", questions(data / "mgsm" / "zh.jsonl"), places),
    }
    for name, plant in PLANTED.items():
        sets[name] = ("en", [plant(text) for text in sources], list(range(len(sources))))
    sets["GSM8K train"] = ("en", clean, None)
    similarity = by_shingles(suite)
    limit = threshold(similarity(clean).max(axis=1))
    questions_of_suite = [_item(f"suite-{place}", text, "en") for place, text in enumerate(suite)]
    neighbours = Neighbours(questions_of_suite, FolderEncoder(encoder))
    table = Table("leaked", "texts", "13 words", "and masked numbers")
    table.add_column(f"Jaccard > {limit:.2f}")
    table.add_column("meaning")
    for name, (language, texts, originals) in sets.items():
        found = similarity(texts)
        own = found.max(axis=1) if originals is None else found[np.arange(len(texts)), originals]
        items = [_item(f"{place}", text, language) for place, text in enumerate(texts)]
        near = len(neighbours.sieve(items)[1])
        counts = (*_by_words(texts, language, suite), (own > limit).sum(), near)
        table.add_row(name, f"{len(texts)}", *(f"{count}" for count in counts))
    return table


def _by_words(texts: Sequence[str], language: str, suite: Sequence[str]) -> list[int]:
    return [num_found(texts, language, suite, any_numbers=masked) for masked in (False, True)]


def _item(key: str, text: str, language: str) -> Item:
    problem = Problem(
        id=key,
        domain=Domain.MATHS,
        language=language,
        messages=(Message(role=Role.USER, content=text),),
        verifier="final_answer",
        answer='{"value":"0"}',
        source="leaks",
        source_row=key,
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
