"""How much the demonstrations think: words between `<think>` and `</think>`, by source and domain,
and by source and language, with how many of the responses a verifier confirmed.

Worked solutions of fifty words and empty think blocks teach a stage of long chains of thought the
form alone. Both are counted in the report of curation, and refused before SFT.
"""

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from data_schemas.rows import Demonstration, Domain, Parent
from tasks.errors import DataError
from tasks.gym.protocol import THINK_CLOSE, THINK_OPEN

_Counted = dict[tuple[str, str], list[tuple[int, bool]]]
"""Source and group -> words of thinking, and whether the response is confirmed."""


def thinking_words(response: str) -> int:
    """Count the words of a response's thinking; 0 if it has none."""
    _, opening, rest = response.partition(THINK_OPEN)
    return len(rest.partition(THINK_CLOSE)[0].split()) if opening else 0


class Thinking:
    """Words of thinking of the demonstrations that curation keeps."""

    def __init__(self) -> None:
        self._domains: _Counted = defaultdict(list)
        self._languages: _Counted = defaultdict(list)

    def add(
        self, source: str, domain: str, language: str, response: str, *, confirmed: bool
    ) -> None:
        """Count a demonstration, and whether a verifier found its answer right."""
        one = (thinking_words(response), confirmed)
        self._domains[source, domain].append(one)
        self._languages[source, language].append(one)

    def report(self) -> dict[str, dict[str, dict[str, float]]]:
        """Return per source and domain what `_summary` says."""
        return _summaries(self._domains)

    def languages(self) -> dict[str, dict[str, dict[str, float]]]:
        """Return the same per source and language."""
        return _summaries(self._languages)


def _summaries(counted: _Counted) -> dict[str, dict[str, dict[str, float]]]:
    results: dict[str, dict[str, dict[str, float]]] = defaultdict(dict)
    for (source, group), rows in sorted(counted.items()):
        results[source][group] = _summary(rows)
    return dict(results)


def _summary(rows: Sequence[tuple[int, bool]]) -> dict[str, float]:
    """Count demonstrations, those that do not think, and confirmed ones; words of their thinking.

    `long_words` is the number of words that one in ten exceeds: what a limit of tokens cuts.
    """
    words = sorted(number for number, _ in rows)
    return {
        "demonstrations": len(words),
        "empty": words.count(0),
        "confirmed": sum(confirmed for _, confirmed in rows),
        "median_words": statistics.median(words),
        "long_words": words[9 * (len(words) - 1) // 10],
    }


def check_thinking(
    rows: Sequence[Demonstration], least_words: int, domains: Mapping[Domain, float]
) -> None:
    """Refuse demonstrations of long chains of thought that are not long, or lack a domain.

    Args:
        rows: of the reasoning parent.
        least_words: median of their thinking; 0 = whatever it is.
        domains: of the mixture that settings ask for; empty = any.

    Raises:
        DataError: says what is there, and what to add.
    """
    if not least_words:
        return
    missing = sorted(domains.keys() - {row.domain for row in rows})
    if missing:
        raise DataError(
            f"sft.domains asks for {', '.join(missing)}, and no demonstration for "
            f"{Parent.REASONING.value} fine-tuning is. Add a source of long chains of thought "
            "(open_thoughts3, s1k_1_1, marco_o1, or distil one), or take the domain out"
        )
    words = [thinking_words(row.response) for row in rows]
    median = statistics.median(words)
    if median < least_words:
        raise DataError(
            f"demonstrations for {Parent.REASONING.value} fine-tuning think in {median:g} words "
            f"(median of {len(words)}, {words.count(0)} with empty thinking), and "
            f"sft.min_thinking_words is {least_words}: {_by_source(rows)}. Add a source of long "
            "chains of thought (open_thoughts3, s1k_1_1, marco_o1, or distil one), or lower it"
        )


def _by_source(rows: Iterable[Demonstration]) -> str:
    words: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        words[row.source].append(thinking_words(row.response))
    return ", ".join(
        f"{source} {len(own)} rows of {statistics.median(own):g} words"
        for source, own in sorted(words.items())
    )
