"""Patterns of announcements are tried only where one can begin; no word may be missing there."""

import random
from collections.abc import Iterator

import adversarial

from tasks.gym.options.announcements import MARKER, REVERSED
from tasks.gym.options.languages import LANGUAGES, PHRASES, compile_folded
from tests.tables import for_each

DRAWS = 150


def texts(source: str) -> Iterator[str]:
    """Texts that a source matches at their beginning, a letter behind each, as some ask for one."""
    pattern, draw = compile_folded(source), random.Random(source)
    for _ in range(DRAWS):
        text = f"{next(adversarial.near_matches(pattern, draw))} b"
        if pattern.match(text):
            yield text


@for_each("source", [*PHRASES, *(language.announces() for language in LANGUAGES)])
def test_whatever_announces_an_option_begins_as_an_announcement_does(source: str) -> None:
    assert [] == [text for text in texts(source) if not MARKER.match(text)]


@for_each("source", [language.is_good for language in LANGUAGES])
def test_so_does_what_says_of_an_option_that_it_is_right(source: str) -> None:
    assert [] == [text for text in texts(source) if not REVERSED.match(text)]
