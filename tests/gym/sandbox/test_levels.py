"""Which sandbox is used, which is refused, and what the refusal says."""

import os
import sys
from pathlib import Path

import pytest

from tasks.errors import SettingsError
from tasks.gym.sandbox.levels import Level, available, choose
from tests.processes import run_process

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("allowed", "best"),
    [
        ("", Level.BUBBLEWRAP),
        ("", Level.KERNEL),
        ("kernel", Level.BUBBLEWRAP),
        ("plain", Level.BUBBLEWRAP),
        ("plain", Level.PLAIN),
        ("bubblewrap", Level.BUBBLEWRAP),
    ],
)
def test_the_best_level_there_is_gets_used(allowed: str, best: Level) -> None:
    assert best is choose(allowed, best)


@pytest.mark.parametrize(
    ("allowed", "best"),
    [("", Level.PLAIN), ("kernel", Level.PLAIN), ("bubblewrap", Level.KERNEL)],
)
def test_less_than_allowed_is_refused_with_both_remedies(allowed: str, best: Level) -> None:
    with pytest.raises(SettingsError) as refusal:
        choose(allowed, best)

    assert "apt-get install --yes bubblewrap" in str(refusal.value)
    assert f"EACHPROMPT_SANDBOX={best!s}" in str(refusal.value)


def test_the_refusal_says_what_plain_processes_lose() -> None:
    with pytest.raises(SettingsError, match="read your files, write files, use the network"):
        choose("", Level.PLAIN)


def test_a_level_that_does_not_exist_is_refused_by_name() -> None:
    with pytest.raises(SettingsError, match="EACHPROMPT_SANDBOX=none: use one of bubblewrap, "):
        choose("none", Level.BUBBLEWRAP)


def run(code: str, **environment: str) -> str:
    done = run_process([sys.executable, "-c", code], cwd=ROOT, env=environment, check=False)
    return done.stdout + done.stderr


AVAILABLE = "from tasks.gym.sandbox.levels import available; print(available())"


@pytest.mark.skipif(available() is not Level.BUBBLEWRAP, reason="bubblewrap does not work here")
def test_without_bubblewrap_on_the_path_linux_still_has_the_kernel_level() -> None:
    assert "bubblewrap\n" == run(AVAILABLE, PATH=os.environ["PATH"])
    assert "kernel\n" == run(AVAILABLE, PATH="/nowhere")


def test_a_bubblewrap_that_is_refused_its_namespaces_is_not_counted(tmp_path: Path) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'No permissions to create new namespace' >&2\nexit 1\n")
    fake.chmod(0o755)
    said = run(AVAILABLE, PATH=f"{tmp_path}:/usr/bin:/bin")

    assert "No permissions to create new namespace" in said
    assert "bubblewrap\n" != said.splitlines(keepends=True)[-1]


def test_the_variable_is_read_when_a_sandbox_is_opened() -> None:
    code = (
        "from tasks.gym.sandbox.runner import Sandbox, shared_sandbox\n"
        "try: shared_sandbox()\n"
        "except ValueError as error: print(error)\n"
    )

    assert "use one of" in run(code, PATH=os.environ["PATH"], EACHPROMPT_SANDBOX="sand")
