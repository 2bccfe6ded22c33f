from collections import Counter

import pytest

from data_schemas.rows import Demonstration, Domain, Problem
from tasks.curation.adapters.table import read_file
from tasks.gym.table import VERIFIERS
from tasks.lab.recipes.spell import sample
from tasks.lab.recipes.spell.offers import OfferList, answer
from tasks.lab.recipes.spell.roles import (
    agent_of,
    covers,
    documents_of,
    new_documents,
    read_answer,
    read_question,
    read_vote,
)
from tasks.lab.recipes.spell.settings import SpellRole

SOURCE = "tasks.lab.recipes.spell.sample:SAMPLE"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("self_play")
    sample.generate(0, folder)
    return folder


def records(folder, name):
    path = folder / name
    return [one.record for items in read_file(SOURCE, 0, path) for one in items]


@pytest.fixture(scope="module")
def problems(folder):
    return records(folder, sample.PROBLEMS)


@pytest.fixture(scope="module")
def shown(folder):
    return records(folder, sample.DEMONSTRATIONS)


def lines_of(one):
    """The offer lists that a prompt of questioner or responder shows."""
    return {line for line in one.messages[-1].content.splitlines() if line[1:3] == ": "} - {
        line for line in one.messages[-1].content.splitlines() if line.startswith("Q: ")
    }


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes(folder, tmp_path):
    sample.generate(0, tmp_path)

    for name in (sample.PROBLEMS, sample.DEMONSTRATIONS):
        assert (folder / name).read_bytes() == (tmp_path / name).read_bytes()


@pytest.mark.slow
def test_every_row_is_read_and_every_shown_response_has_its_form(problems, shown):
    assert sample.NUM_CLUSTERS + sample.NUM_QUESTIONS == len(problems)
    assert sample.SHOWN == Counter(agent_of(one.messages) for one in shown)
    assert {Problem} == {type(one) for one in problems}
    assert {Demonstration} == {type(one) for one in shown}


def test_no_cluster_of_a_problem_is_taught(problems, shown):
    taught = {line for one in shown for line in lines_of(one)}
    clusters = {frozenset(lines_of(one)) for one in problems}

    assert not [cluster for cluster in clusters if cluster <= taught]


def test_a_reference_is_the_answer_of_the_lists(problems):
    posed = [one for one in problems if one.domain is not Domain.GENERAL]

    for one in posed:
        lists = [OfferList.read(line) for line in documents_of(one.messages)]
        question = answer(one.messages[-1].content.splitlines()[-1], lists)
        assert VERIFIERS[one.verifier](one, question.answer).solved
    assert {Domain.CHOICE: 600, Domain.MATHS: 300} == Counter(one.domain for one in posed)


def test_taught_questions_are_right_different_and_not_easier_than_the_memory(shown):
    asked = [one for one in shown if agent_of(one.messages) is SpellRole.QUESTIONER]

    for one in asked:
        lists = [OfferList.read(line) for line in lines_of(one)]
        said = read_question(one.response)
        found = answer(said.question, lists)
        remembered = [
            line.removeprefix("Q: ").rpartition(" = ")[0]
            for line in one.messages[-1].content.splitlines()
            if line.startswith("Q: ")
        ]
        assert said.answer == found.answer
        assert said.question not in remembered
        assert sample.NEW_LISTS == len(new_documents(one.messages))
    assert {0, 1, 2, 3} == {one.messages[-1].content.count("Q: ") for one in asked}


def test_taught_answers_are_those_of_the_lists(shown):
    for one in shown:
        if agent_of(one.messages) is SpellRole.RESPONDER:
            lists = [OfferList.read(line) for line in documents_of(one.messages)]
            truth = answer(one.messages[-1].content.splitlines()[-1], lists)
            assert covers(truth.answer, read_answer(one.response))


def test_half_of_the_taught_votes_accept_and_each_agrees_with_the_rule(shown):
    votes = [one for one in shown if agent_of(one.messages) is SpellRole.VERIFIER]

    said = [read_vote(one.response) for one in votes]
    rule = [covers(*one.messages[-1].content.splitlines()[1:]) for one in votes]
    assert rule == said
    assert 0.45 < sum(said) / len(said) < 0.55
