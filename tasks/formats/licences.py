"""Licences of the data sets that adapters and mappings read, and of tables of one's own."""

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

from data_schemas.sources import RawFile
from tasks.formats import decisions, solve_rates
from tasks.formats.exclusions import WITHDRAWN

ABOUT_ROWS = frozenset({WITHDRAWN, decisions.ADAPTER, solve_rates.ADAPTER, solve_rates.BANDS})
"""Sources without rows of their own: they say what becomes of the rows of others."""

LICENCES = {
    "sample_world": "Apache-2.0",
    "sample_agents": "Apache-2.0",
    "sample_self_play": "Apache-2.0",
    "sample_slow": "Apache-2.0",
    "sample_fast": "Apache-2.0",
    "sample_shop": "Apache-2.0",
    "sample_wishes": "Apache-2.0",
    "sample_purchases": "Apache-2.0",
    "sample_harmful": "Apache-2.0",
    "sample_harmless": "Apache-2.0",
    "sample_house": "Apache-2.0",
    "sample_science": "Apache-2.0",
    "sample_general": "Apache-2.0",
    "sample_chains": "Apache-2.0",
    "sample_chains_template": "Apache-2.0",
    "sample_chains_level": "Apache-2.0",
    "sample_chains_both": "Apache-2.0",
    "generated_guide": "Apache-2.0",
    "generated_after_sales": "Apache-2.0",
    "generated_recommendation": "Apache-2.0",
    "generated_rewriting": "Apache-2.0",
    "generated_attributes": "Apache-2.0",
    "generated_brand": "Apache-2.0",
    "generated_category": "Apache-2.0",
    "generated_relevance": "Apache-2.0",
    "generated_address": "Apache-2.0",
    "generated_title": "Apache-2.0",
    "generated_selling_points": "Apache-2.0",
    "generated_matching": "Apache-2.0",
    "generated_price": "Apache-2.0",
    "tau_bench_address": "MIT",
    "prdect_id_emotion": "MIT",
    "gsm8k": "MIT",
    "math_train": "MIT",
    "mgsm": "CC-BY-4.0",
    "mbpp": "CC-BY-4.0",
    "ifeval": "Apache-2.0",
    "m_ifeval": "Apache-2.0",
    "bfcl": "Apache-2.0",
    "toolrl_rlla": "Apache-2.0",
    "xlam": "CC-BY-4.0",
    "prdect_id": "MIT",
    "humaneval": "MIT",
    "bbh": "MIT",
    "cruxeval": "MIT",
    "api_bank": "MIT",
    "tau_bench_retail": "MIT",
    "knights_knaves": "Apache-2.0",
    "esci": "Apache-2.0",
    "xcopa": "CC-BY-4.0",
    "global_mmlu_lite": "Apache-2.0",
    "sea_belebele": "CC-BY-SA-4.0",
    "sea_causal": "CC-BY-4.0",
    "nusax_translation": "CC-BY-SA-4.0",
    "wisesight": "CC0-1.0",
}
"""Source -> SPDX licence that the publisher of its data declares; others are not recorded."""


def lacks_licence(raw: RawFile) -> bool:
    """Return whether a raw file has rows under no licence that is recorded."""
    return raw.adapter not in ABOUT_ROWS and not licence_of(raw)


def licence_of(raw: RawFile) -> str:
    """Return the licence of a raw file: its source's, its mapping's, or that of a known set.

    '' where none is recorded.
    """
    of_mapping = raw.mapping.licence if raw.mapping else ""
    return raw.licence or of_mapping or LICENCES.get(raw.adapter, "")


def responsible_for(raw: RawFile) -> str:
    """Return who answers for a raw file; '' where nobody is named."""
    return raw.responsible or (raw.mapping.responsible if raw.mapping else "")


def spdx_name(licence: str) -> str:
    """Return the SPDX name that a licence is, in its own spelling; '' for words and expressions."""
    try:
        name = canonicalize_license_expression(licence)
    except InvalidLicenseExpression:
        return ""
    return "" if " " in name or name.startswith("LicenseRef-") else name
