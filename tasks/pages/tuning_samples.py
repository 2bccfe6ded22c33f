"""What each fine-tuning's model answered to the same held-out prompts after every epoch."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tasks.algorithms.personal_data import without_personal_data
from tasks.pages.inputs import read_tuning


@dataclass(frozen=True, slots=True)
class SampledPrompt:
    """One prompt with its demonstration and the answers to it."""

    title: str
    prompt: str
    rows: tuple[tuple[str, str], ...]
    """(what it is, text): the demonstration, then the answer after each epoch."""


@dataclass(frozen=True, slots=True)
class TuningSamples:
    """The prompts of one fine-tuning."""

    title: str
    prompts: tuple[SampledPrompt, ...]


def tuning_samples(tunings: Mapping[str, Path]) -> tuple[TuningSamples, ...]:
    """Arrange the samples by prompt; none for reports of versions that kept no prompts."""
    groups = []
    for name, folder in tunings.items():
        epochs = read_tuning(folder).epochs
        first = [sample for sample in epochs[0].samples if sample.prompt] if epochs else []
        prompts = tuple(
            SampledPrompt(
                title=f"{one.domain}: {one.demonstration}",
                prompt=without_personal_data(one.prompt),
                rows=(
                    ("demonstration", without_personal_data(one.reference)),
                    *(
                        (
                            f"epoch {epoch.epoch}{', chosen' if epoch.chosen else ''}",
                            without_personal_data(same.response),
                        )
                        for epoch in epochs
                        for same in epoch.samples
                        if same.demonstration == one.demonstration
                    ),
                ),
            )
            for one in first
        )
        if prompts:
            groups.append(TuningSamples(name, prompts))
    return tuple(groups)
