"""Run solutions of code problems in the sandbox that verifies responses."""

from collections.abc import Sequence

from tasks.curation.code_tests.inputs import program
from tasks.errors import EngineError, JudgeError
from tasks.gym.code_tests import CodeTests, passed_tests
from tasks.gym.sandbox.runner import shared_sandbox
from tasks.gym.sandbox.session import Run
from tasks.gym.sandbox.toolchains import build


def run(gold: CodeTests, source: str) -> list[bool] | None:
    """Return which tests a program passes; None if the sandbox could not run them all."""
    return passed_tests(gold, source, shared_sandbox())


def outputs(gold: CodeTests, source: str, inputs: Sequence[str]) -> list[str | None]:
    """Return what a program prints for each input; None where it fails."""
    found: list[str | None] = [None] * len(inputs)

    def keep(place: int, ended: Run) -> str:
        if ended.end == "done" and ended.code == 0:
            found[place] = ended.output
        return ""

    sandbox = shared_sandbox()
    try:
        built = build(gold.language, program(gold, source), limits=sandbox.limits)
        sandbox.execute(built, inputs, keep)
    except (JudgeError, EngineError):
        return [None] * len(inputs)
    return found
