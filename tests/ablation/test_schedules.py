import pytest

from tasks.ablation.schedules import Makespans, makespans


def test_the_longest_first_by_what_was_seen_before_shortens_the_step(make_row):
    lengths = {"a": 10, "b": 10, "c": 40}
    rows = [
        make_row(step, name, rollouts=1, generated_tokens=tokens)
        for step in (1, 2)
        for name, tokens in lengths.items()
    ]

    # Two slots, step two: as drawn 10 | 10, then 40; longest first 40 | 10 + 10.
    assert Makespans(as_drawn=50, longest_first=40, known_lengths=40) == makespans(rows, slots=2)


def test_an_unseen_prompt_has_the_mean_of_its_domain(make_row):
    rows = [
        make_row(1, "a", rollouts=1, generated_tokens=20),
        make_row(2, "b", rollouts=1, generated_tokens=10),
        make_row(2, "new", rollouts=1, generated_tokens=40),
        make_row(2, "a", rollouts=1, generated_tokens=10),
    ]

    found = makespans(rows, slots=1)

    assert (60.0, 60.0, 60.0) == (found.as_drawn, found.longest_first, found.known_lengths)


def test_drafts_refills_and_skipped_prompts_are_no_work_of_the_first_draw(make_row):
    rows = [
        make_row(1, "a"),
        make_row(2, "a", rollouts=1, generated_tokens=13, draft_tokens=3),
        make_row(2, "b", round=1),
        make_row(2, "c", rollouts=0, generated_tokens=0),
    ]

    assert 10.0 == makespans(rows, slots=1).as_drawn


@pytest.mark.parametrize("steps", [0, 1])
def test_without_a_second_step_there_is_nothing_to_compare(make_row, steps):
    rows = [make_row(1, "a")] * steps

    assert Makespans(as_drawn=0, longest_first=0, known_lengths=0) == makespans(rows)
