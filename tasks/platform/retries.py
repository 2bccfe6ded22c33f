"""Which errors Flyte retries, and the checkpoint that one attempt leaves for the next."""

import functools
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from flytekit import current_context
from flytekit.bin import entrypoint
from flytekit.core.checkpointer import Checkpoint
from flytekit.core.context_manager import FlyteContextManager
from flytekit.exceptions.user import FlyteRecoverableException

from tasks.errors import RETRYABLE, PipelineError
from tasks.platform import command_line
from tasks.platform.cache_version import require_registered_code
from tasks.platform.log_lines import in_pod

FLYTE_2 = "flyte_migrate" in sys.modules
"""Whether pyflyte-migrate loads this, which runs workflows of flytekit on Flyte 2."""
Result = TypeVar("Result")


def recoverable(
    function: Callable[..., Result],
    inputs_of: Callable[[Mapping[str, Any]], dict[str, Any]] = dict,
) -> Callable[..., Result]:
    """Mark the errors that Flyte retries; it treats every other error as final.

    Args:
        function: of a stage.
        inputs_of: its inputs, of those that Flyte has.
    """

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Result:
        if _is_local_run():  # Flyte does not retry there
            with command_line.print_errors_on_one_line():
                return function(*args, **inputs_of(kwargs))
        try:
            require_registered_code()
            return function(*args, **inputs_of(kwargs))
        except RETRYABLE as error:
            raise FlyteRecoverableException(f"{type(error).__name__}: {error}") from error

    return run


_with_frames: Any = entrypoint.get_traceback_str


def line_for_flyte(error: Exception) -> str:
    """Return what Flyte shows of an error: one of ours as one line, any other with its frames.

    The console, the mail and the webhook show the first or the last characters of it.
    """
    value = getattr(error, "value", error)
    ours = value.__cause__ if isinstance(value, FlyteRecoverableException) else value
    if isinstance(ours, PipelineError):
        return " ".join(command_line.line_of(ours).split())
    return _with_frames(error)


if in_pod():
    entrypoint.get_traceback_str = line_for_flyte


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
