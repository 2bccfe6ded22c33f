"""A plugin of pytest: Megatron's layers are those of a GPU, on a stand-in of Transformer Engine.

    pytest -p tests.engines.trainer_megatron.te_installed tests/engines/trainer_megatron/...

Ranks import this module before any other, too.
"""

import warnings

from tests.engines.trainer_megatron import gloo_world, te_stand_in

te_stand_in.install()
with warnings.catch_warnings(action="ignore"):  # Megatron misses Apex
    from tasks.engines.trainer_megatron import model

model.FAST_DEVICE = "cpu"
gloo_world.PRELOADED.insert(0, __name__)
