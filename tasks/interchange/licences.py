"""Licences of the data sets that adapters and mappings read."""

LICENCES = {
    "sample_world": "Apache-2.0",
    "sample_agents": "Apache-2.0",
    "sample_shop": "Apache-2.0",
    "sample_harmful": "Apache-2.0",
    "sample_harmless": "Apache-2.0",
    "gsm8k": "MIT",
    "math_train": "MIT",
    "mgsm": "CC-BY-4.0",
    "mbpp": "CC-BY-4.0",
    "ifeval": "Apache-2.0",
    "m_ifeval": "Apache-2.0",
    "bfcl": "Apache-2.0",
    "toolrl_rlla": "Apache-2.0",
    "prdect_id": "MIT",
    "humaneval": "MIT",
    "bbh": "MIT",
    "cruxeval": "MIT",
    "api_bank": "MIT",
    "tau_bench_retail": "MIT",
    "knights_knaves": "Apache-2.0",
    "esci": "Apache-2.0",
    "xcopa": "CC-BY-4.0",
    "nusax_translation": "CC-BY-SA-4.0",
    "wisesight": "CC0-1.0",
}
"""Source -> SPDX licence that the publisher of its data declares; others are not recorded."""
