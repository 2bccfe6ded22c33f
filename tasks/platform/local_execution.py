"""What is to be done when an execution on this machine ends, well or not.

On a cluster Flyte knows how an execution ended. Here nobody does but the process that ran it.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar

_AT_END: ContextVar[ExitStack | None] = ContextVar("at_end", default=None)


@contextmanager
def local_execution() -> Iterator[None]:
    """Run an execution in the block; inside of another one this changes nothing."""
    if _AT_END.get() is not None:
        yield
        return
    with ExitStack() as stack:
        token = _AT_END.set(stack)
        try:
            yield
        finally:
            _AT_END.reset(token)


def at_end() -> ExitStack | None:
    """Return where to put what is done when the execution ends; None outside of one."""
    return _AT_END.get()
