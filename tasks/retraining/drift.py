"""How the problems of new files differ from those the released model knows.

Measured per field by the population stability index (PSI), the sum over the values of (new -
known) * ln(new / known) of their shares. By convention (Siddiqi 2006) a distribution is stable
below 0.1 and has changed clearly above 0.25. A few rows have a PSI of that size by chance: what
one of twenty samples of the known distribution exceeds is not called drift.

Besides, the share of new rows whose value no known row has. Of a field with many values, such as
brands, some are always unknown: the share of values that occur once among the known rows is what
another row without drift is expected to add (Good 1953), and it is subtracted.

Fields are domain, language, verifier, the label of choices, the number of words, and what
sources say besides: category, brand, price ... (`Facet`). A field that one side lacks is not
compared.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from data_schemas.drift import Drift, FieldDrift, ValueShare
from data_schemas.rows import Domain, Facet, Problem

CONFIDENCE = 0.95
NUM_SAMPLES = 500
NUM_BINS = 10
"""Bins of a number: deciles of the known problems."""
Column = list[str] | list[float]
MIN_SHARE = 0.01
"""Values rarer than this are not listed as new or vanished."""
MAX_SHOWN = 12
"""Values of a field on the page, the most frequent."""
NUM_EXAMPLES = 5
_WORD = re.compile(r"\w+")


def measure(old: Sequence[Problem], new: Sequence[Problem], facets: Sequence[Facet] = ()) -> Drift:
    """Compare the problems of new files with the known ones; both may be empty.

    Args:
        old: of the released model.
        new: curated from the new files.
        facets: of both.
    """
    before, after = (_columns(problems, facets) for problems in (old, new))
    fields = [_compare(name, before[name], after[name]) for name in before if name in after]
    words = {word for problem in old for word in _words(problem)}
    words_by_problem = [_words(problem) for problem in new]
    unknown = [sum(word not in words for word in row_words) for row_words in words_by_problem]
    ranked = sorted(zip(unknown, new, strict=True), key=lambda pair: (-pair[0], pair[1].id))
    return Drift(
        known=len(old),
        new=len(new),
        fields=tuple(fields),
        unknown_words=sum(unknown) / max(1, sum(map(len, words_by_problem))),
        examples=tuple(problem.prompt_text for _, problem in ranked[:NUM_EXAMPLES]),
    )


def stability_index(old: Sequence[float], new: Sequence[float]) -> float:
    """Return the PSI of two lists of counts by value; an empty value counts as half a row."""
    expected, observed = (np.maximum(np.asarray(counts, float), 0.5) for counts in (old, new))
    expected, observed = expected / expected.sum(), observed / observed.sum()
    return float(((observed - expected) * np.log(observed / expected)).sum())


def unknown_share(old_values: Column, new: Column) -> float:
    """Return the share of new values that no known row has, beyond what rows without drift have.

    Numbers are unknown outside of the known range.
    """
    old, fresh = np.asarray(old_values), np.asarray(new)
    if old.dtype.kind == fresh.dtype.kind == "f":
        return float(np.mean((fresh < old.min()) | (fresh > old.max())))
    counts = Counter(map(str, old_values))
    once = sum(count == 1 for count in counts.values())
    unknown = sum(str(value) not in counts for value in new)
    return max(0.0, unknown / len(new) - once / len(old_values))


def _columns(problems: Sequence[Problem], facets: Sequence[Facet]) -> dict[str, Column]:
    """Make one column per field, without missing values and empty columns."""
    labels = [_label(problem) for problem in problems]
    columns: dict[str, Column] = {
        "domain": [problem.domain.value for problem in problems],
        "language": [problem.language for problem in problems],
        "verifier": [problem.verifier for problem in problems],
        "label": [label for label in labels if label is not None],
        "words": [float(len(_words(problem))) for problem in problems],
    }
    ids = {problem.id for problem in problems}
    values: dict[str, list[str]] = defaultdict(list)
    for facet in facets:
        if facet.problem in ids:
            values[facet.name].append(facet.value)
    columns |= {
        name: _numbers(values[name]) or values[name] for name in values if name not in columns
    }
    return {name: column for name, column in columns.items() if column}


def _numbers(texts: Sequence[str]) -> list[float]:
    """Read a column of numbers; empty if one of them is no finite number."""
    try:
        numbers = [float(text) for text in texts]
    except ValueError:
        return []
    return numbers if np.isfinite(numbers).all() else []


def _compare(name: str, old_values: Column, new: Column) -> FieldDrift:
    """Compare one field; as numbers if both sides are."""
    old, fresh = np.asarray(old_values), np.asarray(new)
    is_number = old.dtype.kind == fresh.dtype.kind == "f"
    bins: list[str] = []
    if is_number:
        inner = np.unique(np.quantile(old, np.linspace(0.0, 1.0, NUM_BINS + 1)[1:-1]))
        bins = [f"below {inner[0]:g}", *(f"from {edge:g}" for edge in inner)]
        old, fresh = (np.asarray(bins)[np.digitize(side, inner)] for side in (old, fresh))
    before, after = (Counter(side.astype(str).tolist()) for side in (old, fresh))
    names = bins or sorted(before | after)
    expected, observed = ([side[value] for value in names] for side in (before, after))
    pooled = np.add(expected, observed) / (len(old_values) + len(new))
    samples = np.random.default_rng(0).multinomial(len(new), pooled, NUM_SAMPLES)
    by_chance = [stability_index(expected, sample.tolist()) for sample in samples]
    values = bins or sorted(names, key=lambda value: -max(_shares(value, before, after)))
    return FieldDrift(
        field=name,
        psi=stability_index(expected, observed),
        chance=float(np.quantile(by_chance, CONFIDENCE)),
        unknown=unknown_share(old_values, new),
        new=() if is_number else _only(after, before),
        vanished=() if is_number else _only(before, after),
        shares=tuple(
            ValueShare(value=value, known=share[0], new=share[1])
            for value in values[:MAX_SHOWN]
            for share in [_shares(value, before, after)]
        ),
    )


def _shares(value: str, before: Mapping[str, int], after: Mapping[str, int]) -> tuple[float, float]:
    return (
        before.get(value, 0) / sum(before.values()),
        after.get(value, 0) / sum(after.values()),
    )


def _only(here: Counter[str], there: Counter[str]) -> tuple[str, ...]:
    """Values of one side that are not rare there, most frequent first."""
    return tuple(
        value
        for value, count in here.most_common()
        if value not in there and count >= MIN_SHARE * here.total()
    )


def _label(problem: Problem) -> str | None:
    """The right answer of a choice, such as the category of a product."""
    if problem.domain is not Domain.CHOICE:
        return None
    correct = json.loads(problem.answer).get("correct")
    return str(correct[0]) if correct else None


def _words(problem: Problem) -> list[str]:
    return _WORD.findall(problem.prompt_text.casefold())
