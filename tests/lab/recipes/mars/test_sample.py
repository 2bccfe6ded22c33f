from collections import Counter

import pytest

from data_schemas.rows import Demonstration, Problem
from tasks.curation.adapters.table import read_file
from tasks.curation.marketplace.items import is_problem_prompt
from tasks.lab.recipes.mars import sample
from tasks.lab.recipes.mars.correctness import says_correct
from tasks.lab.recipes.mars.inputs import CORRECT, VERIFY
from tasks.lab.recipes.mars.settings import Agent

SOURCE = "tasks.lab.recipes.mars.sample:SAMPLE"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("agents")
    sample.generate(0, folder)
    return folder


def records(folder, name):
    return [item.record for items in read_file(SOURCE, 0, folder / name) for item in items]


@pytest.fixture(scope="module")
def problems(folder):
    return records(folder, sample.PROBLEMS)


@pytest.fixture(scope="module")
def shown(folder):
    return records(folder, sample.DEMONSTRATIONS)


def item_of(messages):
    """The maths item that every agent reads."""
    return messages[1 if messages[0].content in (VERIFY, CORRECT) else 0].content


def test_the_same_seed_gives_the_same_bytes(folder, tmp_path):
    sample.generate(0, tmp_path)

    for name in (sample.PROBLEMS, sample.DEMONSTRATIONS):
        assert (folder / name).read_bytes() == (tmp_path / name).read_bytes()


def test_every_row_is_read_and_every_shown_response_is_right(problems, shown):
    assert sample.NUM_PROBLEMS == sum(isinstance(one, Problem) for one in problems)
    assert sum(sample.SHOWN.values()) == len(shown)
    assert all(isinstance(one, Demonstration) for one in shown)


def test_no_problem_is_taught_and_no_item_is_shown_to_two_agents(problems, shown):
    taught = Counter(item_of(one.messages) for one in shown)
    asked = {item_of(one.messages) for one in problems}

    assert {1} == {*taught.values()}
    assert not taught.keys() & asked
    assert not any(map(is_problem_prompt, taught))


def test_half_of_the_shown_verdicts_accept(shown):
    said = [says_correct(one.response) for one in shown if one.messages[0].content == VERIFY]

    assert {True, False} == {*said}
    assert sample.SHOWN[Agent.VERIFIER] == len(said)
    assert 0.4 < sum(said) / len(said) < 0.6
