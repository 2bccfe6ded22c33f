"""Free text against a reference."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.gym.reference_text import BELOW_EQUAL, chrf, verify


def test_chrf_by_hand() -> None:
    # Order 1: precision 2/3, recall 2/2; order 2: precision 1/2, recall 1/1. F with beta 2.
    first = 5 * (2 / 3) * 1 / (4 * 2 / 3 + 1)
    second = 5 * (1 / 2) * 1 / (4 * 1 / 2 + 1)

    assert (first + second) / 2 == pytest.approx(chrf("ab", "abc"))


def test_only_the_reference_itself_scores_one(problem) -> None:
    one = problem("reference_text", {"reference": "Red  Shoes for kids"})

    assert 1.0 == verify(one, "red shoes\nFOR kids").score
    assert 1.0 == verify(one, "\uff32ed shoes for kids").score
    # The same n-grams up to the space: overlap is perfect, the text is not.
    assert BELOW_EQUAL == verify(one, "redshoes forkids").score
    assert 0.0 == verify(one, "<think>Red shoes for kids").score


def test_a_text_that_is_too_long_once_normalised_scores_zero(problem) -> None:
    verdict = verify(problem("reference_text", {"reference": "red"}), "\ufdfa" * 100_000)

    assert (0.0, "too_long") == (verdict.score, verdict.reason)


def test_a_blank_reference_is_an_abstention(problem) -> None:
    verdict = verify(problem("reference_text", {"reference": "  "}), "text")

    assert (None, "bad_gold") == (verdict.score, verdict.reason)


@given(reference=st.text(min_size=1), text=st.text())
def test_the_score_is_a_share_and_symmetric_in_being_zero(reference: str, text: str) -> None:
    score = chrf(reference, text)

    assert 0.0 <= score <= 1.0
    assert (score == 0) == (chrf(text, reference) == 0)


@given(st.text(alphabet="abcdef ", min_size=8).filter(lambda t: len(t.split()) > 1))
def test_foreign_text_after_the_answer_never_gains(text: str) -> None:
    assert chrf(text, text + " zzzz") <= chrf(text, text)
