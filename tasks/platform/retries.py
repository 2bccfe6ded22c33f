"""Which errors Flyte tries again, and what one attempt leaves for the next."""

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import click
from flytekit import current_context
from flytekit.core.checkpointer import Checkpoint
from flytekit.core.context_manager import FlyteContextManager
from flytekit.exceptions.user import FlyteRecoverableException

from tasks.errors import RETRYABLE, PipelineError

Args = ParamSpec("Args")
Result = TypeVar("Result")


def recoverable(function: Callable[Args, Result]) -> Callable[Args, Result]:
    """Tell Flyte which errors are worth another try; it takes every other one as final."""

    @functools.wraps(function)
    def run(*args: Args.args, **kwargs: Args.kwargs) -> Result:
        try:
            return function(*args, **kwargs)
        except RETRYABLE as error:
            raise FlyteRecoverableException(f"{type(error).__name__}: {error}") from error
        except PipelineError as error:
            if _is_typed_by_hand():
                # Who can act needs the message; `pyflyte -v run` shows where it came from.
                raise click.ClickException(f"{type(error).__name__}: {error}") from error
            raise

    return run


def _is_typed_by_hand() -> bool:
    """True below `pyflyte run` on this machine, unless it was asked for more words."""
    command = click.get_current_context(silent=True)
    state = FlyteContextManager.current_context().execution_state
    if command is None or state is None or not state.is_local_execution():
        return False
    return not command.find_root().params.get("verbose")


def checkpoint() -> Checkpoint | None:
    """Return Flyte's checkpoint of this attempt: the next attempt can read what it holds."""
    try:
        return current_context().checkpoint
    except NotImplementedError:  # the platform has none
        return None
