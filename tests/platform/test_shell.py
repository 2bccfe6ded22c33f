"""Arguments of tasks, and stages of several processes; test_package has what is registered."""

import os
import subprocess
import sys
from pathlib import Path

from tasks.platform.shell import task_arguments


def test_the_cache_forgets_which_execution_asked():
    assert ("execution",) == task_arguments("merge")["cache"].ignored_inputs


def imported(**environment: str) -> subprocess.CompletedProcess:
    """Import a file with stages of both kinds in an installation without the Elastic plugin."""
    hide = "import sys; sys.modules['flytekitplugins'] = None\n"
    hide += "import importlib.util as found, functools\nplain = found.find_spec\n"
    hide += "found.find_spec = lambda name: None if name == 'flytekitplugins' else plain(name)\n"
    return subprocess.run(
        [sys.executable, "-c", hide + "import tasks.evaluation.task"],
        cwd=Path(__file__).parents[2],
        env=os.environ | {"EACHPROMPT_PROCESSES": "2"} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_several_processes_need_what_starts_them():
    words = " ".join(imported().stderr.split())

    assert "need the package flytekitplugins-kfpytorch" in words


def test_a_pod_of_another_stage_does_without():
    assert 0 == imported(FLYTE_INTERNAL_EXECUTION_ID="run").returncode
