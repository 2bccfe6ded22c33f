"""The sample school: seeded, read by its adapter, its teachers verified."""

from collections import Counter

import pytest

from data_schemas.prompts import Domain
from tasks.curation import sample_school
from tasks.curation.adapters.table import read_file
from tasks.rewards.table import VERIFIERS


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("school")
    sample_school.generate(0, folder)
    return folder


def items(folder, name):
    return [item for items in read_file("sample_school", 0, folder / name) for item in items]


def test_the_same_seed_gives_the_same_bytes(folder, tmp_path):
    sample_school.generate(0, tmp_path)

    for name in (sample_school.PROBLEMS, sample_school.DEMONSTRATIONS):
        assert (folder / name).read_bytes() == (tmp_path / name).read_bytes()


def test_problems_are_of_both_domains_and_share_no_prompt_with_demonstrations(folder):
    asked = [item.record for item in items(folder, sample_school.PROBLEMS)]
    shown = [item.record for item in items(folder, sample_school.DEMONSTRATIONS)]

    amount = sample_school.PROBLEMS_PER_DOMAIN
    assert {Domain.SCIENCE: amount, Domain.GENERAL: amount} == Counter(one.domain for one in asked)
    assert not {one.prompt_text for one in asked} & {one.prompt_text for one in shown}
    assert sample_school.DEMONSTRATIONS_PER_PARENT == {
        parent: Counter(one.domain for one in shown if one.parent == parent)
        for parent in sample_school.DEMONSTRATIONS_PER_PARENT
    }


def test_the_verifiers_refuse_what_the_hasty_teacher_wrote_of_every_domain(folder):
    shown = items(folder, sample_school.DEMONSTRATIONS)
    right = Counter(
        item.record.domain
        for item in shown
        if VERIFIERS[item.answers.verifier](item.answers, item.record.response).score == 1.0
    )
    taught = Counter(item.record.domain for item in shown)

    # Half are careful, a quarter is terse, a quarter hasty.
    for domain, number in taught.items():
        assert 0.75 == pytest.approx(right[domain] / number, abs=0.06)
