"""Names of bound unknowns, matrices and labelled lists: what is the same, and what is not."""

import pytest

from tasks.gym.maths.verdict import same_answer

_SQUARE = r"\begin{pmatrix}1&2\\3&4\end{pmatrix}"


@pytest.mark.parametrize(
    ("gold", "other"),
    [
        (r"\int_0^1 f(x)\,dx", r"\int_0^1 f(t)\,dt"),
        (r"\int_0^x f(t)dt", r"\int_0^x f(u)du"),
        (r"\sum_{i=1}^n\sum_{j=1}^n ij", r"\sum_{a=1}^n\sum_{b=1}^n ab"),
        (r"\{(x,y) \mid x=y\}", r"\{(a,b) : a=b\}"),
        (r"\{2k \mid k \in \mathbb{Z}\}", r"\{2n : n \in \mathbb{Z}\}"),
        (_SQUARE, r"\left[\begin{array}{cc}1&2\\3&4\end{array}\right]"),
        (_SQUARE, "[[1,2],[3,4]]"),
        (r"\begin{vmatrix}1&2\\3&4\end{vmatrix}", "-2"),
        (r"\begin{vmatrix}2&0&1\\1&3&0\\0&1&1\end{vmatrix}", "7"),
        ("(a) 1, (b) 2", "(a) 1 (b) 2"),
        ("(a) 1, (b) 2", "(b) 2, (a) 1"),
        ("i) 5, ii) 6", "5, 6"),
        (r"\{\{1,2\},\{3\}\}", r"\{\{3\},\{2,1\}\}"),
    ],
)
def test_one_value_in_two_notations_is_the_same_from_both_sides(gold: str, other: str) -> None:
    assert same_answer(gold, other)
    assert same_answer(other, gold)


@pytest.mark.parametrize(
    ("gold", "other"),
    [
        (r"\int_0^x f(t)dt", r"\int_0^t f(x)dx"),
        (r"\int_0^1 f(x)\,dx", r"\int_0^2 f(t)\,dt"),
        (r"\sum_{i=1}^n\sum_{j=1}^n ij", r"\sum_{a=1}^n\sum_{b=1}^n ij"),
        (r"\sum_{i=1}^n ij", r"\sum_{k=1}^n ij"),
        (r"\sum_{i=1}^n\sum_{j=1}^n i^2j", r"\sum_{i=1}^n\sum_{j=1}^n ij^2"),
        (r"\{(x,y) \mid x=2y\}", r"\{(a,b) : 2a=b\}"),
        (r"\{2k \mid k \in \mathbb{Z}\}", r"\{3n : n \in \mathbb{Z}\}"),
        (_SQUARE, "[[1,3],[2,4]]"),
        (_SQUARE, r"\begin{vmatrix}1&2\\3&4\end{vmatrix}"),
        (r"\begin{vmatrix}1&2\\3&4\end{vmatrix}", "2"),
        ("(a) 1, (b) 2", "(b) 1, (a) 2"),
        (r"\{\{1,2\},\{3\}\}", r"\{\{1\},\{2,3\}\}"),
    ],
)
def test_two_values_are_never_the_same(gold: str, other: str) -> None:
    assert not same_answer(gold, other)
    assert not same_answer(other, gold)
