"""What is dropped as near to a benchmark's question, by an encoder whose cosines are known."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tasks.curation.items import Item
from tasks.curation.meaning.neighbours import Neighbours
from tasks.curation.meaning.protocol import Vectors, unit
from tasks.curation.overlap.nearness import FEWEST
from tasks.errors import DataError


class Angles:
    """A text is a number of degrees, and its vector lies at this angle."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.asked += texts
        angles = np.radians([float(text) for text in texts])
        return unit(np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32))


@pytest.fixture
def questions(make_problem: Callable[..., Item]) -> Callable[[int], list[Item]]:
    """Return questions that are two degrees apart."""

    def build(count: int) -> list[Item]:
        return [make_problem(f"exam-{place}", f"{2 * place}") for place in range(count)]

    return build


def test_a_text_is_encoded_once_for_its_problem_and_its_responses(
    make_problem, make_demonstration, questions
):
    encoder = Angles()
    neighbours = Neighbours(questions(FEWEST), encoder)
    encoder.asked.clear()
    leaked = [make_problem("a", "4.5"), make_demonstration("b", "4.5", "<think>s</think>7")]
    clean = make_problem("c", "250")

    kept, refused = neighbours.sieve([*leaked, clean])

    assert ["250", "4.5"] == encoder.asked
    assert ([clean], ["test/a", "test/b"]) == (kept, [one.key for one in refused])
    assert {"contaminated"} == {one.reason for one in refused}
    assert refused[0].detail == "held-out test/exam-2: '4', similarity 1.000 > 0.999"


def test_without_a_benchmark_of_some_size_nothing_says_what_is_near(questions):
    with pytest.raises(DataError, match="no benchmark has 100 questions in one language"):
        Neighbours(questions(FEWEST - 1), Angles())


def test_tasks_that_another_library_plays_have_no_text_to_compare(make_problem, questions):
    outside = make_problem("a", "3", verifier="environment", content="a1b2")

    asked = [*questions(FEWEST), make_problem("b", "Play.", verifier="environment", content="c3")]

    assert ([outside], []) == Neighbours(asked, Angles()).sieve([outside])
    with pytest.raises(DataError, match="no benchmark has 100 questions"):
        Neighbours([asked[-1]] * FEWEST, Angles())


def test_a_blank_text_is_not_encoded_and_stays(make_problem, questions):
    blank = make_problem("a", "Look.", content=" ")

    assert ([blank], []) == Neighbours(questions(FEWEST), Angles()).sieve([blank])


def test_a_vector_that_is_no_number_is_near_to_nothing_and_stops_curation():
    with pytest.raises(DataError, match="no finite numbers"):
        unit(np.array([[1.0, 2.0], [np.nan, 1.0]], np.float32))
