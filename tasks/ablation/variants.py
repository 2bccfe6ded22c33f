"""The recipes that are compared: the full one, and one per feature that is switched off or changed.

A variant is what it changes in the full recipe, and nothing else. The full recipe is the default
phase over all domains with stage 1 of zero-variance elimination at work (`SKIP_ABOVE`).

Not here, because no setting switches it: scoring while rollouts still run, and the order of the
prompts. What they save is computed from what the phases record (see measures and schedules).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from data_schemas.settings import PipelineSettings, RLSettings
from tasks.errors import SettingsError

SKIP_ABOVE = 0.4
"""A graded 0 of 4 is enough (probability 0.43); at 0.6 nothing is skipped before a zero-variance
group of eight was rolled out (0.69), so nothing in the first pass over the problems. See the
README's scan."""
MAX_ABSTAINED = 0.25
"""More than by default: a step that stops a phase would leave a hole in the table."""
MAX_STEPS = 100_000
"""The token budget ends a phase, not the number of its steps."""
Changes = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Variant:
    """One line of the table."""

    name: str
    meaning: str
    changes: Changes
    """In the full recipe; groups are nested."""
    against: str = "full"
    """The variant it differs from in one thing."""


_FULL: Changes = {
    "zero_variance": {"skip_above": SKIP_ABOVE},
    "rewards": {"max_abstained_share": MAX_ABSTAINED},
}
_GSPO = {"kind": "gspo", "clip_low": 3e-4, "clip_high": 4e-4}
_GRPO = {"kind": "grpo", "clip_low": 0.2, "clip_high": 0.2}
_DAPO = {"kind": "dapo", "clip_low": 0.2, "clip_high": 0.28}
_CISPO = {"kind": "cispo", "clip_high": 4.0}  # the cap is 5
_BF16 = {"precision": "bf16"}
_ZERO_VARIANCE_OFF = {
    "skip_above": 1.0,
    "std_floor": 0.0,
    "refill_rounds": 0,
    "rl_zvp_alpha": 0.0,
}

VARIANTS = (
    Variant("full", "the full recipe", {}),
    Variant("zv_off", "all four stages below off", {"zero_variance": _ZERO_VARIANCE_OFF}),
    Variant("zv_1_off", "no prompt is skipped", {"zero_variance": {"skip_above": 1.0}}),
    Variant("zv_2_off", "no floor under the divisor", {"zero_variance": {"std_floor": 0.0}}),
    Variant(
        "zv_3a_off",
        "zero-variance groups are not replaced",
        {"zero_variance": {"refill_rounds": 0}},
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
    Variant("c3po", "C3PO: about half the tokens train", {"loss": {"token_budget": 1100}}),
    Variant(
        "curriculum",
        "pass rates of 0.4 and more first; 20 steps without gain until the next band",
        {"zero_variance": {"curriculum": ((0.4, 0.9), (0.15, 0.6), (0.0, 0.3))}},
    ),
    Variant("one_step_off", "rollouts one version behind", {"engines": {"staleness": 1}}),
    Variant("segments", "24 tokens of a response per step", {"engines": {"segment_tokens": 24}}),
    Variant("group_4", "48 prompts of 4", {"group_size": 4, "prompts_per_step": 48}),
    Variant("group_16", "12 prompts of 16", {"group_size": 16, "prompts_per_step": 12}),
    Variant("dapo", "DAPO's loss instead of ESPO", {"loss": _DAPO}),
    Variant("cispo", "CISPO instead of ESPO", {"loss": _CISPO}),
    Variant("skip_0.6", "skipped from 0.6 on", {"zero_variance": {"skip_above": 0.6}}),
    Variant("skip_0.2", "skipped from 0.2 on", {"zero_variance": {"skip_above": 0.2}}),
)


def select_variants(names: str) -> tuple[Variant, ...]:
    """Pick variants by name, in the order of the table; all of them for ''.

    Args:
        names: separated by commas. The variants they are compared with are added.

    Raises:
        SettingsError: there is no such variant.
    """
    if not names.strip():
        return VARIANTS
    by_name = {variant.name: variant for variant in VARIANTS}
    wanted = {name.strip() for name in names.split(",")}
    odd = sorted(wanted - by_name.keys())
    if odd:
        raise SettingsError(f"there is no variant {odd[0]!r}; choose from {', '.join(by_name)}")
    wanted |= {by_name[name].against for name in wanted} | {"full"}
    return tuple(variant for variant in VARIANTS if variant.name in wanted)


def phase_of(settings: PipelineSettings, name: str, seed: int) -> RLSettings:
    """Give the settings of a variant's phase: all domains alike, the seed, and its changes.

    Raises:
        SettingsError: there is no such variant.
    """
    (variant,) = (item for item in select_variants(name) if item.name == name)
    domains = dict.fromkeys({**settings.rl_one.domains, **settings.rl_two.domains}, 1.0)
    plain = settings.rl_two.model_dump() | {"domains": domains, "seed": seed, "steps": MAX_STEPS}
    return RLSettings.model_validate(_laid_over(_laid_over(plain, _FULL), variant.changes))


def _laid_over(given: Changes, changes: Changes) -> dict[str, Any]:
    """Replace what the changes name, group by group."""
    return dict(given) | {
        name: _laid_over(given[name], value) if isinstance(value, Mapping) else value
        for name, value in changes.items()
    }
