"""Variants of the study: the full recipe, and one per feature that is disabled or changed.

A variant is defined by its changes to the full recipe: the default phase over all domains, with
ESPO's own clip ranges (eq. 8) and a round of replacements for zero-variance groups. `default` is
the phase without these two.

Scoring during rollouts and the order of the prompts have no setting, so they are not variants;
their effect is computed from the records of the phases (see measures and schedules).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from data_schemas.presets import EQ8
from data_schemas.prompts import Domain
from data_schemas.settings import PipelineSettings, RLSettings
from tasks.errors import SettingsError

REFILL_ROUNDS = 1
"""Stage 3a, which the default leaves out, because it costs tokens and gains nothing."""
MAX_ABSTAINED = 0.25
"""Above the default: a phase that stops early would be missing from the table."""
MAX_STEPS = 100_000
"""Not reached: the token budget ends a phase."""
Changes = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Variant:
    """One line of the table."""

    name: str
    meaning: str
    changes: Changes
    """Changed settings, nested by group."""
    against: str = "full"
    """The variant it is compared with, from which it differs in one feature."""
    domains: tuple[Domain, ...] = ()
    """Trained in equal shares; () = all of the pipeline's."""
    after: str = ""
    """The variant whose model it starts from; '' = the merged model."""


_FULL: Changes = {
    "loss": {"clip_scale": EQ8.clip_scale},
    "zero_variance": {"refill_rounds": REFILL_ROUNDS},
    "rewards": {"max_abstained_share": MAX_ABSTAINED},
}
_GSPO = {"kind": "gspo", "clip_low": 3e-4, "clip_high": 4e-4}
_GRPO = {"kind": "grpo", "clip_low": 0.2, "clip_high": 0.2}
_C3PO = {"budget_per_response": 11.46}
_DAPO = {"kind": "dapo", "clip_low": 0.2, "clip_high": 0.28}
_CISPO = {"kind": "cispo", "clip_high": 4.0}  # the cap is 5
_RELATIVE = {"clip_scale": 0.0, "clip_low": 0.2, "clip_high": 0.2}
_BF16 = {"precision": "bf16"}
_ZERO_VARIANCE_OFF = {
    "skip_above": 1.0,
    "std_floor": 0.0,
    "refill_rounds": 0,
    "rl_zvp_alpha": 0.0,
}
_NO_REFILLS = {"refill_rounds": 0}
_DYNAMIC = {"skip_above": 1.0, "std_floor": 0.0, "refill_rounds": 3, "rl_zvp_alpha": 0.0}

VARIANTS = (
    Variant("full", "the full recipe", {}),
    Variant("zv_off", "all four stages below off", {"zero_variance": _ZERO_VARIANCE_OFF}),
    Variant("zv_1_off", "no prompt is skipped", {"zero_variance": {"skip_above": 1.0}}),
    Variant("zv_2_off", "no floor under the divisor", {"zero_variance": {"std_floor": 0.0}}),
    Variant(
        "zv_3a_off",
        "zero-variance groups are not replaced",
        {"zero_variance": _NO_REFILLS},
    ),
    Variant(
        "default",
        "and ESPO's clip ranges are relative to the step: the default",
        {"loss": _RELATIVE, "zero_variance": _NO_REFILLS},
        against="zv_3a_off",
    ),
    Variant(
        "zv_3b_off", "zero-variance groups teach nothing", {"zero_variance": {"rl_zvp_alpha": 0.0}}
    ),
    Variant("gspo", "GSPO instead of ESPO", {"loss": _GSPO}),
    Variant("grpo", "GRPO instead of ESPO", {"loss": _GRPO}),
    Variant("bf16_r3", "rollouts in bf16, routes replayed", {"engines": _BF16}),
    Variant(
        "bf16_off",
        "rollouts in bf16, no replay",
        {"engines": _BF16, "router_replay": "off"},
        against="bf16_r3",
    ),
    Variant(
        "bf16_r2",
        "rollouts in bf16, the trainer's routes replayed",
        {"engines": _BF16, "router_replay": "r2"},
        against="bf16_r3",
    ),
    Variant("c3po", "C3PO: about half the tokens train", {"loss": _C3PO}),
    Variant(
        "grpo_c3po",
        "GRPO with C3PO: about half the tokens train",
        {"loss": _GRPO | _C3PO},
        against="grpo",
    ),
    Variant(
        "curriculum",
        "pass rates of 0.4 and more first; 20 steps without gain until the next band",
        {"zero_variance": {"curriculum": ((0.4, 0.9), (0.15, 0.6), (0.0, 0.3))}},
    ),
    Variant("one_step_off", "rollouts one version behind", {"engines": {"staleness": 1}}),
    Variant("segments", "24 tokens of a response per step", {"engines": {"segment_tokens": 24}}),
    Variant(
        "shared_noise",
        "a problem's random numbers are the same in every step",
        {"engines": {"reuse": "shared_noise"}},
    ),
    Variant(
        "reuse",
        "and what the policy draws again is reused: more steps for the same tokens",
        {"engines": {"reuse": "prefix"}},
        against="shared_noise",
    ),
    Variant(
        "zv_3a_off_reuse",
        "zv_3a_off, and what the policy draws again is reused",
        {"zero_variance": _NO_REFILLS, "engines": {"reuse": "prefix"}},
        against="zv_3a_off",
    ),
    Variant("group_4", "48 prompts of 4", {"group_size": 4, "prompts_per_step": 48}),
    Variant("group_16", "12 prompts of 16", {"group_size": 16, "prompts_per_step": 12}),
    Variant("dapo", "DAPO's loss instead of ESPO", {"loss": _DAPO}),
    Variant("cispo", "CISPO instead of ESPO", {"loss": _CISPO}),
    Variant(
        "dynamic",
        "plain dynamic sampling: zero-variance groups are replaced in up to three draws",
        {"zero_variance": _DYNAMIC},
        against="zv_3a_off",
    ),
    Variant("skip_0.6", "skipped from 0.6 on", {"zero_variance": {"skip_above": 0.6}}),
    Variant("skip_0.2", "skipped from 0.2 on", {"zero_variance": {"skip_above": 0.2}}),
)

_LOSSES = {"espo": {}, "espo_relative": _RELATIVE, "grpo": _GRPO, "dapo": _DAPO, "gspo": _GSPO}
_LOSSES |= {"cispo": _CISPO}
SCAN_PROMPTS = 12
"""Half of the default: twice the steps for the same tokens."""


def _off_policy(loss: Changes, updates: int, staleness: int) -> Changes:
    return {
        "loss": loss,
        "num_mini_batches": updates,
        "engines": {"staleness": staleness},
        "prompts_per_step": SCAN_PROMPTS,
    }


SCAN = tuple(
    Variant(
        f"{name}_{updates}x{staleness}",
        f"{updates} updates per step, rollouts {staleness} versions behind",
        _off_policy(loss, updates, staleness),
        against=f"espo_{updates}x{staleness}",
    )
    for updates in (1, 4, 8)
    for staleness in (0, 1, 2)
    for name, loss in _LOSSES.items()
)
"""Policy losses by how far off-policy their updates are; `clip` selects all of them."""

_PARTS: Mapping[str, tuple[str, Changes]] = {
    "espo_alpha_0.2": ("eq. 8 with ten times its width", {"clip_scale": 0.2}),
    "espo_floor_0.2": ("eq. 8, no range below GRPO's", {"clip_floor": 0.2}),
    "espo_share_0.5": ("half of the tokens in the high group", {"high_entropy_share": 0.5}),
    "espo_edges": ("groups by entropies of 0.05 and 0.5 nats", {"entropy_edges": (0.05, 0.5)}),
    "espo_literal": ("the token ratio of eq. 9 as printed", {"ratio": "literal_eq9"}),
    "espo_relative_share_0.5": (
        "relative widths, half of the tokens in the high group",
        _RELATIVE | {"high_entropy_share": 0.5},
    ),
}
SLOWER = 3e-5
"""Learning rate: about a third of the default."""
ESPO_PARTS = (
    *(
        Variant(f"{name}_8x0", meaning, _off_policy(loss, 8, 0), against="espo_8x0")
        for name, (meaning, loss) in _PARTS.items()
    ),
    *(
        Variant(
            f"{name}_slower_8x0",
            f"a learning rate of {SLOWER:g}",
            {**_off_policy(_LOSSES[name], 8, 0), "learning_rate": SLOWER},
            against="espo_slower_8x0",
        )
        for name in ("espo", "espo_relative", "grpo")
    ),
)
"""What ESPO consists of, one part changed at a time, at 8 updates; `espo` selects all of them."""

RL_ZVP = tuple(
    Variant(
        f"{name}_zvp_{alpha:g}",
        f"RL-ZVP with {alpha:g} instead of 0.1, 4 updates per step",
        {**_off_policy(_LOSSES[name], 4, 0), "zero_variance": {"rl_zvp_alpha": alpha}},
        against=f"{name}_4x0",
    )
    for name in ("espo", "grpo")
    for alpha in (0.0, 0.5)
)
"""RL-ZVP's weight under two policy losses of the scan; `zvp` selects all of them."""

_TWO = (Domain.MATHS, Domain.CODE)
_HIGHER = {f"clip_higher_{high}": {"loss": _GRPO | {"clip_high": high}} for high in (0.28, 0.4)}
FROM_PAPERS = (
    Variant("kl", "KL to the start model, 1e-3", {"loss": {"auxiliary": {"kl": 1e-3}}}),
    *(
        Variant(
            f"lora_{rank}",
            f"adapters of rank {rank} at ten times the learning rate",
            {"engines": {"lora": {"rank": rank}}, "learning_rate": 1e-3},
        )
        for rank in (8, 32)
    ),
    *(
        Variant(name, "GRPO with another upper clip", changes, against="grpo")
        for name, changes in _HIGHER.items()
    ),
)
"""Features of the papers that the full recipe does not have."""
DOMAIN_ORDERS = (
    Variant("mixed", "maths and code", {}, "mixed", _TWO),
    Variant("maths_only", "maths", {}, "mixed", (Domain.MATHS,)),
    Variant("code_only", "code", {}, "mixed", (Domain.CODE,)),
    Variant("mixed_twice", "maths and code, then again", {}, "mixed_twice", _TWO, after="mixed"),
    Variant(
        "two_stage",
        "maths, then code",
        {},
        "mixed_twice",
        (Domain.CODE,),
        after="maths_only",
    ),
)
"""Ring-lite's tables 2 to 4: domains alone, mixed, or one after the other; `domains` is all."""
_GROUPS = {
    "clip": tuple(variant.name for variant in SCAN),
    "espo": tuple(variant.name for variant in ESPO_PARTS),
    "zvp": tuple(variant.name for variant in RL_ZVP),
    "domains": tuple(variant.name for variant in DOMAIN_ORDERS),
    "claims": (
        *("zv_off", "zv_3b_off", "dynamic", "grpo", "gspo", "cispo", "grpo_c3po", "bf16_off"),
        *("group_16", "curriculum", "kl", "clip_higher_0.28", "clip_higher_0.4", "two_stage"),
    ),
}


def select_variants(names: str) -> tuple[Variant, ...]:
    """Select variants by name, in the order of the tables; all of VARIANTS for ''.

    Args:
        names: comma-separated names, 'clip' for all of SCAN, 'espo' for all of ESPO_PARTS, 'zvp'
            for all of RL_ZVP, 'domains' for all of DOMAIN_ORDERS, 'claims' for what the page of
            claims needs; the variants they are compared with and those they start from are added.

    Raises:
        SettingsError: there is no such variant.
    """
    if not names.strip():
        return VARIANTS
    every = (*VARIANTS, *FROM_PAPERS, *SCAN, *ESPO_PARTS, *RL_ZVP, *DOMAIN_ORDERS)
    by_name = {variant.name: variant for variant in every}
    wanted = {name.strip() for name in names.split(",")}
    for group in wanted & _GROUPS.keys():
        wanted = (wanted - {group}) | set(_GROUPS[group])
    unknown = sorted(wanted - by_name.keys())
    if unknown:
        raise SettingsError(f"there is no variant {unknown[0]!r}; choose from {', '.join(by_name)}")
    waiting = sorted(wanted)
    while waiting:
        variant = by_name[waiting.pop()]
        new = {variant.against, variant.after or variant.name} - wanted
        wanted |= new
        waiting += new
    if wanted & {variant.name for variant in (*VARIANTS, *FROM_PAPERS)}:
        wanted.add("full")
    return tuple(variant for name, variant in by_name.items() if name in wanted)


def phase_of(settings: PipelineSettings, name: str, seed: int) -> RLSettings:
    """Return the settings of a variant's phase: equal domain weights, the seed, and its changes.

    Raises:
        SettingsError: there is no such variant.
    """
    (variant,) = (item for item in select_variants(name) if item.name == name)
    of_both = {**settings.rl_one.domains, **settings.rl_two.domains}
    domains = dict.fromkeys(variant.domains or of_both, 1.0)
    plain = settings.rl_two.model_dump() | {"domains": domains, "seed": seed, "steps": MAX_STEPS}
    return RLSettings.model_validate(_merge_changes(_merge_changes(plain, _FULL), variant.changes))


def _merge_changes(given: Changes, changes: Changes) -> dict[str, Any]:
    """Apply changes to nested settings."""
    return dict(given) | {
        name: _merge_changes(given[name], value) if isinstance(value, Mapping) else value
        for name, value in changes.items()
    }
