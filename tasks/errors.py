"""The error tree, by who can act.

    PipelineError
    ├── SettingsError (ValueError)    the user: fix the setting named in the message; never retried
    ├── CapacityError (RuntimeError)  the user: what was asked for does not fit; never retried
    ├── DataError (ValueError)        the producer of the data: fix or quarantine it; never retried
    │   └── TamperError               somebody changed a committed object; the message names it
    ├── EngineError (RuntimeError)    nobody: a machine failed; Flyte retries it
    │   ├── PreemptionError           SIGTERM; the step is finished or abandoned; Flyte retries it
    │   └── DiskFullError             a disk has no space left; a retry helps on another machine
    └── JudgeError (RuntimeError)     no verdict; left out and counted, never scored 0

To add one: inherit the branch whose reader can act, keep it picklable (message only),
and say in one line when it is raised.
"""

from collections.abc import Iterator
from contextlib import contextmanager


class PipelineError(Exception):
    """Root of every error this project raises on purpose."""


class SettingsError(PipelineError, ValueError):
    """A setting is unknown, missing, degenerate or contradicts another."""


class CapacityError(PipelineError, RuntimeError):
    """A layout needs more memory than its GPUs have."""


class DataError(PipelineError, ValueError):
    """Rows, files or artifacts are not what their schema or digest says."""


class TamperError(DataError):
    """A committed object no longer has the digest it was committed with."""


class EngineError(PipelineError, RuntimeError):
    """A machine, process or service failed; trying again may help."""


class PreemptionError(EngineError):
    """The task was told to stop; its last committed step is safe."""


class DiskFullError(EngineError):
    """A disk has no space left."""


class JudgeError(PipelineError, RuntimeError):
    """A judge gave no usable verdict."""


@contextmanager
def typed(option: str) -> Iterator[None]:
    """Name the option of a file that is not what it should be: whoever typed it can act.

    Raises:
        SettingsError: in place of DataError, and of what is no UTF-8 or nested too deeply.
    """
    try:
        yield
    except TamperError:
        raise
    except DataError as error:
        raise SettingsError(f"{option}: {error}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{option}: it is not UTF-8: {error}") from error
    except RecursionError as error:
        raise SettingsError(f"{option}: it is nested too deeply to be read") from error


RETRYABLE: tuple[type[PipelineError], ...] = (EngineError,)
"""What the Flyte shells turn into FlyteRecoverableException."""
