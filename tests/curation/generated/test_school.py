"""Generated science and general questions: seeded, read by their adapters, teachers verified."""

import pytest

from tasks.curation.adapters.table import read_file
from tasks.curation.generated import school
from tasks.gym.table import VERIFIERS


@pytest.fixture(scope="module", params=school.DOMAINS)
def made(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("school")
    school.generate(request.param, 0, folder)
    return request.param, folder


def items(made, name):
    source, folder = made
    return [item for items in read_file(source, 0, folder / name) for item in items]


def test_the_same_seed_gives_the_same_bytes(made, tmp_path):
    source, folder = made
    school.generate(source, 0, tmp_path)

    for name in (school.PROBLEMS, school.DEMONSTRATIONS):
        assert (folder / name).read_bytes() == (tmp_path / name).read_bytes()


def test_problems_are_of_the_domain_and_share_no_prompt_with_demonstrations(made):
    asked = [item.record for item in items(made, school.PROBLEMS)]
    shown = [item.record for item in items(made, school.DEMONSTRATIONS)]

    assert school.PROBLEMS_PER_DOMAIN == len(asked)
    assert {school.DOMAINS[made[0]]} == {one.domain for one in (*asked, *shown)}
    assert not {one.prompt_text for one in asked} & {one.prompt_text for one in shown}
    assert school.DEMONSTRATIONS_PER_PARENT[made[0]] == {
        parent: sum(one.parent == parent for one in shown)
        for parent in school.DEMONSTRATIONS_PER_PARENT[made[0]]
    }


def test_the_verifiers_refuse_what_the_hasty_teacher_wrote(made):
    shown = items(made, school.DEMONSTRATIONS)
    right = sum(
        VERIFIERS[item.answers.verifier](item.answers, item.record.response).score == 1.0
        for item in shown
    )

    # Half are careful, a quarter is terse, a quarter hasty.
    assert 0.75 == pytest.approx(right / len(shown), abs=0.06)
