"""What is dropped as near to a benchmark's question, by an encoder whose cosines are known."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_schemas.prompts import Domain, Message, Problem, Role
from tasks.curation.items import Item
from tasks.curation.meaning.neighbours import FEWEST, Neighbours, threshold
from tasks.curation.meaning.protocol import Vectors, unit
from tasks.errors import DataError


class Angles:
    """A text is a number of degrees, and its vector lies at this angle."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.asked += texts
        angles = np.radians([float(text.split()[0]) for text in texts])
        return unit(np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32))


def question(text: str, source: str = "exam", language: str = "en") -> Item:
    problem = Problem(
        id=f"{source}/{text}",
        domain=Domain.MATHS,
        language=language,
        messages=(Message(role=Role.USER, content=text),),
        verifier="final_answer",
        answer='{"value":"0"}',
        source=source,
        source_row=text,
    )
    return Item(problem, text)


def spread(step: float, count: int = FEWEST, **named: str) -> list[Item]:
    return [question(f"{step * place:.1f}", **named) for place in range(count)]


def cosine(degrees: float) -> float:
    return float(np.cos(np.radians(degrees)))


def test_what_is_nearer_than_different_questions_are_is_dropped_with_the_question():
    neighbours = Neighbours(spread(4.0), Angles())
    items = [question(text, source="new") for text in ("3.0", "85.0", "44.5", "200.0")]

    kept, refused = neighbours.sieve(items)

    assert ["85.0", "200.0"] == [item.content for item in kept]
    assert [
        f"held-out exam/4.0: '4.0', cosine {cosine(1.0):.3f} > {cosine(4.0):.3f}",
        f"held-out exam/44.0: '44.0', cosine {cosine(0.5):.3f} > {cosine(4.0):.3f}",
    ] == [one.detail for one in refused]
    assert {("contaminated", "new")} == {(one.reason, one.source) for one in refused}


def test_a_text_is_encoded_once_for_its_problem_and_its_responses():
    encoder = Angles()
    neighbours = Neighbours(spread(4.0), encoder)
    encoder.asked.clear()

    _, refused = neighbours.sieve([question("3.0", source=name) for name in ("a", "b", "c")])

    assert ["3.0"] == encoder.asked
    assert ["a", "b", "c"] == [one.source for one in refused]


def test_equal_questions_and_other_benchmarks_and_languages_set_no_threshold():
    doubled = [*spread(4.0), *(question(f"{item.content} ") for item in spread(4.0))]
    near = [*spread(4.1, source="other"), *spread(4.2, language="zh")]

    alone, among = (Neighbours(some, Angles()) for some in (spread(4.0), [*doubled, *near]))

    assert alone._limits_Q[0] == pytest.approx(cosine(4.0))
    assert among._limits_Q[: len(doubled)] == pytest.approx(cosine(4.0))
    assert among._limits_Q[-1] == pytest.approx(cosine(4.2))


def test_a_small_benchmark_takes_the_highest_threshold_of_the_others():
    small = spread(9.0, FEWEST - 1, source="small")

    neighbours = Neighbours([*spread(4.0), *spread(2.0, source="near"), *small], Angles())

    assert neighbours._limits_Q[-1] == pytest.approx(cosine(2.0))


def test_without_a_benchmark_of_some_size_nothing_says_what_is_near():
    with pytest.raises(DataError, match="no benchmark has 20 questions in one language"):
        Neighbours(spread(4.0, FEWEST - 1), Angles())


def test_tasks_that_another_library_plays_have_no_text_to_compare():
    outside = question("3.0", source="new")
    outside = Item(outside.record.model_copy(update={"verifier": "environment"}), "a1b2")

    kept, refused = Neighbours(spread(4.0), Angles()).sieve([outside])

    assert ([outside], []) == (kept, refused)


@given(st.lists(st.floats(0.0, 359.0), min_size=2, max_size=60, unique=True))
def test_a_hundredth_of_the_questions_exceeds_the_threshold_whatever_their_order(angles):
    texts = [repr(angle) for angle in angles]
    vectors = Angles().encode(texts)

    limit = threshold(vectors, texts)

    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -1.0)
    assert (cosines.max(1) > limit).sum() <= 0.01 * len(texts)
    assert threshold(vectors[::-1], texts[::-1]) == pytest.approx(limit, abs=1e-6)
    assert threshold(np.tile(vectors, (2, 1)), texts * 2) == pytest.approx(limit, abs=1e-6)
