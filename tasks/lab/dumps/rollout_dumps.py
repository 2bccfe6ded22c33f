"""Read the rollouts that other trainers write: verl, slime and miles, prime-rl, TRL.

    STEP.jsonl              verl, `trainer.rollout_data_dir`: texts, gold answers, scores
    *.pt                    slime and miles, `--save-debug-rollout-data`: tokens, rewards, the
                            engine's log-probabilities; `--save-debug-train-data`: the trainer's
    rollouts.bin            prime-rl, transport by the file system: as the first of slime
    completions_*.parquet   TRL, `log_completions`: texts, rewards

The layouts are those of their code of 2026-11. A pickle is read without running anything in it.
"""

import io
import json
import math
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import PurePath
from typing import Any

import msgpack
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from numpy.typing import NDArray

from tasks.errors import DataError, SettingsError

GOLD = ("gts", "ground_truth", "gold", "answer", "solution", "label")
"""Columns of a gold answer."""
_TRL_OTHERS = {"step", "prompt", "completion", "advantage"}
_SLIME_STATUS = {"completed": False, "truncated": True}
_RECONSTRUCT = np.empty(0).__reduce__()[0]
_NUMPY = [np.ndarray, np.dtype, _RECONSTRUCT, (_RECONSTRUCT, "numpy.core.multiarray._reconstruct")]
"""What a pickled array names, by the names of both numpy 1 and 2; its types are beside them."""


@dataclass(frozen=True, slots=True)
class DumpedResponse:
    """One response. R: its tokens that were sampled, without those of tools."""

    group: str
    """What the responses to one prompt share."""
    text: str
    """Its text, else its tokens as text: equal for equal responses."""
    length: int
    """Tokens; of a dump of texts characters."""
    reward: float | None = None
    gold: str = ""
    truncated: bool | None = None
    rollout_R: NDArray[np.float32] | None = None
    """Log-probabilities of the engine, nats."""
    trainer_R: NDArray[np.float32] | None = None
    """Log-probabilities of the trainer, before its update."""
    tokens_R: NDArray[np.int64] | None = None
    advantage: float | None = None
    """Mean over its tokens."""

    @property
    def gaps_R(self) -> NDArray[np.float32] | None:
        """Log-probabilities of the trainer minus those of the engine; None without both."""
        if self.trainer_R is None or self.rollout_R is None:
            return None
        return self.trainer_R - self.rollout_R


@dataclass(frozen=True, slots=True)
class Dump:
    """The responses of one file."""

    trainer: str
    responses: Sequence[DumpedResponse]
    rewards: Sequence[str] = ()
    """Columns whose sum is the reward, where the file does not say it."""


_OTHER_LAYOUT = (
    *(KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, OSError),
    *(RuntimeError, pa.ArrowException),  # a recursion error is one
)
"""What reading a file of another layout raises."""
Read = tuple[str, list[DumpedResponse], Sequence[str]]
"""What a reader returns: trainer, responses, columns that are summed."""


def read_dump(name: str, payload: bytes, rewards: Sequence[str] = ()) -> Dump:
    """Read a dump; its format follows from the end of its name.

    Args:
        name: of the file.
        payload: its bytes.
        rewards: columns of TRL's rewards; () takes all numbers that have no other meaning.

    Raises:
        DataError: it is in none of the formats, or has no response.
        SettingsError: the file has no such columns of rewards.
    """
    readers: dict[str, Callable[[bytes], Read]] = {
        ".jsonl": _verl,
        ".pt": _slime,
        ".bin": _prime_rl,
        ".parquet": partial(_trl, chosen=rewards),
    }
    suffix = PurePath(name).suffix
    if suffix not in readers:
        raise DataError(
            f"{name} is no dump that is known: STEP.jsonl of verl, *.pt of slime or miles, "
            "rollouts.bin of prime-rl, or completions_*.parquet of TRL."
        )
    if rewards and suffix != ".parquet":
        raise SettingsError(f"--rewards has no effect on {name}, which says what the reward is.")
    try:
        trainer, responses, summed = readers[suffix](payload)
    except SettingsError:  # of `rewards`
        raise
    except _OTHER_LAYOUT as error:
        raise DataError(
            f"{name} has another layout than {suffix} files of the trainers that are known: "
            f"{_cause(error)}"
        ) from error
    if not responses:
        raise DataError(f"{name} has no response.")
    return Dump(trainer, responses, summed)


def _cause(error: Exception) -> str:
    """Say what is wrong: the words of an error of ours, with its type that of another one."""
    return str(error) if type(error) is ValueError else f"{type(error).__name__} {error}"


def _each(rows: Iterable[Any], read: Callable[[Any], DumpedResponse]) -> list[DumpedResponse]:
    """Read every row.

    Raises:
        ValueError: one cannot be read; says which.
    """
    responses = []
    for number, row in enumerate(rows, start=1):
        try:
            responses.append(read(row))
        except _OTHER_LAYOUT as error:
            raise ValueError(f"row {number}: {_cause(error)}") from error
    return responses


def _verl(payload: bytes) -> Read:
    lines = [line for line in payload.removeprefix(b"\xef\xbb\xbf").splitlines() if line.strip()]
    return "verl", _each(lines, _verl_response), ()


def _verl_response(line: bytes) -> DumpedResponse:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise ValueError(f"no JSON: {error}") from error
    text = _text(row["output"], "output")
    return DumpedResponse(
        group=f"{row.get('step')} {_plain(row['input'])}",
        text=text,
        length=len(text),
        reward=_finite(row["score"], "score"),
        gold=_gold(row),
    )


def _trl(payload: bytes, chosen: Sequence[str]) -> Read:
    # Without threads of Arrow: with torch loaded, one that starts as the process ends aborts it.
    table = pq.ParquetFile(pa.BufferReader(payload), pre_buffer=False).read(use_threads=False)
    rewards = [
        field.name
        for field in table.schema
        if field.name not in (*_TRL_OTHERS, *GOLD)
        and (pa.types.is_floating(field.type) or pa.types.is_integer(field.type))
    ]
    if others := [name for name in chosen if name not in rewards]:
        raise SettingsError(
            f"--rewards {', '.join(others)} is no column of numbers; {', '.join(rewards)} are"
        )
    rewards = [*chosen] or rewards
    if not rewards:
        raise ValueError("no column of rewards")

    def read(row: dict[str, Any]) -> DumpedResponse:
        values = [row[name] for name in rewards if row[name] is not None]
        text = _plain(row["completion"])
        return DumpedResponse(
            group=f"{row['step']} {_plain(row['prompt'])}",
            text=text,
            length=len(text),
            reward=_finite(sum(values), "reward") if values else None,
            gold=_gold(row),
            advantage=_finite(row.get("advantage"), "advantage"),
        )

    return "TRL", _each(table.to_pylist(), read), rewards


def _slime(payload: bytes) -> Read:
    types = [getattr(np.dtypes, name) for name in dir(np.dtypes) if name.endswith("DType")]
    try:
        with torch.serialization.safe_globals([*_NUMPY, *types]):
            dump = torch.load(io.BytesIO(payload), map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ValueError(f"it is not read without running code of its own: {reason}") from error
    columns = dump.get("rollout_data")
    if columns is not None:  # a rank's columns, as before format 2
        count = len(columns["response_lengths"])
        rows = [
            {
                name: column[place]
                for name, column in columns.items()
                if isinstance(column, list | tuple) and len(column) == count
            }
            for place in range(count)
        ]
        places = [row.get("partition") for row in rows]
        rewards = columns.get("raw_reward")
    else:
        rows = dump["samples"]
        places = [row.get("rollout_position") for row in rows]
        rewards = dump.get("raw_reward")
    indices = [place for place in places if place is not None]
    is_known = len(indices) == len(rows)
    # Of all ranks, in the order of the rollouts, and not those of one rank.
    if rewards is not None and is_known and all(index < len(rewards) for index in indices):
        rows = [
            {**row, "raw_reward": rewards[index]} for row, index in zip(rows, indices, strict=True)
        ]
    return "slime or miles", _each(rows, _slime_response), ()


def _slime_response(row: Mapping[str, Any]) -> DumpedResponse:
    tokens = _array(row["tokens"], np.int64)
    response = int(row["response_lengths"] if "response_lengths" in row else row["response_length"])
    prompt = tokens[: len(tokens) - response]
    group = row.get("group_index")
    mask = row["loss_masks"] if "loss_masks" in row else row.get("loss_mask")
    sampled_R = np.ones(response, bool) if mask is None else _array(mask, np.int64) != 0
    reward = row["raw_reward"] if "raw_reward" in row else row.get("reward")
    if isinstance(reward, Mapping):  # of several, the one that its settings name `score`
        reward = reward.get("score")
    return DumpedResponse(
        group=" ".join(map(str, prompt)) if group is None else str(group),
        text=_text(row.get("response") or "", "response")
        or " ".join(map(str, tokens[len(tokens) - response :])),
        length=response,
        reward=_finite(reward, "reward"),
        gold=_gold(row),
        truncated=bool(row["truncated"])
        if "truncated" in row
        else _SLIME_STATUS.get(row.get("status", "")),
        rollout_R=_logprobs(row.get("rollout_log_probs"), sampled_R),
        trainer_R=_logprobs(row.get("log_probs"), sampled_R),
        tokens_R=tokens[len(tokens) - response :][sampled_R],
        advantage=_mean(_logprobs(row.get("advantages"), sampled_R)),
    )


def _prime_rl(payload: bytes) -> Read:
    try:
        examples = msgpack.unpackb(payload)[0]
    except (msgpack.UnpackException, ValueError) as error:
        raise ValueError(f"no msgpack: {error}") from error
    return "prime-rl", _each(examples, _prime_rl_response), ()


def _prime_rl_response(row: Sequence[Any]) -> DumpedResponse:
    return _flat_example(row) if isinstance(row[4], str) else _split_example(row)


def _flat_example(row: Sequence[Any]) -> DumpedResponse:
    """token_ids, mask, logprobs, temperatures, env_name, advantages, reward.

    Without a reward the sixth may be the log-probabilities of a reference model. Advantages are
    numbers, or a list for each loss: its name, numbers, mask.
    """
    tokens, mask = np.asarray(row[0]), np.asarray(row[1], bool)
    start = int(mask.argmax()) if mask.any() else len(mask)
    has_reward = len(row) > 6 and isinstance(row[6], float | int)
    advantages = row[5] if has_reward and row[5] else None
    if advantages is not None and isinstance(advantages[0], list):
        (_, advantages, _), *others = advantages
        advantages = None if others else advantages
    return DumpedResponse(
        group=" ".join(map(str, tokens[:start])),
        text=" ".join(map(str, tokens[start:])),
        length=int(mask.sum()),
        reward=_finite(row[6], "reward") if has_reward else None,
        rollout_R=np.asarray(row[2], np.float32)[mask],
        tokens_R=tokens[mask].astype(np.int64),
        advantage=_mean(np.asarray(advantages, np.float32)[mask]) if advantages else None,
    )


def _split_example(row: Sequence[Any]) -> DumpedResponse:
    """prompt_ids, prompt_mask, completion_ids, completion_mask, completion_logprobs, and then
    [temperatures, [env_name,]] reference's or teacher's log-probabilities, advantage, reward;
    in the oldest layout only an advantage.
    """
    mask = np.asarray(row[3], bool)
    rest = list(row[5:])
    while rest and not isinstance(rest[0], float | int):
        rest.pop(0)
    advantage, reward = (
        rest[:2] if len(rest) > 1 and isinstance(rest[1], float | int) else (None,) * 2
    )
    return DumpedResponse(
        group=" ".join(map(str, row[0])),
        text=" ".join(map(str, row[2])),
        length=int(mask.sum()),
        reward=_finite(reward, "reward"),
        rollout_R=np.asarray(row[4], np.float32)[mask],
        tokens_R=np.asarray(row[2], np.int64)[mask],
        advantage=_finite(advantage, "advantage"),
    )


def _logprobs(values: object, sampled_R: NDArray[np.bool_]) -> NDArray[np.float32] | None:
    """Return the values of the sampled tokens.

    Raises:
        ValueError: they are not one per token of the response.
    """
    if values is None:
        return None
    logprobs_R = _array(values, np.float32)
    if logprobs_R.shape != sampled_R.shape:
        raise ValueError(f"{len(logprobs_R)} log-probabilities of {len(sampled_R)} tokens")
    return logprobs_R[sampled_R]


def _finite(value: Any, name: str) -> float | None:
    """Return a number of this name; None where there is none, or a NaN or an infinity.

    Raises:
        TypeError: it is something else.
    """
    if value is None:
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except TypeError as error:
        raise TypeError(f"{name} is {value!r}, no number") from error


def _mean(values_R: NDArray[np.float32] | None) -> float | None:
    return None if values_R is None or not len(values_R) else _finite(values_R.mean(), "mean")


def _array(values: object, dtype: type) -> NDArray[Any]:
    return np.asarray(
        values.detach().float().numpy() if isinstance(values, torch.Tensor) else values
    ).astype(dtype)


def _gold(row: Mapping[str, Any]) -> str:
    """Return the gold answer, a text, a number or a list of one of them; '' if there is none."""
    for name in GOLD:
        value = row.get(name)
        if isinstance(value, list) and len(value) == 1:
            (value,) = value
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            return _text(str(value), name)
    return ""


def _text(value: object, name: str) -> str:
    """Return a text that can be written: half a character becomes a question mark.

    Raises:
        TypeError: it is something else.
    """
    if not isinstance(value, str):
        raise TypeError(f"{name} is {str(value)[:60]!r}, no text")
    return value.encode(errors="replace").decode()


def _plain(content: object) -> str:
    """Return a text, or the messages of a conversation as one."""
    return _text(content if isinstance(content, str) else "\n".join(_messages(content)), "text")


def _messages(content: object) -> Iterator[str]:
    for message in content if isinstance(content, list) else [content]:
        if not isinstance(message, dict):
            yield str(message)
            continue
        said, calls = message.get("content"), message.get("tool_calls")
        yield "" if said is None else str(said)
        if calls:
            yield json.dumps(calls, sort_keys=True, default=str)
