"""The sample world for a model that thinks or answers at once, as its prompt asks.

The last words of a question are the switch that Qwen3 reads in a message (arXiv 2505.09388,
section 4.3): `/think`, and the demonstration is the teacher's; `/no_think`, and it is the same
answer behind an empty thought. The switch is text, so that every chat template has it.

Each mode is a source, whose name the evaluation reports by itself: what it solves, and in how many
tokens. They draw different rows. Duplicates and leaks are found by the question without its switch,
so that no question is taught in one mode and held out in the other.
"""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TypeVar

from data_schemas.rows import Demonstration, Problem
from tasks.curation import sample_world
from tasks.curation.adapters.general import sample
from tasks.curation.items import Item
from tasks.curation.marketplace.items import respond
from tasks.curation.rows import RawRow
from tasks.gym.protocol import answer_part

SLOW, FAST = "sample_slow", "sample_fast"
SWITCHES: Mapping[str, str] = {SLOW: "/think", FAST: "/no_think"}
_OTHER_WORLD = 2**32
"""Added to the seed of the fast mode; no seed of the settings is as large."""
RecordT = TypeVar("RecordT", bound=Problem | Demonstration)


def generate(mode: str, seed: int, folder: Path) -> None:
    """Write the rows of a mode; the same seed gives the same bytes."""
    sample_world.generate(seed + _OTHER_WORLD * (mode == FAST), folder)


GENERATORS: dict[str, Callable[[int, Path], None]] = {
    mode: partial(generate, mode) for mode in SWITCHES
}
"""What writes the rows of each source."""


def read(mode: str, row: RawRow) -> list[Item]:
    """Read a row of the sample world, with the switch of a mode behind its question."""
    return [
        Item(
            _in_mode(mode, one.record),
            one.content,
            answers=one.answers and _in_mode(mode, one.answers),
        )
        for one in sample(row)
    ]


def _in_mode(mode: str, record: RecordT) -> RecordT:
    *before, question = record.messages
    asked = question.model_copy(update={"content": f"{question.content} {SWITCHES[mode]}"})
    changes: dict[str, object] = {
        "id": record.id.replace(sample_world.SOURCE, mode, 1),
        "messages": (*before, asked),
        "source": mode,
    }
    if mode == FAST and isinstance(record, Demonstration):
        changes["response"] = respond("", answer_part(record.response) or record.response)
    return record.model_copy(update=changes)
