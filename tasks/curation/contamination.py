"""Training items that repeat what a held-out problem says.

An item is dropped if its own words are those of a held-out problem, or if it shares a
run of 13 words with one, signs left out (GPT-3, appendix C). As there, a run that more
than ten different training texts contain is a phrase of the genre and no leak.
Differs: in scripts without spaces a word counts as three characters.
"""

import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from data_schemas.prompts import Problem
from data_schemas.quarantine import Outcome, Quarantined
from tasks.curation.items import Item, Sieved, refuse
from tasks.curation.scripts import SPACELESS, primary
from tasks.curation.wording import normalised, shingles, words

STAGE = "contamination"
COMMON = 10
"""A run in more different training texts than this is a common phrase."""
CHARACTERS_PER_WORD = 3
_KEPT_SIGNS = frozenset("+-*/%^<=>()[]{}")

Run = tuple[str, ...]


def decontaminate(training: Sequence[Item], held_out: Sequence[Item], ngram: int) -> Sieved:
    """Drop every training item that overlaps with a held-out problem, naming it.

    Args:
        training: problems and demonstrations.
        held_out: all held-out suites together.
        ngram: words in a row that count as overlap.
    """
    said = {id(item): _said(item, ngram) for item in [*training, *held_out]}
    whole = {text: item.record.id for item in reversed(held_out) for text in said[id(item)].texts}
    runs: dict[Run, str] = {}
    for item in held_out:
        for run in said[id(item)].runs:
            runs.setdefault(run, item.record.id)
    common = _common([said[id(item)] for item in training], runs)
    kept: list[Item] = []
    refused: list[Quarantined] = []
    for item in training:
        mine = said[id(item)]
        twin = next((whole[text] for text in mine.texts if text in whole), None)
        leaks = sorted(run for run in mine.runs if run in runs and run not in common)
        if twin is not None:
            refused.append(_drop(item, f"its words are those of held-out {twin}"))
        elif leaks:
            refused.append(_drop(item, f"held-out {runs[leaks[0]]}: '{' '.join(leaks[0])}'"))
        else:
            kept.append(item)
    return kept, refused


def as_items(problems: Sequence[Problem]) -> list[Item]:
    """Wrap problems of an earlier run, whose template text is no longer separable."""
    return [Item(problem, problem.prompt_text) for problem in problems]


@dataclass(frozen=True, slots=True)
class _Said:
    """The text of an item, in the two forms that are compared."""

    texts: tuple[str, str]
    """Its own words; its whole prompt."""
    runs: set[Run]


def _said(item: Item, ngram: int) -> _Said:
    if primary(item.record.language) in SPACELESS:
        ngram *= CHARACTERS_PER_WORD
    own = words(normalised(item.content))
    spoken = [word for word in own if not _is_sign(word)]
    runs = shingles(spoken, ngram) if len(spoken) >= ngram else set()
    return _Said((_text(own), _text(words(normalised(item.record.prompt_text)))), runs)


def _text(said: Sequence[str]) -> str:
    """Join words and signs of arithmetic; other marks make no difference to a leak."""
    return " ".join(word for word in said if not _is_sign(word) or word in _KEPT_SIGNS)


def _is_sign(word: str) -> bool:
    return unicodedata.category(word[0])[0] in "PS"


def _common(training: Sequence[_Said], runs: dict[Run, str]) -> set[Run]:
    """Return the held-out runs that too many different training texts contain."""
    seen: Counter[Run] = Counter()
    # A problem and its demonstration say the same and count once.
    for said in {said.texts[0]: said for said in training}.values():
        seen.update(run for run in said.runs if run in runs)
    return {run for run, times in seen.items() if times > COMMON}


def _drop(item: Item, detail: str) -> Quarantined:
    return refuse(item, STAGE, Outcome.DROPPED, "contaminated", detail)
