"""Schedules of recorded lengths against their lower bound, by hand."""

import numpy as np
import pandas as pd
import pytest

from tasks.capacity.simulation.lengths import Group, draw_step, read_lengths
from tasks.errors import DataError
from tests.bench.scheduling import Slots, main, overheads, predicted, record_error


def group(*lengths: float, record: float | None = None) -> Group:
    return Group(np.array(lengths, dtype=float), record)


def test_the_longest_first_reach_the_bound_where_drawing_order_does_not():
    # Two replicas of one slot. As drawn: 1 + 3 and 1 + 3 is even, but 3, 1, 3, 1 gives 6 and 2.
    groups = [group(3.0, record=3.0), group(1.0, record=1.0)] * 2

    policies = {"as drawn": 1.5, "record": 1.0, "shared queue": 1.0, "known": 1.0}
    assert policies == overheads(groups, Slots(2, 1))


def test_a_record_that_is_wrong_costs_what_it_misleads_to():
    # By record the short group fills a replica, and both long ones share the other.
    groups = [group(6.0, record=1.0), group(6.0, record=1.0), group(1.0, record=2.0)]

    found = overheads(groups, Slots(2, 1))

    assert (12.0 / 6.5, 7.0 / 6.5) == (found["record"], found["known"])


def test_engines_that_share_a_queue_correct_a_wrong_record():
    groups = [group(6.0, record=3.0), group(6.0, record=1.0), group(3.0, record=3.0)]
    found = overheads(groups, Slots(2, 1))

    # The short record goes to a replica that has 6 to do, or to the one that is free after 3.
    assert (12.0 / 7.5, 9.0 / 7.5) == (found["record"], found["shared queue"])


def test_no_schedule_is_better_than_the_longest_response():
    groups = [group(10.0, record=10.0), group(1.0, record=1.0)]

    assert {1.0} == set(overheads(groups, Slots(4, 4)).values())


def test_without_records_there_is_no_such_policy():
    assert ["as drawn", "known"] == list(overheads([group(1.0), group(2.0)], Slots(2, 1)))


def test_a_record_is_of_other_responses_than_the_group():
    lengths = np.arange(8.0, dtype=np.float64)

    (found,) = draw_step([lengths, np.ones(2)], 1, 4, np.random.default_rng(0))

    earlier = set(lengths.tolist()) - set(found.lengths.tolist())
    assert np.mean(list(earlier)) == found.record


def test_a_record_may_be_of_more_responses_than_a_group_has():
    lengths = np.arange(8.0, dtype=np.float64)
    (found,) = draw_step([lengths, np.ones(7)], 1, 2, np.random.default_rng(0), earlier=6)

    assert (28.0 - found.lengths.sum()) / 6 == found.record


def test_predictions_have_the_error_they_are_given():
    groups = [group(2.0, 4.0, record=1.0)] * 4000

    found = predicted(groups, 0.15, np.random.default_rng(0))
    assert pytest.approx(0.15, rel=0.03) == record_error(found)
    assert 0.0 == record_error(predicted(groups, 0.0, np.random.default_rng(0)))
    assert {2.0, 4.0} == {length for one in found for length in one.lengths}


def test_too_few_lengths_are_named():
    with pytest.raises(DataError, match="no prompt has 8 lengths"):
        draw_step([np.ones(3), np.ones(7)], 1, 4, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("t.csv", lambda table, path: table.to_csv(path, index=False)),
        ("t.jsonl", lambda table, path: table.to_json(path, orient="records", lines=True)),
        ("t.parquet", lambda table, path: table.to_parquet(path)),
    ],
)
def test_a_table_is_read_by_prompt(tmp_path, name, write):
    write(pd.DataFrame({"id": ["b", "a", "b"], "tokens": [3, 0, 5]}), tmp_path / name)

    by_prompt = read_lengths(tmp_path / name, "tokens", "id")

    assert [[1.0], [3.0, 5.0]] == [lengths.tolist() for lengths in by_prompt]
    assert [[3.0, 1.0, 5.0]] == [x.tolist() for x in read_lengths(tmp_path / name, "tokens", "")]


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("a\n1\n", "b", "no column 'b', but a"),
        ("a\nlong\n", "a", "no length"),
        ("a\n-1\n", "a", "no length"),
    ],
)
def test_a_table_that_is_none_of_lengths_is_refused(tmp_path, text, column, message):
    (tmp_path / "t.csv").write_text(text)

    with pytest.raises(DataError, match=message):
        read_lengths(tmp_path / "t.csv", column, "")


def test_a_file_of_another_kind_or_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"must end in one of \.csv"):
        read_lengths(tmp_path / "t.xlsx", "a", "")
    with pytest.raises(DataError, match="cannot be read"):
        read_lengths(tmp_path / "t.csv", "a", "")


def test_the_command_prints_every_layout(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("id,n\n" + "".join(f"{k % 3},{k}\n" for k in range(30)))

    main(
        [str(tmp_path / "t.csv"), "--column", "n", "--prompt", "id", "--steps", "2", "--group", "4"]
    )

    lines = capsys.readouterr().out.splitlines()
    assert ["1", "8", "32"] * 2 == [line.split()[0] for line in (*lines[2:5], *lines[7:10])]
    assert lines[10].startswith("error of the records: ")
