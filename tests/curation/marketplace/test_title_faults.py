import random

import pytest

from tasks.curation.marketplace.open_text import Title, draw_task
from tasks.curation.marketplace.title_faults import FAULTS, first_fault, same_title
from tasks.curation.marketplace.words import ENGLISH
from tasks.gym.reference_text import chrf, normalised

TIDY = Title(ENGLISH, "Hola", "red", "boot", "x2")


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_fault_is_one_to_the_rule_verifier_too(fault):
    faulty = 0
    for seed in range(100):
        rng = random.Random(seed)
        tidy = draw_task(rng, seed % 5 + 1).tidy
        answer = fault(rng, tidy)

        equal = normalised(answer) == normalised(tidy.text)
        assert equal == (first_fault(tidy.text, answer) is None)
        assert 0.0 <= chrf(normalised(tidy.text), normalised(answer)) <= 1.0
        faulty += not equal
    assert faulty > 90


def test_another_case_is_no_fault_to_the_rule_verifier():
    written = {same_title(random.Random(seed), TIDY) for seed in range(9)}

    assert {"hola red boot x2", "HOLA RED BOOT X2"} == written
    assert {TIDY.text.casefold()} == set(map(normalised, written))
    assert {None} == {first_fault(TIDY.text, text) for text in written}


@pytest.mark.parametrize(
    ("answer", "until"),
    [
        ("Hola blue boot x2", "Hola blue"),
        ("red boot x2", "red"),
        ("Hola red boot", "Hola red boot"),
        ("Hola red boot x2 SALE!", "Hola red boot x2 SALE!"),
        ("Hola Hola red boot x2", "Hola Hola"),
        ("", ""),
    ],
)
def test_an_answer_is_quoted_up_to_its_first_fault(answer, until):
    assert until == first_fault(TIDY.text, answer)
