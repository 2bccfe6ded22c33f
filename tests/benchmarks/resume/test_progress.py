"""Which file operations of a job count as its state, and what a job writes about a step."""

import os

import pytest

from tasks.benchmarks.resume.progress import AuditHook, Progress, changes_state, read_steps


@pytest.mark.parametrize(
    ("event", "arguments", "expected"),
    [
        ("open", ("/job/state/a", "w", os.O_WRONLY | os.O_CREAT), True),
        ("open", (b"/job/state/a", None, os.O_RDWR), True),
        ("open", ("/job/state/a", "r", os.O_RDONLY | os.O_CLOEXEC), False),
        ("open", ("/job/steps.jsonl", "a", os.O_WRONLY | os.O_CREAT), False),
        ("open", ("/job/state.jsonl", "a", os.O_WRONLY | os.O_CREAT), False),
        ("open", (3, "w", os.O_WRONLY), False),
        ("os.rename", ("/job/state/a", "/job/state/b", -1, -1), True),
        ("os.rename", ("/job/.a", "/job/a", -1, -1), False),
        ("os.mkdir", ("/job/state/a", 511, -1), False),
        ("os.listdir", ("/job/state",), False),
    ],
)
def test_what_opens_for_writing_or_renames_below_the_state_counts(event, arguments, expected):
    assert expected is changes_state(event, arguments, "/job/state")


def test_a_step_is_read_back_as_it_was_written(tmp_path):
    hooks: list[AuditHook] = []
    progress = Progress(tmp_path, listen=hooks.append)

    progress.note(0, ["b", "a", "b"], ["1", "2", "3"])
    hooks[0]("open", (str(tmp_path / "state" / "weights"), "w", os.O_WRONLY))
    progress.note(1, ["a", "b", "b"], ["2", "3", "1"])
    first, second = read_steps(tmp_path)

    assert (0, ("a", "b"), 0) == (first.step, first.prompts, first.operations)
    assert (1, ("a", "b"), 1) == (second.step, second.prompts, second.operations)
    assert first.responses == second.responses


def test_a_job_that_scored_nothing_has_no_steps(tmp_path):
    assert [] == read_steps(tmp_path)
