"""Lengths of the responses of a step: from a recorded table, or assumed.

A prompt's record is the mean length of an earlier group of responses to it. A table without a
prompt column has one response per prompt and no records: there, the order matters only if
lengths were known.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.errors import DataError, SettingsError

_READERS: Mapping[str, Callable[[Path], pd.DataFrame]] = {
    ".csv": pd.read_csv,
    ".jsonl": lambda path: pd.read_json(path, lines=True),
    ".parquet": pd.read_parquet,
}
MEAN_SHARE = 0.25
"""Assumed: mean length of a response, as a share of the limit."""
BETWEEN_PROMPTS = 0.47
WITHIN_PROMPT = 0.46
"""Standard deviations of the logarithm of lengths, of ZeroEval's 88,090 answers of 57 models to
2,040 maths problems: of a prompt's mean, and of answers around it."""


class LengthGroup(NamedTuple):
    """Responses of one prompt in a step."""

    lengths: NDArray[np.float64]
    record: float | None
    """Mean length of an earlier group; None without one."""


Draw = Callable[[int, int, np.random.Generator], list[LengthGroup]]
"""(prompts, group size, generator) -> the groups of a step."""


def read_lengths(path: Path, column: str, prompt: str) -> list[NDArray[np.float64]]:
    """Read the lengths of all responses, by prompt; without a prompt column one list of all.

    Raises:
        DataError: the file cannot be read, lacks a column, or has lengths below 0 or no number.
    """
    if path.suffix not in _READERS:
        raise DataError(f"{path}: its name must end in one of {', '.join(_READERS)}")
    try:
        table = _READERS[path.suffix](path)
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    for name in filter(None, (column, prompt)):
        if name not in table.columns:
            raise DataError(f"{path} has no column {name!r}, but {', '.join(table.columns)}")
    try:
        lengths = np.array(table[column].tolist(), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{path}: column {column!r} has values that are no length") from error
    if not np.isfinite(lengths).all() or (lengths < 0).any():
        raise DataError(f"{path}: column {column!r} has values that are no length")
    lengths = np.maximum(lengths, 1.0)
    if not prompt:
        return [lengths]
    names = np.array([str(name) for name in table[prompt].tolist()])
    order = np.argsort(names, kind="stable")
    _, first = np.unique(names[order], return_index=True)
    return np.split(lengths[order], first[1:])


def draw_step(
    by_prompt: Sequence[NDArray[np.float64]],
    num_prompts: int,
    group_size: int,
    draws: np.random.Generator,
) -> list[LengthGroup]:
    """Draw the groups of a step, and for each as many earlier responses, its record.

    A prompt with fewer lengths than both is not drawn. Of a table without prompts every length is
    a prompt of its own, without a record.

    Raises:
        DataError: no prompt has enough lengths.
    """
    if len(by_prompt) == 1:
        single_lengths = draws.choice(by_prompt[0], num_prompts * group_size)
        return [LengthGroup(np.array([length]), None) for length in single_lengths]
    needed = 2 * group_size
    enough = [lengths for lengths in by_prompt if len(lengths) >= needed]
    if not enough:
        raise DataError(f"no prompt has {needed} lengths, a group and its earlier responses")
    groups = []
    for place in draws.integers(0, len(enough), num_prompts):
        lengths = enough[place]
        both = lengths[draws.permutation(len(lengths))[:needed]]
        groups.append(LengthGroup(both[:group_size], float(both[group_size:].mean())))
    return groups


def assumed(limit: int, mean: float = 0.0) -> Draw:
    """Draw from a log-normal distribution that is cut at the limit.

    Args:
        mean: before the cut; 0 = MEAN_SHARE of the limit.
    """
    # The mean of exp(x) is exp(mean + variance / 2).
    variance = BETWEEN_PROMPTS**2 + WITHIN_PROMPT**2
    centre = float(np.log(mean or MEAN_SHARE * limit) - variance / 2)

    def draw(num_prompts: int, group_size: int, draws: np.random.Generator) -> list[LengthGroup]:
        own_P = draws.normal(centre, BETWEEN_PROMPTS, num_prompts)
        logs_PG = draws.normal(own_P[:, None], WITHIN_PROMPT, (num_prompts, 2 * group_size))
        lengths_PG = np.ceil(np.minimum(np.exp(logs_PG), limit))
        return [
            LengthGroup(both[:group_size], float(both[group_size:].mean())) for both in lengths_PG
        ]

    return draw


def recorded(by_prompt: Sequence[NDArray[np.float64]], limit: int) -> Draw:
    """Draw from a table whose lengths are scaled so that the longest is the limit."""
    scale = limit / max(float(lengths.max()) for lengths in by_prompt)
    scaled = [np.ceil(lengths * scale) for lengths in by_prompt]
    if len(scaled) > 1:
        return lambda prompts, size, draws: draw_step(scaled, prompts, size, draws)

    def draw(num_prompts: int, group_size: int, draws: np.random.Generator) -> list[LengthGroup]:
        lengths_PG = draws.choice(scaled[0], (num_prompts, group_size))
        return [LengthGroup(lengths_G, None) for lengths_G in lengths_PG]

    return draw


class LengthSource(NamedTuple):
    """Where the lengths of a simulation come from."""

    draw: Draw
    mean: float
    description: str


def read_source(path: str, column: str, prompt: str, limit: int) -> LengthSource:
    """Read a table of lengths, or assume a distribution if no path is given.

    Raises:
        SettingsError: a column is given without a table, or a table without a column.
        DataError: the table cannot be read.
    """
    if bool(path) != bool(column) or (prompt and not path):
        raise SettingsError("--lengths and --column belong together, and --prompt_column to both")
    if not path:
        mean = MEAN_SHARE * limit
        text = f"lengths are assumed: log-normal, {mean:,.0f} tokens on average, at most {limit:,}"
        return LengthSource(assumed(limit), mean, text)
    by_prompt = read_lengths(Path(path), column, prompt)
    scale = limit / max(float(lengths.max()) for lengths in by_prompt)
    mean = scale * float(np.concatenate(by_prompt).mean())
    text = f"lengths from {Path(path).name}, scaled to at most {limit:,}: {mean:,.0f} on average"
    return LengthSource(recorded(by_prompt, limit), mean, text)
