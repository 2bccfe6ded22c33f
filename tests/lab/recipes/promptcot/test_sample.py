"""The sample world of a solver who errs."""

from data_schemas.rows import Demonstration, Problem
from tasks.curation.adapters.table import read_file
from tasks.lab.recipes.promptcot import sample


def records(folder, name):
    rows = read_file(sample.SOURCE, 0, folder / name)
    return [item.record for items in rows for item in items]


def test_every_row_is_read_and_no_problem_is_answered_in_a_demonstration(tmp_path):
    sample.generate(0, tmp_path)
    problems = records(tmp_path, sample.PROBLEMS)
    taught = records(tmp_path, sample.DEMONSTRATIONS)

    assert [Problem] * sample.NUM_PROBLEMS == [type(one) for one in problems]
    assert [Demonstration] * sample.NUM_DEMONSTRATIONS == [type(one) for one in taught]
    assert not {one.messages for one in problems} & {one.messages for one in taught}
