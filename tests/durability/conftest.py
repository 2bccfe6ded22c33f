"""A small phase of RL, whose states are committed and uploaded."""

from tests.rl.conftest import number as number
from tests.rl.conftest import phase_in as phase_in
from tests.rl.conftest import problems as problems
from tests.rl.conftest import scorer as scorer
from tests.rl.conftest import settings as settings
from tests.rl.conftest import small_phase as small_phase
