"""The sample world in two modes of thinking, as the adapters read it."""

from itertools import islice

import pytest

from data_schemas.rows import Demonstration, Problem, QuarantinedItem
from tasks.curation import sample_hybrid, sample_world
from tasks.curation.adapters.table import read_file
from tasks.curation.sample_hybrid import FAST, SLOW, SWITCHES


def first_rows(source, path):
    """The items of the first 300 rows of a table that are read."""
    rows = (row for row in read_file(source, 0, path) if isinstance(row, list))
    return list(islice(rows, 300))


@pytest.fixture(scope="module")
def items(tmp_path_factory):
    """The first rows of every table, by mode."""
    found = {}
    for mode in SWITCHES:
        folder = tmp_path_factory.mktemp(mode)
        sample_hybrid.generate(mode, 0, folder)
        for name in (sample_world.PROBLEMS, sample_world.DEMONSTRATIONS):
            found[mode, name] = [one for row in first_rows(mode, folder / name) for one in row]
            assert not isinstance(found[mode, name][0], QuarantinedItem)
    return found


def thought(response):
    return response.partition("<think>")[2].partition("</think>")[0]


def test_a_fast_demonstration_has_an_empty_thought_and_a_slow_one_thinks(items):
    fast, slow = (items[mode, sample_world.DEMONSTRATIONS] for mode in (FAST, SLOW))

    assert {""} == {thought(one.record.response) for one in fast}
    assert all(one.record.response.partition("</think>")[2].strip() for one in fast)
    assert sum(bool(thought(one.record.response)) for one in slow) > 0.9 * len(slow)
    assert all(isinstance(one.record, Demonstration) for one in (*fast, *slow))


def test_the_switch_is_the_end_of_the_question_and_no_part_of_its_content(items):
    for (mode, _), rows in items.items():
        for one in rows:
            question = one.record.messages[-1].content
            assert question == f"{one.content} {SWITCHES[mode]}"
            assert mode == one.record.source
            assert one.record.id.startswith(f"{mode}/")


def test_a_demonstration_is_verified_by_the_problem_that_it_answers(items):
    for mode in SWITCHES:
        for one in items[mode, sample_world.DEMONSTRATIONS]:
            assert isinstance(one.answers, Problem)
            assert one.answers.messages == one.record.messages


def test_the_modes_draw_different_rows_and_the_slow_ones_are_the_sample_worlds(items, tmp_path):
    sample_world.generate(0, tmp_path)
    name = sample_world.PROBLEMS
    world = first_rows("sample_world", tmp_path / name)

    slow, fast = ([one.content for one in items[mode, name]] for mode in (SLOW, FAST))
    assert [row[0].content for row in world] == slow
    assert len({*slow} & {*fast}) < 30
