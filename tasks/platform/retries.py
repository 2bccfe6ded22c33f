"""Which errors Flyte retries, and the checkpoint that one attempt leaves for the next."""

import functools
import sys
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from flytekit import current_context
from flytekit.core.checkpointer import Checkpoint
from flytekit.core.context_manager import FlyteContextManager
from flytekit.exceptions.user import FlyteRecoverableException

from tasks.errors import RETRYABLE
from tasks.platform import command_line

FLYTE_2 = "flyte_migrate" in sys.modules
"""Whether pyflyte-migrate loads this, which runs workflows of flytekit on Flyte 2."""
Args = ParamSpec("Args")
Result = TypeVar("Result")


def recoverable(function: Callable[Args, Result]) -> Callable[Args, Result]:
    """Mark the errors that Flyte retries; it treats every other error as final."""

    @functools.wraps(function)
    def run(*args: Args.args, **kwargs: Args.kwargs) -> Result:
        if _is_local_run():  # Flyte does not retry there
            with command_line.print_errors_on_one_line():
                return function(*args, **kwargs)
        try:
            return function(*args, **kwargs)
        except RETRYABLE as error:
            raise FlyteRecoverableException(f"{type(error).__name__}: {error}") from error

    return run


def _is_local_run() -> bool:
    """True below `pyflyte run` on this machine."""
    state = FlyteContextManager.current_context().execution_state
    return command_line.is_typed_by_hand() and state is not None and state.is_local_execution()


def checkpoint() -> Checkpoint | None:
    """Return Flyte's checkpoint of this attempt, which the next attempt can read."""
    try:
        return current_context().checkpoint
    except NotImplementedError:  # the platform has none
        return None
