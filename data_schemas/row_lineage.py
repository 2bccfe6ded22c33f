"""Answers of row lineage: what a row touched, what made a release, what two releases differ in."""

from pydantic import Field

from data_schemas.frozen_model import FrozenModel


class TracedCheckpoint(FrozenModel):
    """One checkpoint."""

    stage: str
    statement: str
    checkpoint: str = Field(description="digest")
    release: str = Field(default="", description="name of the registered model; '' = no release")
    version: str = ""
    passed: bool = Field(default=False, description="the gate of the release")


class RawRowPlace(FrozenModel):
    """Where a raw row lies."""

    uri: str = Field(description="of the raw file, as it was ingested")
    file: str = Field(description="sha256")
    number: int = Field(description="of the row in its file, from 1")


class RowOutcome(FrozenModel):
    """What curation or grading made of a raw row."""

    artifact: str = Field(description="digest of the curated or graded set")
    item: str
    kind: str = Field(description="'problem', 'demonstration', 'held out', 'row', 'decision'")
    source_row: str
    source: str
    reason: str = Field(
        default="", description="why it was left out, or what people decided; '' = it was kept"
    )
    detail: str = ""


class StageUse(FrozenModel):
    """What one stage did with the rows that were asked for."""

    stage: str
    statement: str
    checkpoint: str
    outcome: str = Field(description="a GroupOutcome, 'demonstration' or 'validation'")
    rows: int
    steps: tuple[int, ...] = Field(description="of RL; empty for fine-tuning")
    times: int = Field(description="rollouts, or epochs of fine-tuning")
    tokens: int = Field(description="trained by RL")
    advantage: float = Field(description="sum of |advantage| over these tokens")
    trained: bool = Field(description="it changed weights")


class TrainedRow(FrozenModel):
    """A row that trained a model, summed over all stages behind it."""

    source_row: str
    item: str
    source: str
    stages: int
    times: int
    tokens: int
    advantage: float


class RowTrace(FrozenModel):
    """Everything that some raw rows touched."""

    asked: str
    rows: int = Field(description="distinct raw rows")
    places: tuple[RawRowPlace, ...] = Field(description="the first of them")
    outcomes: tuple[RowOutcome, ...] = Field(description="the first of them")
    uses: tuple[StageUse, ...]
    evaluations: tuple[str, ...] = Field(description="statements that were measured with them")
    checkpoints: tuple[TracedCheckpoint, ...] = Field(
        description="whose weights they changed, in order"
    )


class ModelTrace(FrozenModel):
    """Which rows made a model, and what was made from it."""

    model: TracedCheckpoint
    rows: int = Field(description="distinct raw rows that trained it")
    uses: tuple[StageUse, ...] = Field(description="per stage behind it and outcome")
    top: tuple[TrainedRow, ...] = Field(description="the rows with the largest advantage")
    table: str = Field(description="all of them as CSV; '' if the store cannot be written")
    made_of: tuple[TracedCheckpoint, ...]
    made_from: tuple[TracedCheckpoint, ...]


class Retraining(FrozenModel):
    """How to train a release anew without the withdrawn rows."""

    release: str = Field(description="name of the registered model")
    settings: str = Field(description="file for `post_training --settings`; '' = see `reason`")
    reason: str = Field(default="", description="why there is no such file")


class WithdrawalImpact(FrozenModel):
    """What has to go because of rows that are withdrawn."""

    named: int = Field(description="rows that were named")
    unknown: tuple[str, ...] = Field(description="of these, those that this store never read")
    duplicates: tuple[str, ...] = Field(
        description="other rows that say the same; one of each kind is kept, so all are withdrawn"
    )
    similar: tuple[str, ...] = Field(
        description="near duplicates, which are not withdrawn: people decide"
    )
    exclusions: str = Field(description="file with the exclusion list")
    rows: int = Field(description="on the list, with those of earlier lists")
    trace: RowTrace
    retrainings: tuple[Retraining, ...] = Field(description="of every affected released name")

    @property
    def releases(self) -> tuple[TracedCheckpoint, ...]:
        """Return the releases that must go."""
        return tuple(one for one in self.trace.checkpoints if one.release)


class Difference(FrozenModel):
    """One value that two releases do not have in common."""

    stage: str = Field(description="'rl/one', or 'rl/retrain 2' for its second run; '' = of all")
    name: str
    before: str = Field(description="'' = it has none")
    after: str


class ReleaseComparison(FrozenModel):
    """What two checkpoints or releases differ in."""

    before: TracedCheckpoint
    after: TracedCheckpoint
    rows_before: int
    rows_after: int
    added: int = Field(description="rows that trained the second only, per item")
    removed: int
    changed: int = Field(description="rows that trained both, to another extent")
    table: str = Field(description="these rows as CSV; '' if the store cannot be written")
    data: tuple[Difference, ...] = Field(description="raw files")
    code: tuple[Difference, ...] = Field(description="stages, source digests and environments")
    settings: tuple[Difference, ...] = Field(description="of the stages that both have")
    rewards: tuple[Difference, ...] = Field(description="reward settings, and use per verifier")
    evaluation: tuple[Difference, ...]
