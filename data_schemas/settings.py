"""Settings: one frozen model per stage, unknown keys refused.

Field defaults are those of the preset `laptop`; where a paper gives a number for
full scale it is in the description, and in `workflows/presets/` as a preset.
Rules between fields are validated here and nowhere else.
"""

import datetime
from enum import StrEnum
from typing import Annotated, ClassVar, Self, cast

from pydantic import BaseModel, Field, field_validator, model_validator

from data_schemas.addresses import split_base_url
from data_schemas.machine_settings import (
    LOWEST_TEMPERATURE,
    Choice,
    MachineSettings,
    Seed,
    Settings,
    TrainingEngines,
    are_shares,
    merged_over,
)
from data_schemas.references import Named
from data_schemas.reports import SLICE_KINDS
from data_schemas.rl_settings import JudgeSettings, RLSettings
from data_schemas.rows import MERGED, Domain, Parent


class Source(Settings):
    """One source of raw rows."""

    adapter: Named = Field(
        description="a name that `eachprompt data` lists, a mapping file (.yaml, .json), or one's "
        "own: my_adapter.py:name"
    )
    path: str = Field(
        default="", description="file, folder, s3:// or hf://; empty for the generated sample world"
    )
    limit: int = Field(
        default=0,
        ge=0,
        le=10**12,
        description="first rows to read, of a generated source of each table; 0 = all",
    )
    evaluation: bool = Field(
        default=False, description="a benchmark: all of it is held out, none of it is trained on"
    )
    licence: str = Field(
        default="",
        description="of its rows: an SPDX name, or words for terms; '' = that of its mapping, or "
        "that the publisher of a known set declares",
    )
    responsible: str = Field(
        default="", description="who answers for its rows; '' = whom its mapping names"
    )
    verifier: Named = Field(
        default="",
        description="scores its problems instead of the one that the adapter names, against the "
        "same answers; one that `eachprompt data` lists, or one's own: my_reward.py:name",
    )


class PretrainSettings(Settings):
    """Stage 0: the shipped base model, from the marketplace corpus."""

    steps: int = Field(default=6000, ge=1, le=10**8, description="optimizer updates")
    vocabulary: int = Field(default=768, ge=272, description="256 bytes, 7 added tokens, merges")
    seed: Seed = 0


class PersonalData(StrEnum):
    """What curation does with rows that tell something of a person."""

    COUNT = "count"
    """They are kept as they are, counted, and named on the screen; pages show them masked."""
    MASK = "mask"
    """Each passage becomes its kind: `[phone]`."""
    QUARANTINE = "quarantine"


class Publication(Settings):
    """Who published a curated set, where and when, for its Croissant metadata; all of it or none.

    A part of the set: another value makes another set, and what follows it is trained again.
    """

    url: str = Field(default="", description="page of the set, https://...; '' = not published")
    organizations: tuple[str, ...] = Field(default=(), description="creators of the set")
    persons: tuple[str, ...] = Field(default=(), description="creators of the set")
    date: str = Field(default="", description="of its first publication: 2026-11-29")

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        creators = [*self.organizations, *self.persons]
        if not (self.url or self.date or creators):
            return self
        if not (self.url and self.date and creators and all(one.strip() for one in creators)):
            raise ValueError(
                "publication needs url, date and a name in organizations or persons; give all of "
                "them, or none"
            )
        split_base_url(self.url)
        try:
            written = datetime.date.fromisoformat(self.date).isoformat()
        except ValueError:
            written = ""
        if written != self.date:
            raise ValueError(f"publication.date is {self.date!r}; write it as 2026-11-29")
        return self


class CurationSettings(Settings):
    """Stage 1: raw rows to typed problems, demonstrations and held-out suites."""

    sources: tuple[Source, ...] = Field(
        default=(
            Source(adapter="sample_world"),
            Source(adapter="sample_harmful", evaluation=True),
            Source(adapter="sample_harmless", evaluation=True),
        ),
        min_length=1,
        description="in this order",
    )
    seed: Seed = Field(default=0, description="for the sample world, the split and the mixture")
    max_prompt_tokens: int = Field(
        default=96, ge=8, le=2**24, description="longer prompts are dropped"
    )
    max_response_tokens: int = Field(
        default=96, ge=8, le=2**24, description="longer demonstrations are dropped"
    )
    near_duplicate_jaccard: float = Field(
        default=0.9,
        gt=0.0,
        le=1.0,
        description="MinHash similarity of word 3-grams; 1 = exact only",
    )
    held_out_per_suite: int = Field(
        default=60, ge=1, le=10**6, description="problems per domain kept for evaluation"
    )
    guard: JudgeSettings = Field(
        default=JudgeSettings(),
        description="guard model or text classifier: what it calls harmful is dropped",
    )
    encoder: JudgeSettings = Field(
        default=JudgeSettings(),
        description="text encoder: of rows that mean the same, one is kept; none of a benchmark's",
    )
    personal: PersonalData = Field(
        default=PersonalData.COUNT,
        description="rows with e-mail addresses, phones, card or identity numbers, addresses: "
        "count, mask or quarantine; not those of benchmarks",
    )
    publication: Publication = Publication()


class GradingSettings(Settings):
    """Stage 1b: pass rates of the start model, bands, and the seeded mixture."""

    samples: int = Field(default=4, ge=2, le=1024, description="responses per problem")
    temperature: float = Field(
        default=1.0,
        ge=LOWEST_TEMPERATURE,
        le=10.0,
        description="of the responses; a pass rate is that of the policy at this temperature, so "
        "take that of the RL phases",
    )
    max_new_tokens: int = Field(default=64, ge=1, le=2**24, description="of a response")
    drop_at_or_above: float = Field(
        default=1.0,
        gt=0.0,
        le=1.01,
        description="too easy: pass rate of the start model",
    )
    drop_at_or_below: float = Field(
        default=-0.01, ge=-0.01, lt=1.0, description="too hard; below 0 keeps unsolved prompts"
    )
    screen_model: str = Field(
        default="",
        description="folder of a smaller model: problems it nearly always solves are dropped",
    )
    max_problems: int = Field(
        default=1024, ge=1, le=10**9, description="graded per run, drawn with the seed"
    )
    weights: dict[Domain, float] = Field(
        default_factory=dict, description="mixture weight per domain; empty = keep all"
    )
    judge: JudgeSettings = JudgeSettings()
    engines: MachineSettings = MachineSettings()
    seed: Seed = 0

    @model_validator(mode="after")
    def _band_is_open(self) -> Self:
        if self.drop_at_or_below >= self.drop_at_or_above:
            raise ValueError(
                "drop_at_or_below must be smaller than drop_at_or_above, or nothing is kept"
            )
        if not are_shares(self.weights.values()):
            raise ValueError("weights must be positive; to leave a domain out, do not name it")
        return self


class SFTSettings(Settings):
    """Stage 2: long-CoT supervised fine-tuning of one parent."""

    epochs: int = Field(
        default=3,
        ge=0,
        le=1000,
        description="0 = the base itself; Ring-lite: 3 in the settings, up to 9 in ablation",
    )
    domains: dict[Domain, float] = Field(
        default_factory=dict,
        description="share of an epoch's demonstrations per domain; empty = each of them once",
    )
    min_thinking_words: int = Field(
        default=0,
        ge=0,
        le=10**6,
        description="median words of thinking in the demonstrations of the reasoning parent, whose "
        "every domain must be there; fewer is refused; 0 = not a stage of long chains of thought",
    )
    parents: dict[Parent, str] = Field(
        default_factory=dict,
        description="existing models merged in place of fine-tuned ones: folder, s3:// or models:/ "
        "per parent",
    )
    learning_rate: float = Field(
        default=5e-4, gt=0.0, le=1.0, description="peak, cosine; Ring-lite 3e-4"
    )
    warmup_share: float = Field(default=0.05, ge=0.0, lt=1.0, description="Ring-lite 0.01")
    batch_tokens: int = Field(
        default=512, ge=64, le=2**28, description="tokens per update, padding included"
    )
    entropy_window: tuple[float, float] = Field(
        default=(0.2, 0.5),
        description="nats at a vocabulary of 126k, scaled by ln|V|; Ring-lite (0.3, 0.5)",
    )
    entropy_prompts: int = Field(
        default=64,
        ge=1,
        le=10**6,
        description="number of fixed prompts on which entropy is measured",
    )
    engines: TrainingEngines = TrainingEngines()
    seed: Seed = 0

    @model_validator(mode="after")
    def _domains_have_weight(self) -> Self:
        if not are_shares(self.domains.values()):
            raise ValueError("domains must be positive; to leave a domain out, do not name it")
        return self

    @model_validator(mode="after")
    def _parents_are_of_the_merge(self) -> Self:
        for parent, path in self.parents.items():
            if parent not in MERGED or not path:
                raise ValueError(
                    f"parents names {parent.value!r} with {path!r}; it takes the folder of an "
                    f"existing model for {' or '.join(MERGED)}. Leave out what is to be fine-tuned"
                )
        return self

    @model_validator(mode="after")
    def _window_is_open(self) -> Self:
        low, high = self.entropy_window
        if not 0.0 <= low < high:
            raise ValueError(f"entropy_window needs 0 <= low < high, got {self.entropy_window}")
        return self


class MergeSettings(Choice):
    """Stage 3: merge of the two SFT parents onto their common base."""

    CHOSEN_BY: ClassVar[str] = "method"

    method: Named = Field(
        default="ties",
        min_length=1,
        description="how the parents are merged; one's own: my_merge.py:Name",
    )
    scale: float = Field(
        default=0.9, gt=0.0, le=10.0, description="lambda; paper 1, without validation data"
    )
    weights: tuple[float, float] = Field(default=(1.0, 1.0), description="reasoning, commerce")
    copied: dict[str, Parent] = Field(
        default_factory=dict,
        description="what is not merged: parent by pattern, '*.mlp.gate.*' or 'a.down_proj[3,68]'",
    )

    @model_validator(mode="after")
    def _weights_are_positive(self) -> Self:
        if min(self.weights) <= 0.0:
            raise ValueError("weights must be positive; to leave a parent out, do not merge")
        return self

    @model_validator(mode="after")
    def _copies_are_of_the_parents(self) -> Self:
        for pattern, parent in self.copied.items():
            if parent not in MERGED:
                raise ValueError(
                    f"copied names {parent.value!r} for {pattern!r}; use {' or '.join(MERGED)}"
                )
        return self


class EvaluationSettings(Settings):
    """Stage 6: held-out suites. Ring-lite evaluates at temperature 1.0, top-p 0.95."""

    samples: int = Field(
        default=4, ge=1, le=1024, description="responses per problem (avg@k and pass@k)"
    )
    temperature: float = Field(default=1.0, ge=0.0, le=10.0, description="0 = greedy")
    top_p: float = Field(
        default=1.0,
        gt=0.0,
        le=1.0,
        description="likeliest tokens with this probability mass are drawn from; Ring-lite 0.95",
    )
    min_p: float = Field(
        default=0.0,
        ge=0.0,
        lt=1.0,
        description="tokens below this share of the likeliest token's probability are excluded",
    )
    stop: tuple[str, ...] = Field(
        default=(), description="strings that end a response, which keeps them"
    )
    max_new_tokens: int = Field(default=64, ge=1, le=2**24, description="of a response")
    judge: JudgeSettings = JudgeSettings()
    engines: MachineSettings = MachineSettings()
    seed: Seed = 0

    @model_validator(mode="after")
    def _every_value_has_an_effect(self) -> Self:
        if 0.0 < self.temperature < LOWEST_TEMPERATURE:
            raise ValueError(
                f"temperature is {self.temperature}; use 0 (greedy), or {LOWEST_TEMPERATURE} and "
                "more"
            )
        for name, off in (("top_p", 1.0), ("min_p", 0.0)):
            value = getattr(self, name)
            if self.temperature == 0.0 and value != off:
                raise ValueError(
                    f"{name} is {value}, but temperature is 0, which draws the likeliest token; "
                    f"use a temperature above 0, or leave {name} out"
                )
        if "" in self.stop:
            raise ValueError("stop contains an empty string, which would end every response")
        return self


class Licences(StrEnum):
    """What a release asks of the licences of what it was made from."""

    RECORDED = "recorded"
    """Card and bill of materials have those that are known, and name what has none."""
    REQUIRED = "required"
    """A raw file or a base model without one refuses the release."""


class ReleaseSettings(Settings):
    """Stage 7: the gate between a candidate and the alias `released`."""

    name: str = Field(
        default="eachprompt-tiny",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$",
        description="MLflow registered model; letters, digits, '.', '_' and '-'",
    )
    min_gain: float = Field(
        default=0.0, description="lower interval end of candidate minus parent, 'all'"
    )
    rl_has_to_gain: bool = Field(
        default=True,
        description="false: a gain over the base is enough; against the model before RL it may be "
        "no certain loss",
    )
    may_lose: dict[str, float] = Field(
        default={},
        description="slice (`language:vi`) or kind of slices (`language`) -> accuracy, 0 to 1, "
        "that it may lose for certain; the others may lose none",
    )
    max_truncated_share: float = Field(
        default=0.2,
        ge=0.0,
        le=1.0,
        description="of responses cut at max_new_tokens, of all and of every slice",
    )
    monitors_may_fall: dict[str, Annotated[float, Field(ge=0.0, le=1.0)]] = Field(
        default={},
        description="reward of rl_*.rewards.monitor, by the name of its function -> fall of its "
        "mean over a phase of RL, 0 to 1, that is allowed for certain; the others are reported",
    )
    licences: Licences = Licences.RECORDED
    approvals: int = Field(
        default=0,
        ge=0,
        le=9,
        description="keys beside the run's own that have to sign a yes (`eachprompt approve "
        "models:/NAME/3`) before what passed the gate is released",
    )
    max_complied_share: float = Field(
        default=1.0,
        ge=0.0,
        le=1.0,
        description="of responses to harmful requests that do not refuse, in all and in every "
        "language; 1 = none is asked for",
    )
    max_over_refused_share: float = Field(
        default=1.0,
        ge=0.0,
        le=1.0,
        description="of responses to harmless requests that refuse or have no answer, likewise",
    )

    @field_validator("may_lose", mode="after")
    @classmethod
    def _names_slices(cls, losses: dict[str, float]) -> dict[str, float]:
        for name, loss in losses.items():
            kind, colon, value = name.partition(":")
            if kind not in SLICE_KINDS or bool(colon) != bool(value):
                raise ValueError(
                    f"{name!r} is no slice; write one like 'language:vi', or one of "
                    f"{', '.join(SLICE_KINDS)} for all slices of that kind"
                )
            if not 0.0 <= loss <= 1.0:
                raise ValueError(f"{name} may lose {loss}; it is a share from 0 to 1")
        return losses


def _on_defaults(model: type[BaseModel], values: object) -> object:
    """Merge the given fields of a group over the group's defaults."""
    if not isinstance(values, dict):
        return values
    filled = dict(cast("dict[str, object]", values))
    for name, value in filled.items():
        default = model.model_fields[name].default if name in model.model_fields else None
        if isinstance(value, dict) and isinstance(default, BaseModel):
            filled[name] = merged_over(default, cast("dict[str, object]", value))
    return filled


class ChatSettings(Settings):
    """What the chat template of the base is given besides."""

    arguments: dict[str, bool | int | float | str] = Field(
        default={},
        description="name -> value, such as enable_thinking: false; the template has to read them",
    )

    @field_validator("arguments", mode="after")
    @classmethod
    def _are_free(
        cls, arguments: dict[str, bool | int | float | str]
    ) -> dict[str, bool | int | float | str]:
        for name in arguments:
            if not name.isidentifier() or name in _TAKEN or name.endswith("_token"):
                raise ValueError(
                    f"{name!r} is no argument of one's own; write one that the chat template "
                    "reads, like enable_thinking"
                )
        return arguments


_TAKEN = ("messages", "tools", "documents", "add_generation_prompt")
"""Arguments that whoever renders a chat gives."""


class PipelineSettings(Settings):
    """Settings of `workflows/post_training.py post_training`."""

    base_model: str = Field(
        default="", description="Hugging Face directory; empty = the shipped tiny MoE"
    )
    architecture: Named = Field(
        default="",
        description="my_family.py:name, for models of a type that is not built in; empty = none",
    )
    chat: ChatSettings = ChatSettings()
    curation: CurationSettings = CurationSettings()
    sft: SFTSettings = SFTSettings()
    merge: MergeSettings = MergeSettings()
    grading: GradingSettings = GradingSettings()
    rl_one: RLSettings = RLSettings(
        domains={
            Domain.MATHS: 2.0,
            Domain.CODE: 1.0,
            Domain.INSTRUCTION: 1.0,
            # A small model forgets within a phase what the phase does not show.
            Domain.CHOICE: 0.5,
            Domain.EXTRACTION: 0.25,
            Domain.TOOL_USE: 0.25,
            Domain.OPEN_TEXT: 0.5,
        }
    )
    rl_two: RLSettings = RLSettings(
        domains={
            Domain.CHOICE: 2.0,
            Domain.EXTRACTION: 1.0,
            Domain.TOOL_USE: 0.5,
            Domain.OPEN_TEXT: 1.0,
            Domain.MATHS: 1.5,
            Domain.CODE: 0.25,
            Domain.INSTRUCTION: 0.5,
        }
    )
    general_sft: SFTSettings = SFTSettings(epochs=0)
    """After RL, on all demonstrations; Ring-lite's last stage. Without epochs there is none."""
    evaluation: EvaluationSettings = EvaluationSettings()
    release: ReleaseSettings = ReleaseSettings()

    @model_validator(mode="before")
    @classmethod
    def _give_only_what_differs(cls, values: object) -> object:
        return _on_defaults(cls, values)

    @model_validator(mode="after")
    def _nothing_is_merged_after_rl(self) -> Self:
        if self.general_sft.parents:
            raise ValueError(
                "general_sft.parents is set, but the model after RL is merged with none; set "
                "sft.parents"
            )
        return self


class RetrainSettings(Settings):
    """Settings of `workflows/retrain.py retrain`."""

    inbox: str = Field(default="inbox", min_length=1, description="folder or s3://bucket/prefix")
    min_rows: int = Field(
        default=32,
        ge=1,
        description="new valid problems that justify a run; with fewer it waits for more",
    )
    min_unsolved_share: float = Field(
        default=0.1,
        ge=0.0,
        le=1.0,
        description="of graded problems the released model does not always solve; below it, skip",
    )
    curation: CurationSettings = CurationSettings()
    sft: SFTSettings = SFTSettings()
    merge: MergeSettings = MergeSettings()
    grading: GradingSettings = Field(
        default=GradingSettings(drop_at_or_above=1.01),
        description="of the released model; nothing is dropped, so that what it solves is counted",
    )
    rl: RLSettings = RLSettings(domains=dict.fromkeys(Domain, 1.0))
    evaluation: EvaluationSettings = EvaluationSettings()
    release: ReleaseSettings = ReleaseSettings()

    @model_validator(mode="before")
    @classmethod
    def _give_only_what_differs(cls, values: object) -> object:
        return _on_defaults(cls, values)

    @model_validator(mode="after")
    def _something_is_trained(self) -> Self:
        if not self.rl.steps:
            raise ValueError("rl.steps is 0, so nothing would be trained; set it to 1 or more")
        return self
