"""The sample house: seeded, its rules hidden from problems and written out in demonstrations."""

import pytest

from data_schemas.rows import MERGED
from tasks.curation.adapters.table import read_file
from tasks.gym.table import VERIFIERS
from tasks.lab.recipes.rusca import sample
from tasks.lab.recipes.rusca.criteria import criteria_of

SOURCE = "tasks.lab.recipes.rusca.sample:SAMPLE"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("house")
    sample.generate(0, folder)
    return folder


def records(folder, name):
    return [item.record for items in read_file(SOURCE, 0, folder / name) for item in items]


def test_the_same_seed_gives_the_same_bytes(folder, tmp_path):
    sample.generate(0, tmp_path)

    for name in (sample.PROBLEMS, sample.DEMONSTRATIONS):
        assert (folder / name).read_bytes() == (tmp_path / name).read_bytes()


def test_no_problem_says_a_word_of_its_rules_and_each_has_three(folder):
    found = records(folder, sample.PROBLEMS)

    assert len(found) == len({one.prompt_text for one in found})
    for one in found:
        criteria = criteria_of(one)
        assert 3 == len(criteria)
        assert not [item for item in criteria if item.criterion in one.prompt_text]


def test_demonstrations_are_no_problems_and_share_no_prompt_with_them(folder):
    asked = {one.prompt_text for one in records(folder, sample.PROBLEMS)}
    shown = records(folder, sample.DEMONSTRATIONS)

    assert sample.DEMONSTRATIONS_PER_PARENT * len(MERGED) == len(shown)
    assert set(MERGED) == {one.parent for one in shown}
    assert not asked & {one.prompt_text for one in shown}


def test_no_ad_has_the_style_of_every_category(folder):
    found = records(folder, sample.PROBLEMS)
    ads = [
        '"new light soft strong cheap fresh. thank you."',
        "A new kite. Thank you.",
        '"A new kite."',
    ]

    for ad in ads:
        scores = {VERIFIERS["rule_rubric"](one, ad).score for one in found}
        assert min(scores) < 1.0
    first = VERIFIERS["rule_rubric"](found[0], ads[0])
    assert first.score == 2 / 3
    fitting = VERIFIERS["rule_rubric"](found[0], '"A new kite. Thank you."')
    assert (True, "all_met") == (fitting.solved, fitting.reason)
