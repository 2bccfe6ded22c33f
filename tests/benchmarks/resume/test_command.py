"""Where jobs are killed, what is compared afterwards, and the table."""

import dataclasses

from rich.console import Console

from tasks.benchmarks.resume.command import (
    Measured,
    Point,
    Process,
    compare,
    errors,
    first_difference,
    num_lines,
    points,
    remove_newest_checkpoint,
    table,
)
from tasks.benchmarks.resume.progress import Step

WHOLE = [
    Step(number, (f"p{2 * number}", f"p{2 * number + 1}"), f"digest {number}", 10 * number, 0.0)
    for number in range(4)
]


def repeat(number: int, **changes: object) -> Step:
    return dataclasses.replace(WHOLE[number], **changes)


def test_points_alternate_between_a_step_and_its_save_and_spread_over_both():
    assert [
        Point(0, None),
        Point(0, 1 / 3),
        Point(1, None),
        Point(1, 2 / 3),
        Point(2, None),
        Point(2, 1.0),
    ] == points(6)


def test_one_point_lies_inside_a_step():
    assert [Point(0, None)] == points(1)


def test_a_share_is_taken_of_the_operations_of_that_step():
    assert 0 == Point(1, None).operation(WHOLE)
    assert 5 == Point(1, 0.5).operation(WHOLE)
    assert 1 == Point(1, 0.01).operation(WHOLE)


def test_a_step_that_is_done_again_in_the_same_way_loses_and_repeats_nothing():
    killed = [*WHOLE[:2], WHOLE[1], *WHOLE[2:]]

    found = compare(Point(1, None), WHOLE, killed, (b"same", b"same"))

    assert (0, 0, 1) == (found.lost, found.repeated, found.generated_again)
    assert (None, None) == (found.differs_from_step, found.differs_at_byte)
    assert found.ended


def test_prompts_of_a_later_start_replace_those_of_the_step_it_repeats():
    killed = [*WHOLE[:2], repeat(1, prompts=("p0", "p3")), *WHOLE[2:]]

    found = compare(Point(1, None), WHOLE, killed, (b"aXc", b"aYc"))

    assert (1, 1) == (found.lost, found.repeated)
    assert (1, 1) == (found.differs_from_step, found.differs_at_byte)


def test_other_responses_to_the_same_prompts_are_a_difference_but_no_loss():
    killed = [*WHOLE[:3], repeat(3, responses="other")]

    found = compare(Point(2, 0.5), WHOLE, killed, (b"a", b"b"))

    assert (0, 0, 3, 0) == (
        found.lost,
        found.repeated,
        found.differs_from_step,
        found.differs_at_byte,
    )


def test_a_job_that_never_ended_lost_the_prompts_of_its_missing_steps():
    found = compare(Point(2, 0.5), WHOLE, WHOLE[:3], None, failed_starts=2)

    assert (False, 2, 3) == (found.ended, found.lost, found.differs_from_step)
    assert found.differs_at_byte is None


def test_a_longer_file_differs_where_the_shorter_one_ends():
    assert 2 == first_difference(b"ab", b"abc")
    assert None is first_difference(b"ab", b"ab")


def test_the_newest_checkpoint_is_that_of_the_largest_step(tmp_path):
    for step in (9, 10):
        (tmp_path / "state" / f"checkpoint-{step}").mkdir(parents=True)

    assert remove_newest_checkpoint(tmp_path)
    assert ["checkpoint-9"] == [path.name for path in (tmp_path / "state").iterdir()]


def test_a_state_without_checkpoints_is_left_alone(tmp_path):
    (tmp_path / "state" / "committed").mkdir(parents=True)

    assert not remove_newest_checkpoint(tmp_path)
    assert ["committed"] == [path.name for path in (tmp_path / "state").iterdir()]


def test_the_table_counts_ends_of_each_kind_and_divides_amounts_by_ours():
    inside, save = Point(0, None), Point(1, 0.5)
    exact = compare(inside, WHOLE, WHOLE, (b"a", b"a"))
    found = {
        "ours": Measured([Process(True, 2.0, 100 << 20, "")], [exact, exact]),
        "TRL": Measured(
            [Process(True, 3.0, 150 << 20, ""), Process(False, None, 50 << 20, "ValueError")],
            [exact, compare(save, WHOLE, WHOLE[:3], None, failed_starts=2)],
        ),
    }
    console = Console(width=100)
    with console.capture() as shown:
        console.print(table(found))
    rows = {line[:38].strip(): line[38:].split() for line in shown.get().splitlines()}

    assert ["2", "1"] == rows["killed inside a step"]
    assert ["0", "1"] == rows["killed in a save"]
    assert ["2", "1"] == rows["went on at the next start"]
    assert ["0", "2"] == rows["prompts lost"]
    assert ["none", "3"] == rows["first step that differs"]
    assert ["2.0", "(1.00)", "3.0", "(1.50)"] == rows["start to first rewards, s"]
    assert ["100", "(1.00)", "150", "(1.50)"] == rows["peak memory, MiB"]


def test_a_reason_is_given_once_and_not_for_a_job_that_was_killed_on_purpose():
    torn = [
        Process(False, None, 0, f"FileNotFoundError: '/tmp/{n}/state/trainer_state.json'")
        for n in range(2)
    ]
    killed = Process(False, 1.0, 0, "a warning")

    assert ["FileNotFoundError: 'trainer_state.json'"] == errors(Measured([*torn, killed], []))


def test_docstrings_and_empty_lines_are_no_code():
    source = 'def f():\n    """One.\n\n    Two.\n    """\n\n    a = "b"\n    return a\n'

    assert 3 == num_lines(source)
