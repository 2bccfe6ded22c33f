"""Drift of new problems: known values of the index, no alarm by chance, named values."""

import math

import numpy as np
import pytest

from data_schemas.drift import FieldDrift
from data_schemas.rows import Domain, Facet, Message, Problem, Role
from tasks.retraining.drift import measure, stability_index, unknown_share


def problem(number, text="one two three", **changes):
    values = {
        "id": f"p{number}",
        "domain": Domain.MATHS,
        "language": "en",
        "messages": (Message(role=Role.USER, content=text),),
        "verifier": "final_answer",
        "answer": '{"value":"7"}',
        "source": "prompt_jsonl",
        "source_row": "0" * 64,
    }
    return Problem(**(values | changes))


def choice(number, label):
    answer = f'{{"correct":["{label}"],"others":[["x"]]}}'
    return problem(number, domain=Domain.CHOICE, verifier="choice", answer=answer)


def field(drift, name) -> FieldDrift:
    (found,) = [one for one in drift.fields if one.field == name]
    return found


def test_the_index_is_that_of_the_formula():
    # (0.8 - 0.5) ln(0.8 / 0.5) + (0.2 - 0.5) ln(0.2 / 0.5)
    expected = 0.3 * math.log(1.6) - 0.3 * math.log(0.4)

    assert stability_index([50, 50], [80, 20]) == pytest.approx(expected)
    assert stability_index([80, 20], [50, 50]) == pytest.approx(expected)
    assert 0.0 == stability_index([5, 10], [50, 100])
    assert math.isfinite(stability_index([10, 0], [0, 10]))


def test_values_that_are_new_or_gone_are_named():
    known = [problem(n, language="th" if n % 2 else "en") for n in range(200)]
    new = [problem(n, language="id" if n % 2 else "en") for n in range(100)]

    drift = measure(known, new)

    assert ("large", ("id",), ("th",)) == (
        field(drift, "language").degree,
        field(drift, "language").new,
        field(drift, "language").vanished,
    )
    assert {"stable"} == {one.degree for one in drift.fields if one.field != "language"}
    assert "language large (PSI " in drift.explain()
    assert "new: id, vanished: th)" in drift.explain()


def test_labels_of_choices_and_lengths_are_compared():
    known = [choice(n, "toys" if n % 4 else "books") for n in range(200)]
    new = [choice(n, "books" if n % 4 else "toys") for n in range(200)]

    assert "large" == field(measure(known, new), "label").degree
    long = [problem(n, "word " * (60 + n % 10)) for n in range(100)]
    short = [problem(n, "word " * (1 + n % 50)) for n in range(100)]
    assert "large" == field(measure(short, long), "words").degree


@pytest.mark.slow
def test_few_rows_of_the_same_kind_are_no_drift():
    dice = np.random.default_rng(0)
    languages = ["en", "th", "id", "ms", "vi", "pt", "tl"]
    known = [problem(n, language=str(dice.choice(languages))) for n in range(1000)]
    alarms = 0
    for _ in range(40):
        new = [problem(n, language=str(dice.choice(languages))) for n in range(40)]
        drift = field(measure(known, new), "language")
        alarms += drift.degree != "stable"

    assert alarms <= 6  # 2 expected


def test_words_that_no_known_prompt_has_are_counted():
    drift = measure([problem(1, "red shoe")], [problem(2, "Red boot, new boot")])

    assert drift.unknown_words == pytest.approx(0.75)


@pytest.mark.parametrize(("known", "new"), [([], [problem(1)]), ([problem(1)], []), ([], [])])
def test_without_rows_on_both_sides_nothing_is_measured(known, new):
    drift = measure(known, new)

    assert () == drift.fields
    assert "not measured: " in drift.explain()


def facets(problems, name, values):
    return [
        Facet(problem=one.id, name=name, value=values[place % len(values)])
        for place, one in enumerate(problems)
    ]


def test_brands_are_compared_by_value_and_prices_by_decile():
    known = [problem(n) for n in range(200)]
    new = [problem(n) for n in range(200, 300)]
    said = [
        *facets(known, "brand", ["Ardiles", "Bata"]),
        *facets(new, "brand", ["Bata", "Converse"]),
        *facets(known, "price", [str(price) for price in range(10, 110, 10)]),
        *facets(new, "price", ["95.5", "205"]),
        *facets(new, "colour", ["red"]),
    ]

    drift = measure(known, new, said)

    brand, price = field(drift, "brand"), field(drift, "price")
    assert (("Converse",), ("Ardiles",)) == (brand.new, brand.vanished)
    assert {"Ardiles": (0.5, 0.0), "Bata": (0.5, 0.5), "Converse": (0.0, 0.5)} == {
        share.value: (share.known, share.new) for share in brand.shares
    }
    assert ("large", (), ()) == (price.degree, price.new, price.vanished)
    assert 1.0 == pytest.approx(sum(share.new for share in price.shares))
    assert "colour" not in {one.field for one in drift.fields}


def test_the_examples_are_the_prompts_with_most_unknown_words():
    drift = measure([problem(1, "red shoe")], [problem(2, "red shoe"), problem(3, "blue boot")])

    assert ("blue boot", "red shoe") == drift.examples


@pytest.mark.parametrize(
    ("known", "new", "share"),
    [
        (["en"] * 9 + ["id"], ["vi"] * 3 + ["en"], 0.75 - 0.1),
        (["a", "b", "c"], ["d", "e"], 0.0),
        ([1.0, 2.0], [0.5, 1.0, 1.5, 3.0], 0.5),
        ([1.0, 1.0], ["red"], 1.0),
    ],
)
def test_what_is_unknown_is_more_than_rows_without_drift_would_bring(known, new, share):
    assert pytest.approx(share) == unknown_share(known, new)


def test_a_price_that_is_no_finite_number_is_a_word():
    known = [problem(n) for n in range(4)]
    said = facets(known, "price", ["1", "nan"])

    assert [0.0] == [one.psi for one in measure(known, known, said).fields if one.field == "price"]
