"""How errors are reported to Flyte; what reaches the cluster is asserted in test_package."""

import inspect

import pytest
from flytekit.exceptions.user import FlyteRecoverableException, FlyteUserRuntimeException

from tasks.errors import DataError, EngineError, PreemptionError
from tasks.platform.retries import line_for_flyte, recoverable


@recoverable
def fail(error: Exception) -> str:
    """Raise what it is given."""
    raise error


@pytest.mark.parametrize("error", [EngineError("node lost"), PreemptionError("step 7 is safe")])
def test_an_error_of_the_machine_is_tried_again(error):
    with pytest.raises(FlyteRecoverableException, match=f"{type(error).__name__}: {error}"):
        fail(error)


def test_an_error_of_the_data_is_final():
    with pytest.raises(DataError, match="row 3"):
        fail(DataError("row 3"))


def test_flyte_still_sees_the_shells_own_signature():
    assert ["error"] == list(inspect.signature(fail).parameters)
    assert "fail" == fail.__name__


def caught(error: Exception) -> FlyteUserRuntimeException:
    """What flytekit gets of a stage that failed, with its frames and its chain."""
    error.__cause__ = KeyError("inner")
    with pytest.raises((type(error), FlyteRecoverableException)) as final:
        fail(error)
    return FlyteUserRuntimeException(final.value)


def test_flyte_shows_an_error_of_ours_as_one_line():
    assert "DataError: row 3: no answer" == line_for_flyte(caught(DataError("row 3:\nno answer")))
    assert "EngineError: node lost" == line_for_flyte(caught(EngineError("node lost")))


def test_flyte_shows_a_bug_with_its_frames():
    error = caught(ZeroDivisionError("a bug"))
    error.__cause__ = error.value  # flytekit raises it from there
    text = line_for_flyte(error)

    assert "in fail" in text
    assert text.endswith("ZeroDivisionError: a bug")
