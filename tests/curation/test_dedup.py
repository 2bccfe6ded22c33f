"""Duplicates: what is merged, what must never be, and the laws of the filter."""

import random
from collections.abc import Callable
from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from data_schemas.rows import Outcome
from tasks.curation.dedup import deduplicate
from tasks.curation.items import Item

Make = Callable[..., Item]
LONG = (
    "a shop sells red cotton bags to people from many towns and each bag costs four coins while "
    "the blue leather ones cost nine coins so tell me how many coins three red bags cost"
)


def kept_ids(items: list[Item], threshold: float = 0.9) -> list[str]:
    return [item.record.id for item in deduplicate(items, threshold)[0]]


def reasons(items: list[Item], threshold: float = 0.9) -> dict[str, str]:
    return {r.key: r.reason for r in deduplicate(items, threshold)[1]}


def test_case_width_and_blanks_make_no_new_problem(make_problem: Make):
    first = make_problem("a", "How much is 3 + 4?")
    second = make_problem("b", f" how  much is {chr(0xFF13)} + 4? ")

    kept, (refusal,) = deduplicate([first, second], 0.9)

    assert [first] == kept
    assert ("test/b", "duplicate", "of test/a") == (refusal.key, refusal.reason, refusal.detail)


def test_prompts_that_differ_in_a_number_only_are_never_merged(make_problem: Make):
    items = [
        make_problem("a", f"{LONG} if there are 12 of them"),
        make_problem("b", f"{LONG} if there are 13 of them"),
        make_problem("c", "What is 3 - 5?"),
        make_problem("d", "What is 5 - 3?"),
    ]

    assert ["test/a", "test/b", "test/c", "test/d"] == kept_ids(items, 0.1)


def test_prompts_with_different_answers_are_never_merged(make_problem: Make):
    items = [make_problem("a", LONG, "12"), make_problem("b", f"{LONG} please", "21")]

    assert ["test/a", "test/b"] == kept_ids(items)
    assert {"test/b": "near_duplicate"} == reasons(
        [make_problem("a", LONG), make_problem("b", f"{LONG} please")]
    )


def test_near_is_measured_by_true_jaccard_on_the_rows_own_words(make_problem: Make):
    # 35 words give 33 shingles; one more word at the end adds one: 33/34 = 0.97.
    items = [make_problem("a", LONG), make_problem("b", f"{LONG} please")]

    (refusal,) = deduplicate(items, 0.97)[1]

    assert "of test/a, Jaccard 0.97" == refusal.detail
    assert {} == reasons(items, 0.98)
    assert {} == reasons(items, 1.0)


def test_the_adapters_instructions_do_not_make_two_rows_alike(make_problem: Make):
    items = [
        make_problem(key, f"{LONG}\nProduct: {name}", content=name)
        for key, name in (("a", "red bag"), ("b", "blue shoe"))
    ]

    assert ["test/a", "test/b"] == kept_ids(items, 0.8)


def test_thai_is_compared_by_characters(make_problem: Make):
    text = "กระเป๋าหนังสีแดงสำหรับผู้หญิงราคาถูกคุณภาพดีส่งฟรีทั่วประเทศไทยวันนี้เท่านั้น"
    items = [make_problem("a", text, language="th"), make_problem("b", f"{text}ค", language="th")]

    assert {"test/b": "near_duplicate"} == reasons(items)


def test_one_prompt_with_two_answers_loses_every_item_that_asks_it(
    make_problem: Make, make_demonstration: Make
):
    items = [
        make_problem("a", "Category of webcam?", "Computers"),
        make_problem("b", "Category of webcam?", "Electronics"),
        make_demonstration("b", "Category of webcam?", "<think></think>Electronics"),
        make_problem("c", "Category of drill?", "Tools"),
    ]

    kept, refused = deduplicate(items, 0.9)

    assert [items[3]] == kept
    assert ["conflicting_answers"] * 3 == [refusal.reason for refusal in refused]
    assert "test/a and test/b have the same prompt and different answers" == refused[0].detail


def test_problems_and_demonstrations_are_not_duplicates_of_each_other(
    make_problem: Make, make_demonstration: Make
):
    items = [
        make_problem("a", "How much?"),
        make_demonstration("a", "How much?", "<think>so</think>7"),
        make_demonstration("b", "How much?", "<think>thus</think>7"),
        make_demonstration("c", "How much?", "<think>so</think>7"),
        make_demonstration("d", "How much?", "<think>so</think>7", parent="commerce"),
    ]

    assert {"test/c": "duplicate"} == reasons(items)


def test_a_reused_id_is_quarantined(make_problem: Make):
    items = [make_problem("a", "How much?"), make_problem("a", "How many?")]

    kept, (refusal,) = deduplicate(items, 0.9)

    assert 1 == len(kept)
    assert (Outcome.QUARANTINED, "reused_id") == (refusal.outcome, refusal.reason)


def test_of_two_alike_the_earlier_source_wins_whatever_the_ids(make_problem: Make):
    items = [
        replace(make_problem("a", "How much?"), source=1),
        replace(make_problem("z", "How much?"), source=0),
    ]

    assert ["test/z"] == kept_ids(items)


WORDS = ("red", "bag", "costs", "12", "13", "Red", "shoe")
PROMPTS = st.lists(
    st.tuples(st.lists(st.sampled_from(WORDS), min_size=1, max_size=8), st.sampled_from("78")),
    max_size=12,
)
LAWS = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@LAWS
@given(PROMPTS, st.sampled_from((0.3, 0.6, 0.9, 1.0)), st.integers(0, 99))
def test_it_is_idempotent_conserves_items_and_ignores_the_order_of_rows(
    make_problem: Make,
    prompts: list[tuple[list[str], str]],
    threshold: float,
    seed: int,
):
    items = [
        make_problem(f"{number:02d}", " ".join(prompt), value)
        for number, (prompt, value) in enumerate(prompts)
    ]

    kept, refused = deduplicate(items, threshold)

    assert len(items) == len(kept) + len(refused)
    assert kept == [item for item in items if item in kept]
    assert (kept, []) == deduplicate(kept, threshold)
    shuffled = random.Random(seed).sample(items, len(items))
    again, refused_again = deduplicate(shuffled, threshold)
    assert {item.record.id for item in kept} == {item.record.id for item in again}
    assert sorted(r.key for r in refused) == sorted(r.key for r in refused_again)
