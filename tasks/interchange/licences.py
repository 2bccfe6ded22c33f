"""Licences of the data sets that adapters read."""

LICENCES = {
    "sample_world": "Apache-2.0",
    "gsm8k": "MIT",
    "math_train": "MIT",
    "mgsm": "CC-BY-4.0",
    "mbpp": "CC-BY-4.0",
    "ifeval": "Apache-2.0",
    "m_ifeval": "Apache-2.0",
    "bfcl": "Apache-2.0",
    "toolrl_rlla": "Apache-2.0",
    "prdect_id": "MIT",
}
"""Adapter -> SPDX licence that the publisher of its data set declares; others are not recorded."""
