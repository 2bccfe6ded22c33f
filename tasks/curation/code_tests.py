"""Check the tests of the code problems that are left in the set, shard by shard."""

# pyright: basic
# pyarrow ships no types.

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from data_schemas.rows import Outcome, Problem
from tasks.cores import num_cores
from tasks.curation.code_soundness import STAGE, UNSOUND, SoundnessCheck, check_tests, outputs, run
from tasks.curation.overlap.fingerprints import Key
from tasks.curation.shards.columns import refusals
from tasks.curation.shards.mapping import write_arrow
from tasks.curation.shards.opened import Shards
from tasks.curation.shards.steps import RefusalTables
from tasks.gym import code_tests
from tasks.gym.code_tests import CodeTests, program_in
from tasks.gym.protocol import THINK_CLOSE
from tasks.platform.progress import progress
from tasks.store.files import write_bytes

VERIFIER = "code_tests"
FOUND, UNSOUND_ROWS, COUNTS = "unsound.arrow", "unsound.npy", "code_tests.json"
"""In the folder of a shard, before its answers are replaced."""

Responses = Mapping[tuple[int, int], Sequence[str]]
"""By the key of the prompt."""


def check_code_tests(shards: Shards, refused: RefusalTables) -> dict[str, Counter[str]]:
    """Remove and add tests of code problems; quarantine problems without a sound test.

    A shard that was checked by an earlier attempt is not checked again.

    Returns:
        Counts of problems and tests by source; sources without such problems are missing.
    """
    rows_by_shard = {
        shard: rows for shard in range(len(shards)) if len(rows := _problems(shards, shard))
    }
    if not rows_by_shard:
        return {}
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    responses = _responses(shards, rows_by_shard)
    try:
        for shard, rows in progress(rows_by_shard.items(), "checking tests"):
            if not shards.has_other_answers(shard):
                _check_shard(shards, shard, rows, responses)
            refused.append(shards.folder(shard) / FOUND)
            shards.alive[np.load(shards.folder(shard) / UNSOUND_ROWS)] = False
            for source, shard_counts in json.loads(
                (shards.folder(shard) / COUNTS).read_bytes()
            ).items():
                counts[source].update(shard_counts)
    finally:
        code_tests.close()
    return dict(counts)


def _check_shard(shards: Shards, shard: int, rows: NDArray[np.int64], responses: Responses) -> None:
    items = shards.items(rows)
    keys = shards.keys[rows, Key.PROMPT].tolist()

    def check(place: int) -> SoundnessCheck:
        problem = items[place].record
        assert isinstance(problem, Problem)
        programs = list(_programs(problem, responses.get(tuple(keys[place]), ())))
        return check_tests(problem, programs, run, outputs)

    with ThreadPoolExecutor(num_cores()) as threads:
        results = list(threads.map(check, range(len(items))))
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for item, one in zip(items, results, strict=True):
        counts[item.record.source].update(+one.counts)
    bad = [(int(row), one.fault) for row, one in zip(rows, results, strict=True) if one.fault]
    left_out = [(row, Outcome.QUARANTINED, UNSOUND, fault) for row, fault in bad]
    folder = shards.folder(shard)
    write_arrow(folder / FOUND, refusals(shards.refuse(STAGE, left_out)))
    np.save(folder / UNSOUND_ROWS, np.array([row for row, _ in bad], np.int64))
    write_bytes(folder / COUNTS, json.dumps(counts).encode())
    places = rows - shards.starts[shard]
    shards.replace_answers(
        shard, dict(zip(places.tolist(), (one.answer for one in results), strict=True))
    )


def _problems(shards: Shards, shard: int) -> NDArray[np.int64]:
    """Return the rows of the code problems of a shard that are left and have a reference."""
    batch, living = shards.batch(shard), shards.living(shard)
    living = living[shards.is_problem[shards.starts[shard] + living]]
    verifiers = batch.column("verifier").take(pa.array(living)).to_pylist()
    coded = living[[one == VERIFIER for one in verifiers]] if len(living) else living
    answers = batch.column("answer").take(pa.array(coded)).to_pylist()
    with_reference = [bool(json.loads(one).get("reference")) for one in answers]
    return coded[with_reference] + shards.starts[shard]


def _responses(shards: Shards, rows_by_shard: Mapping[int, NDArray[np.int64]]) -> Responses:
    """Return the verified responses to the prompts of problems."""
    prompts = shards.keys[np.concatenate(list(rows_by_shard.values())), Key.PROMPT, 0]
    is_shown = ~shards.is_problem & shards.is_verified & shards.alive
    rows = np.flatnonzero(is_shown & np.isin(shards.keys[:, Key.PROMPT, 0], prompts))
    results: dict[tuple[int, int], list[str]] = defaultdict(list)
    for row, item in zip(rows, shards.items(rows), strict=True):
        results[tuple(shards.keys[row, Key.PROMPT].tolist())].append(item.response)
    return results


def _programs(problem: Problem, responses: Sequence[str]) -> Iterator[str]:
    gold = CodeTests.model_validate_json(problem.answer)
    for response in responses:
        yield program_in(gold, response.rpartition(THINK_CLOSE)[2])
