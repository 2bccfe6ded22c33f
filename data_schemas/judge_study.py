"""Settings of a study of judges: what is changed in the training comparisons."""

from pydantic import Field

from data_schemas.group import Settings, Share
from data_schemas.presets import JUDGE
from data_schemas.settings import SFTSettings


class TrainingPairs(Settings):
    """Changes of the training comparisons; the held-out ones stay as they are."""

    tie_share: Share | None = Field(
        default=None, description="of the training pairs, all of which is as many; None = collected"
    )
    noise: Share | None = Field(
        default=None, description="share of labels replaced; None = analyses and true labels"
    )


class JudgeStudySettings(Settings):
    """A judge and a Bradley-Terry head on the same comparisons."""

    base_model: str = Field(default="", description="Hugging Face directory; '' = the shipped one")
    files: tuple[str, ...] = Field(default=(), description="comparisons; none: the sample world's")
    sft: SFTSettings = JUDGE
    training: TrainingPairs = TrainingPairs()
