"""Where jobs are killed, what is compared afterwards, and the table."""

import dataclasses
import sys

import torch
from rich.console import Console

from tests.bench.resume import command
from tests.bench.resume.command import (
    Measured,
    Point,
    Process,
    Whole,
    compare,
    errors,
    first_difference,
    num_lines,
    points,
    remove_newest_checkpoint,
    start,
    table,
)
from tests.bench.resume.progress import Event, Kill, Step, read_steps

INSIDE, SAVE = Event.COMPUTATION, Event.OPERATION
WHOLE = [
    Step(
        number,
        (f"p{2 * number}", f"p{2 * number + 1}"),
        f"digest {number}",
        {INSIDE: 100 + 500 * number, SAVE: 10 * number},
        0.0,
    )
    for number in range(4)
]


def repeat(number: int, **changes: object) -> Step:
    return dataclasses.replace(WHOLE[number], **changes)


def test_points_alternate_between_a_step_and_its_save_and_spread_over_both():
    assert [
        Point(0, INSIDE, 1 / 3),
        Point(0, SAVE, 1 / 3),
        Point(1, INSIDE, 2 / 3),
        Point(1, SAVE, 2 / 3),
        Point(2, INSIDE, 1.0),
        Point(2, SAVE, 1.0),
    ] == points(6)


def test_one_point_lies_inside_a_step():
    assert [Point(0, INSIDE, 1.0)] == points(1)


def test_points_of_one_kind_are_all_different():
    assert 50 == len(set(points(50)))


def test_a_share_is_taken_of_the_events_of_that_step():
    assert Kill(1, INSIDE, 250) == Point(1, INSIDE, 0.5).kill(WHOLE)
    assert Kill(1, SAVE, 5) == Point(1, SAVE, 0.5).kill(WHOLE)
    assert Kill(1, SAVE, 1) == Point(1, SAVE, 0.01).kill(WHOLE)


def test_a_step_that_is_done_again_in_the_same_way_loses_and_repeats_nothing():
    killed = [*WHOLE[:2], WHOLE[1], *WHOLE[2:]]

    found = compare(Point(1, INSIDE, 0.5), WHOLE, killed, (b"same", b"same"))

    assert (0, 0, 1) == (found.lost, found.repeated, found.generated_again)
    assert (None, None) == (found.differs_from_step, found.differs_at_byte)
    assert found.ended


def test_prompts_of_a_later_start_replace_those_of_the_step_it_repeats():
    killed = [*WHOLE[:2], repeat(1, prompts=("p0", "p3")), *WHOLE[2:]]

    found = compare(Point(1, INSIDE, 0.5), WHOLE, killed, (b"aXc", b"aYc"))

    assert (1, 1) == (found.lost, found.repeated)
    assert (1, 1) == (found.differs_from_step, found.differs_at_byte)


def test_other_responses_to_the_same_prompts_are_a_difference_but_no_loss():
    killed = [*WHOLE[:3], repeat(3, responses="other")]

    found = compare(Point(2, SAVE, 0.5), WHOLE, killed, (b"a", b"b"))

    assert (0, 0, 3, 0) == (
        found.lost,
        found.repeated,
        found.differs_from_step,
        found.differs_at_byte,
    )


def test_a_job_that_never_ended_lost_the_prompts_of_its_missing_steps():
    found = compare(Point(2, SAVE, 0.5), WHOLE, WHOLE[:3], None, failed_starts=2)

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
    inside, save = Point(0, INSIDE, 0.5), Point(1, SAVE, 0.5)
    exact = compare(inside, WHOLE, WHOLE, (b"a", b"a"))
    killed, failed = Process(False, True, ""), Process(False, False, "ValueError")
    found = {
        "ours": Measured(
            [Whole(killed, seconds, 100 << 20, same=True) for seconds in (2.0, 1.0, 9.0)],
            [killed],
            [exact, exact],
        ),
        "TRL": Measured(
            [Whole(killed, 3.0, 150 << 20, same=same) for same in (True, True, False)],
            [killed, failed],
            [exact, compare(save, WHOLE, WHOLE[:3], None, failed_starts=2)],
        ),
    }
    console = Console(width=100)
    with console.capture() as shown:
        console.print(table(found))
    rows = {line[:38].strip(): line[38:].split() for line in shown.get().splitlines()}

    # The first uninterrupted run is the one that the others are compared with.
    assert ["2", "of", "2", "1", "of", "2"] == rows["not killed: same model, byte for byte"]
    assert ["2", "1"] == rows["killed inside a step"]
    assert ["0", "1"] == rows["killed in a save"]
    assert ["2", "1"] == rows["went on at the next start"]
    assert ["0", "2"] == rows["prompts lost"]
    assert ["none", "3"] == rows["first step that differs"]
    assert ["2.0", "(1.00)", "3.0", "(1.50)"] == rows["start to first rewards, CPU s"]
    assert ["100", "(1.00)", "150", "(1.50)"] == rows["peak memory, MiB"]


def test_a_reason_is_given_once_and_not_for_a_job_that_was_killed_on_purpose():
    torn = [
        Process(False, False, f"FileNotFoundError: '/tmp/{n}/state/trainer_state.json'")
        for n in range(2)
    ]
    killed = Process(False, True, "a warning")

    assert ["FileNotFoundError: 'trainer_state.json'"] == errors(Measured([], [*torn, killed], []))


def stopping(folder, progress):
    """A job for forked processes: it ends before its third step, or as it is told to."""
    for step in range(2):
        progress.note(step, ["p"], ["r"])
        torch.nn.Identity()(0)
    sys.stdout.write("not written")
    sys.stderr.write("why")
    sys.exit(3)


def test_a_forked_process_says_how_it_ended_and_what_it_wrote(tmp_path, monkeypatch):
    monkeypatch.setitem(command.TRAIN, "ours", stopping)

    assert Process(False, True, "why") == start("ours", tmp_path / "a")
    assert Process(False, True, "") == start("ours", tmp_path / "b", Kill(0, INSIDE, 1))
    assert [0] == [one.step for one in read_steps(tmp_path / "b")]


def test_docstrings_and_empty_lines_are_no_code():
    source = 'def f():\n    """One.\n\n    Two.\n    """\n\n    a = "b"\n    return a\n'

    assert 3 == num_lines(source)
