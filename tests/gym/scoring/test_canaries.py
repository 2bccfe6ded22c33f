import pytest

from data_schemas.verdicts import scored
from tasks.errors import EngineError
from tasks.gym.scoring import canaries
from tasks.gym.table import VERIFIERS


def test_every_verifier_has_a_canary_and_judges_it_right():
    assert set(VERIFIERS) == {canary.verifier for canary in canaries.CANARIES}
    canaries.check_canaries()


def test_a_verifier_that_lets_everything_pass_is_named(monkeypatch):
    monkeypatch.setitem(VERIFIERS, "choice", lambda *_: scored(1.0, "generous"))

    with pytest.raises(EngineError, match=r"verifier choice scored .* must not be solved"):
        canaries.check_canaries()
