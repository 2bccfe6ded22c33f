"""Which file operations of a job count as its state, and what a job writes about a step."""

import os
import signal
import subprocess
import sys

import pytest
import torch

from tests.bench.resume.progress import (
    AuditHook,
    Event,
    ModuleHook,
    Progress,
    changes_state,
    read_steps,
)


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
    computes: list[ModuleHook] = []
    progress = Progress(tmp_path, listen=hooks.append, listen_to_modules=computes.append)

    progress.note(0, ["b", "a", "b"], ["1", "2", "3"])
    hooks[0]("open", (str(tmp_path / "state" / "weights"), "w", os.O_WRONLY))
    computes[0](torch.nn.Identity(), ())
    computes[0](torch.nn.Identity(), ())
    progress.note(1, ["a", "b", "b"], ["2", "3", "1"])
    first, second = read_steps(tmp_path)

    assert (0, ("a", "b")) == (first.step, first.prompts)
    assert {Event.COMPUTATION: 0, Event.OPERATION: 0} == first.events
    assert (1, ("a", "b")) == (second.step, second.prompts)
    assert {Event.COMPUTATION: 2, Event.OPERATION: 1} == second.events
    assert first.responses == second.responses
    assert 0.0 < first.cpu_s <= second.cpu_s


@pytest.mark.slow
@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (Event.COMPUTATION, ["first step", "compute", "second step", "compute"]),
        (Event.OPERATION, ["first step", "compute", "second step", *["compute"] * 3, "open"]),
    ],
)
def test_a_job_ends_before_that_event_after_the_step(tmp_path, event, expected):
    code = """
import sys
from pathlib import Path
import torch
from tests.bench.resume.progress import Event, Kill, Progress

folder, state = Path(sys.argv[1]), Path(sys.argv[1], "state")
state.mkdir()
progress = Progress(folder, Kill(1, Event(sys.argv[2]), 2))

def write(text):
    with (folder / "log").open("a") as log:
        log.write(text + "\\n")

progress.note(0, ["p"], ["r"])
write("first step")
torch.nn.Identity()(0)
write("compute")
progress.note(1, ["p"], ["r"])
write("second step")
for _ in range(3):
    torch.nn.Identity()(0)
    write("compute")
for name in "ab":
    (state / name).write_text("")
    write("open")
write("end")
"""
    ended = subprocess.run([sys.executable, "-c", code, str(tmp_path), event], check=False)

    assert -signal.SIGKILL == ended.returncode
    assert expected == (tmp_path / "log").read_text().splitlines()


def test_a_job_that_scored_nothing_has_no_steps(tmp_path):
    assert [] == read_steps(tmp_path)
