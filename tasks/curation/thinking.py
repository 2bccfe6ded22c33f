"""How much the demonstrations think: words between `<think>` and `</think>`, by source and domain.

Worked solutions of fifty words and empty think blocks teach a stage of long chains of thought the
form alone. Both are counted in the report of curation, and refused before SFT.
"""

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from data_schemas.rows import Demonstration, Domain, Parent
from tasks.errors import DataError
from tasks.gym.protocol import THINK_CLOSE, THINK_OPEN


def thinking_words(response: str) -> int:
    """Count the words of a response's thinking; 0 if it has none."""
    _, opening, rest = response.partition(THINK_OPEN)
    return len(rest.partition(THINK_CLOSE)[0].split()) if opening else 0


class Thinking:
    """Words of thinking of the demonstrations that curation keeps."""

    def __init__(self) -> None:
        self._words: dict[tuple[str, str], list[int]] = defaultdict(list)

    def add(self, source: str, domain: str, response: str) -> None:
        """Count a demonstration."""
        self._words[source, domain].append(thinking_words(response))

    def report(self) -> dict[str, dict[str, dict[str, float]]]:
        """Return per source and domain: demonstrations, those with empty thinking, median words."""
        results: dict[str, dict[str, dict[str, float]]] = defaultdict(dict)
        for (source, domain), words in sorted(self._words.items()):
            results[source][domain] = {
                "demonstrations": len(words),
                "empty": words.count(0),
                "median_words": statistics.median(words),
            }
        return dict(results)


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
