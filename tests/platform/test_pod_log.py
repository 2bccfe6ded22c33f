"""What a pod logs: a JSON object a line, and nothing that says nothing."""

import json
import os
import sys
from pathlib import Path

import pytest

from tests.processes import run_process

ROOT = Path(__file__).parents[2]
POD = {
    "FLYTE_INTERNAL_EXECUTION_ID": "night7",
    "FLYTE_INTERNAL_TASK_NAME": "tasks.stages.rl.rl",
    "FLYTE_ATTEMPT_NUMBER": "1",
}
CODE = """
import logging
from tasks.platform import progress, shell
from data_schemas.settings import PipelineSettings
from flytekit.core.type_engine import TypeEngine
TypeEngine.to_literal_type(PipelineSettings)  # flytekit has much to say about it
progress.LINE_EVERY_S = 0.0
for _ in progress.progress([1, 2], "grading", 2):
    pass
logging.getLogger("asyncio").error("Unclosed client session\\nclient_session: <...>")
logging.getLogger("urllib3").info("of no interest")
logging.getLogger("flytekit").error("caught {'message': 'Unclosed client session'}")
logging.getLogger("flytekit").error("!! Begin User Error Captured by Flyte !!")
logging.getLogger("flytekit").error("DataError: row 3")
try:
    raise ValueError("broken")
except ValueError:
    logging.getLogger("somebody").exception("a library's\\nfailure")
"""


def lines(**variables: str) -> list[str]:
    environment = {name: one for name, one in os.environ.items() if "FLYTE" not in name}
    done = run_process([sys.executable, "-c", CODE], cwd=ROOT, env=environment | variables)
    return done.stderr.splitlines()


@pytest.mark.slow
def test_a_pod_logs_one_object_a_line_and_only_what_concerns_the_stage():
    told = [json.loads(line) for line in lines(**POD)]

    assert ["grading: 1 of 2", "grading: 2 of 2", "DataError: row 3", "a library's\nfailure"] == [
        one["message"] for one in told
    ]
    assert {("night7", "tasks.stages.rl.rl", "1")} == {
        (one["execution"], one["stage"], one["attempt"]) for one in told
    }
    assert ["INFO", "INFO", "ERROR", "ERROR"] == [one["level"] for one in told]
    assert "ValueError: broken" in told[-1]["error"]
    assert all(one["time"].endswith("+00:00") for one in told)


@pytest.mark.slow
def test_without_a_terminal_a_loop_has_lines_and_no_bar():
    said = lines()

    assert ["grading: 1 of 2", "grading: 2 of 2"] == [one for one in said if "grading" in one]
    assert "\r" not in "".join(said)
