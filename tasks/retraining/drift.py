"""How the problems of new files differ from those the released model knows.

Measured per field by the population stability index (PSI), the sum over the values of
(new - known) * ln(new / known) of their shares. By convention (Siddiqi 2006) a distribution is
stable below 0.1 and has changed clearly above 0.25. A few rows have a PSI of that size by chance:
what one of twenty samples of the known distribution exceeds is not called drift.
"""

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from data_schemas.prompts import Domain, Problem

MODERATE, LARGE = 0.1, 0.25
CONFIDENCE = 0.95
NUM_SAMPLES = 500
NUM_BINS = 10
"""Of a number: deciles of the known problems."""
MIN_SHARE = 0.01
"""Values rarer than this are not listed as new or vanished."""
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class FieldDrift:
    """One field of the problems."""

    field: str
    psi: float
    chance: float
    """PSI that as many rows without drift exceed one time in twenty."""
    new: tuple[str, ...]
    """Values that no known problem has, most frequent first."""
    vanished: tuple[str, ...]

    @property
    def degree(self) -> str:
        """'stable', 'moderate' or 'large'."""
        if self.psi < max(MODERATE, self.chance):
            return "stable"
        return "large" if self.psi >= LARGE else "moderate"


@dataclass(frozen=True, slots=True)
class Drift:
    """New problems against known ones."""

    known: int
    new: int
    fields: tuple[FieldDrift, ...]
    unknown_words: float
    """Share of the words of the new prompts that no known prompt contains."""

    def explain(self) -> str:
        """Describe it in two sentences, without the last full stop."""
        if not self.known or not self.new:
            return f"Drift is not measured: {self.known} known and {self.new} new problems"
        drifted = [field for field in self.fields if field.degree != "stable"]
        named = "; ".join(map(_explain, drifted)) or "no field has drifted"
        return (
            f"{self.new} problems against {self.known} known ones: {named}. "
            f"{self.unknown_words:.0%} of their words are unknown"
        )


def measure(known: Sequence[Problem], new: Sequence[Problem]) -> Drift:
    """Compare the problems of new files with the known ones; both may be empty."""
    fields: list[FieldDrift] = []
    if known and new:
        old, fresh = _columns(known), _columns(new)
        fields += [_compare(name, old[name], fresh[name]) for name in old]
        fields.append(_compare("words", *_binned(_lengths(known), _lengths(new))))
    words = {word for problem in known for word in _words(problem)}
    asked = [word for problem in new for word in _words(problem)]
    return Drift(
        known=len(known),
        new=len(new),
        fields=tuple(fields),
        unknown_words=sum(word not in words for word in asked) / max(1, len(asked)),
    )


def stability_index(known: Sequence[float], new: Sequence[float]) -> float:
    """Return the PSI of two lists of counts by value; an empty value counts as half a row."""
    expected, found = (np.maximum(np.asarray(counts, float), 0.5) for counts in (known, new))
    expected, found = expected / expected.sum(), found / found.sum()
    return float(((found - expected) * np.log(found / expected)).sum())


def _columns(problems: Sequence[Problem]) -> dict[str, list[str]]:
    return {
        "domain": [problem.domain.value for problem in problems],
        "language": [problem.language for problem in problems],
        "verifier": [problem.verifier for problem in problems],
        "label": [_label(problem) for problem in problems],
    }


def _lengths(problems: Sequence[Problem]) -> list[float]:
    return [float(len(_words(problem))) for problem in problems]


def _binned(known: list[float], new: list[float]) -> tuple[list[str], list[str]]:
    """Replace numbers by their bin: deciles of the known ones."""
    edges = np.unique(np.quantile(known, np.linspace(0.0, 1.0, NUM_BINS + 1)[1:-1]))
    before, after = (np.digitize(values, edges).astype(str).tolist() for values in (known, new))
    return before, after


def _compare(name: str, known: list[str], new: list[str]) -> FieldDrift:
    old, fresh = Counter(known), Counter(new)
    names = sorted(old | fresh)
    before, after = ([counts[value] for value in names] for counts in (old, fresh))
    pooled = np.add(before, after) / (len(known) + len(new))
    samples = np.random.default_rng(0).multinomial(len(new), pooled, NUM_SAMPLES)
    by_chance = [stability_index(before, sample.tolist()) for sample in samples]
    return FieldDrift(
        field=name,
        psi=stability_index(before, after),
        chance=float(np.quantile(by_chance, CONFIDENCE)),
        new=_only(fresh, old),
        vanished=_only(old, fresh),
    )


def _only(here: Counter[str], there: Counter[str]) -> tuple[str, ...]:
    """Values of one side that are not rare there, most frequent first."""
    return tuple(
        value
        for value, count in here.most_common()
        if value not in there and count >= MIN_SHARE * here.total()
    )


def _label(problem: Problem) -> str:
    """The right answer of a choice, such as the category of a product; '' for other problems."""
    if problem.domain is not Domain.CHOICE:
        return ""
    correct = json.loads(problem.answer).get("correct")
    return str(correct[0]) if correct else ""


def _words(problem: Problem) -> list[str]:
    return _WORD.findall(problem.prompt_text.casefold())


def _explain(drift: FieldDrift) -> str:
    parts = [f"{drift.field} {drift.degree} (PSI {drift.psi:.2f}"]
    for word, values in (("new", drift.new), ("vanished", drift.vanished)):
        if values and drift.field != "words":
            shown = ", ".join(values[:3])
            parts.append(f"{word}: {shown}{' ...' if len(values) > 3 else ''}")
    return ", ".join(parts) + ")"
