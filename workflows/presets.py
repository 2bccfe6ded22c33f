"""Named settings, as plain values. Every one of them is validated by a test."""

from data_schemas.machine_settings import RolloutKind, TrainerKind
from data_schemas.prompts import Domain
from data_schemas.rl_settings import (
    AuxiliarySettings,
    CodeReward,
    EngineSettings,
    LossSettings,
    PolicyLoss,
    RewardSettings,
    RLSettings,
    RouterReplay,
    ZeroVarianceSettings,
)
from data_schemas.settings import (
    CurationSettings,
    EvaluationSettings,
    GradingSettings,
    MergeSettings,
    PipelineSettings,
    PretrainSettings,
    ReleaseSettings,
    RetrainSettings,
    SFTSettings,
    Source,
)

SHIPPED_BASE = PretrainSettings()
"""What the model in tasks/foundation/base_model was made with."""

CPU_SMOKE = PipelineSettings()
"""The embedded default: the whole method on two CPU cores in minutes."""

JUDGE = SFTSettings()
"""Of the judge, from the shipped base and the sample's comparisons; its window does not count."""

NIGHTLY = RetrainSettings()
"""Retraining from the folder `inbox`, on two CPU cores."""

_H100 = EngineSettings(rollout=RolloutKind.VLLM, trainer=TrainerKind.MEGATRON)
_MOUNTED_MODEL = "/mnt/models/base"
_MOUNTED_SOURCES = tuple(
    Source(adapter=name, path=f"/mnt/data/{name}")
    for name in (
        "gsm8k",
        "math_train",
        "mbpp",
        "ifeval",
        "toolrl_rlla",
        "bfcl",
        "ae110k",
        "prdect_id",
    )
)
"""Where the nodes of a cluster see the base model and the raw files; a missing one is refused."""


def _reinforcement(tiny: RLSettings, prompts: int, tokens: int, steps: int) -> RLSettings:
    """Scale one phase up; what the phases differ in (their domains) stays."""
    return tiny.model_copy(
        update={
            "steps": steps,
            "prompts_per_step": prompts,
            "group_size": 8,  # CompassMax profile: n = 8 (spec A.3)
            "max_new_tokens": tokens,
            "learning_rate": 1e-6,  # ESPO setup (spec A.3, A.5)
            # A fifth of the limit, as 4096 of 20480 in DAPO (spec F.2).
            "rewards": RewardSettings(overlong_buffer=tokens // 5),
            "engines": _H100,
            "commit_every": 10,  # states are hundreds of GB; a preempted run loses 10 steps at most
        }
    )


def _large(name: str, prompts: int, tokens: int, steps: int) -> PipelineSettings:
    """The pipeline for a real mixture of experts, `tokens` being the longest response."""
    return PipelineSettings(
        base_model=_MOUNTED_MODEL,
        curation=CurationSettings(
            sources=_MOUNTED_SOURCES,
            max_prompt_tokens=1024,  # CompassMax profile: 1k input (spec A.3)
            max_response_tokens=tokens,
            held_out_per_suite=500,
        ),
        sft=SFTSettings(
            epochs=3,  # Ring-lite (spec B.3)
            learning_rate=3e-4,  # Ring-lite (spec B.3)
            warmup_share=0.01,  # Ring-lite (spec B.3)
            batch_tokens=256 * 8192,  # Ring-lite: 256 sequences; their mean length is a guess
            entropy_prompts=512,
        ),
        merge=MergeSettings(density=0.2),  # TIES paper (spec A.2)
        grading=GradingSettings(
            samples=8,  # spec A.4: at least 8 samples
            max_new_tokens=tokens,
            drop_at_or_above=0.9,  # spec A.4 [I]
            max_problems=100_000,
        ),
        rl_one=_reinforcement(CPU_SMOKE.rl_one, prompts, tokens, steps),
        rl_two=_reinforcement(CPU_SMOKE.rl_two, prompts, tokens, steps),
        evaluation=EvaluationSettings(samples=8, max_new_tokens=tokens),
        release=ReleaseSettings(name=name),
    )


SINGLE_NODE = _large("eachprompt-single-node", prompts=128, tokens=16_384, steps=400)
"""One node of eight H100s: the batch and response length of the ESPO paper (spec A.3)."""

FULL_SCALE = _large("eachprompt-full-scale", prompts=512, tokens=32_768, steps=1000)
"""256 H100s: the profile published for CompassMax-V3-Thinking (spec A.3).

Steps and learning rate are not published; the latter is the ESPO paper's. A task is one pod
of eight H100s; an engine that spans 32 nodes brings the others itself.
"""

COMPASSMAX = FULL_SCALE
"""CompassMax-V3-Thinking (2512.07710): ESPO, RL-ZVP, R3, two phases. FULL_SCALE is its recipe."""

_RING_LITE_RL = FULL_SCALE.rl_one.model_copy(
    update={
        "group_size": 16,
        "learning_rate": 3e-6,
        "loss": LossSettings(
            kind=PolicyLoss.GRPO,
            clip_low=0.2,
            clip_high=0.2,
            token_budget=12_800,  # 409,600 over 32 ranks: per step it would be 50 tokens a response
            auxiliary=AuxiliarySettings(kl=1e-3, entropy=5e-4, balance=1e-5, router_z=1e-7),
        ),
        "zero_variance": ZeroVarianceSettings(refill_rounds=0, rl_zvp_alpha=0.0, std_floor=0.0),
        "rewards": RewardSettings(
            overlong_weight=0.0, repetition_weight=0.0, code=CodeReward.ALL_TESTS
        ),
        "router_replay": RouterReplay.OFF,
    }
)
RING_LITE = FULL_SCALE.model_copy(
    update={
        # Drop what is always solved and what is never solved.
        "grading": FULL_SCALE.grading.model_copy(
            update={"drop_at_or_above": 1.0, "drop_at_or_below": 0.0}
        ),
        "rl_one": _RING_LITE_RL.model_copy(
            update={"domains": {Domain.MATHS: 1.0}, "max_new_tokens": 24_576}
        ),
        "rl_two": _RING_LITE_RL.model_copy(
            update={"domains": {Domain.CODE: 1.0, Domain.MATHS: 1.0}, "max_new_tokens": 32_768}
        ),
        "release": ReleaseSettings(name="eachprompt-ring-lite"),
    }
)
"""Ring-lite (2506.14731): C3PO's token budget, KL, entropy and router losses; maths, then code.

Its science problems are of no domain here; its SFT is the pipeline's.
"""

_COMPASS_THINKER_RL = SINGLE_NODE.rl_one.model_copy(
    update={
        "domains": {Domain.MATHS: 1.0},
        "max_new_tokens": 4096,
        "loss": LossSettings(kind=PolicyLoss.GRPO, clip_low=0.2, clip_high=0.28),
        "zero_variance": ZeroVarianceSettings(
            refill_rounds=3,
            rl_zvp_alpha=0.0,
            std_floor=0.0,
            curriculum=((0.4, 0.9), (0.15, 0.6), (0.0, 0.3)),
        ),
        "rewards": RewardSettings(overlong_weight=0.0, repetition_weight=0.0),
        "router_replay": RouterReplay.OFF,  # a dense model
    }
)
COMPASS_THINKER = SINGLE_NODE.model_copy(
    update={
        "rl_one": _COMPASS_THINKER_RL,
        "rl_two": _COMPASS_THINKER_RL.model_copy(update={"seed": 1}),
        "release": ReleaseSettings(name="eachprompt-compass-thinker"),
    }
)
"""Compass-Thinker-7B (2508.08909): no KL, clip-higher, dynamic sampling, staged difficulty.

Bands and upper clip are not printed in the paper; rounds of dynamic sampling are bounded here.
Its rewards of +1 and -1 are 1 and 0 here: relative to a group they are the same.
"""
