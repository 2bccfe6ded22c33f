from tasks.gym.environments.table import ENVIRONMENTS
from tasks.gym.table import VERIFIERS


def test_every_environment_has_a_verifier_of_its_name():
    assert ENVIRONMENTS.keys() <= VERIFIERS.keys()
