"""How errors are reported to Flyte; what reaches the cluster is asserted in test_package."""

import inspect

import pytest
from flytekit.exceptions.user import FlyteRecoverableException

from tasks.errors import DataError, EngineError, Preempted
from tasks.platform.retries import recoverable


@recoverable
def fail(error: Exception) -> str:
    """Raise what it is given."""
    raise error


@pytest.mark.parametrize("error", [EngineError("node lost"), Preempted("step 7 is safe")])
def test_an_error_of_the_machine_is_tried_again(error):
    with pytest.raises(FlyteRecoverableException, match=f"{type(error).__name__}: {error}"):
        fail(error)


def test_an_error_of_the_data_is_final():
    with pytest.raises(DataError, match="row 3"):
        fail(DataError("row 3"))


def test_flyte_still_sees_the_shells_own_signature():
    assert ["error"] == list(inspect.signature(fail).parameters)
    assert "fail" == fail.__name__
