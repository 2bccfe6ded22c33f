"""How near to a benchmark's question a text may come: by known cosines, and by shared words."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tasks.curation.dedup import jaccard
from tasks.curation.items import Item
from tasks.curation.overlap.fingerprints import Fingerprinter, shingles
from tasks.curation.overlap.nearness import FEWEST, NGRAM, ROWS, Nearness, by_wording

Make = Callable[..., Item]
WORDS = ["ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen", "imp", "jay"]


def cosine(degrees: float) -> float:
    return float(np.cos(np.radians(degrees)))


def by_angle(questions: Sequence[Item], different: float = 0.99) -> Nearness[float]:
    """A text is an angle, and a similarity is the cosine between two."""
    known = np.array([float(item.content) for item in questions])

    def compare(texts: Sequence[float]) -> NDArray[np.float32]:
        return np.cos(np.radians(np.array(texts)[:, None] - known)).astype(np.float32)

    return Nearness(questions, known.tolist(), compare, different)


@pytest.fixture
def spread(make_problem: Make) -> Callable[..., list[Item]]:
    def build(step: float, count: int = FEWEST, **named: str) -> list[Item]:
        texts = [f"{step * place:.1f}" for place in range(count)]
        return [make_problem(text, text, **named) for text in texts]

    return build


def test_what_is_nearer_than_questions_are_to_each_other_is_named_with_the_question(spread):
    nearness = by_angle(spread(2.0))

    assert nearness.leaks([3.5, 250.0, 45.0, 280.0]) == [
        f"held-out test/4.0: '4.0', similarity {cosine(0.5):.3f} > {cosine(2.0):.3f}",
        "",
        f"held-out test/44.0: '44.0', similarity {cosine(1.0):.3f} > {cosine(2.0):.3f}",
        "",
    ]
    assert [] == nearness.leaks([])


def test_equal_questions_and_other_benchmarks_and_languages_set_no_threshold(spread):
    doubled = [*spread(2.0), *spread(2.0)]
    near = [*spread(2.1, source="other"), *spread(2.2, language="zh")]

    alone, among = (by_angle(some).limits_Q for some in (spread(2.0), [*doubled, *near]))

    assert alone == pytest.approx(cosine(2.0))
    assert among[: len(doubled)] == pytest.approx(cosine(2.0))
    assert among[-1] == pytest.approx(cosine(2.2))


def test_a_small_benchmark_takes_the_highest_threshold_of_the_others(spread):
    small = spread(1.9, FEWEST - 1, source="small")

    among = by_angle([*spread(2.0), *spread(1.0, source="near"), *small])

    assert among.limits_Q[-1] == pytest.approx(cosine(1.0))
    assert by_angle(small).leaks([9.0]) == [""]  # alone it says nothing


@given(st.lists(st.integers(0, 3599), min_size=FEWEST, max_size=130, unique=True))
def test_a_hundredth_of_the_questions_exceeds_the_threshold_whatever_their_order(
    make_problem, tenths
):
    angles = np.array(tenths) / 10
    cosines = np.cos(np.radians(angles[:, None] - angles))
    np.fill_diagonal(cosines, -1.0)

    items = [make_problem(f"{angle}", f"{angle}") for angle in angles]

    found = [by_angle(some).limits_Q for some in (items, items[::-1])]

    assert found[0][0] == pytest.approx(found[1][0])
    assert (cosines.max(1) > found[0][0] + 1e-6).sum() <= 0.01 * len(angles)


@given(
    st.lists(st.lists(st.sampled_from(WORDS), max_size=12), min_size=1, max_size=40),
    st.lists(st.lists(st.sampled_from([*WORDS, "new"]), max_size=12), max_size=8),
)
def test_the_similarity_of_wordings_is_that_of_near_duplicates(make_problem, questions, texts):
    hashes = Fingerprinter().words
    asked, read = ([hashes(" ".join(one)) for one in some] for some in (questions, texts))
    items = [make_problem(f"{place}", " ".join(one)) for place, one in enumerate(questions)]

    found = by_wording(items, asked)._compare(read)

    runs = [[shingles(one, NGRAM) for one in some] for some in (read, asked)]
    expected = [[jaccard(one, other) for other in runs[1]] for one in runs[0]]
    assert found == pytest.approx(np.array(expected).reshape(len(read), len(asked)))


def test_a_reworded_question_is_found_among_more_texts_than_fit_in_memory_at_once(make_problem):
    generator = np.random.default_rng(0)
    texts = [" ".join(generator.choice(WORDS, 30)) for _ in range(ROWS + 50)]
    exams = [make_problem(f"exam-{place}", text) for place, text in enumerate(texts)]
    leaked = [f"so {text} or not" for text in texts[-3:]]
    others = [" ".join(generator.choice(WORDS, 30)) for _ in range(ROWS + 50)]
    words = [[Fingerprinter().words(text) for text in some] for some in (texts, others + leaked)]

    found = by_wording(exams, words[0]).leaks(words[1])

    assert [f"test/exam-{ROWS + place}" in found[-3:][place - 47] for place in (47, 48, 49)]
    assert sum(map(bool, found[:-3])) <= 0.02 * len(others)
