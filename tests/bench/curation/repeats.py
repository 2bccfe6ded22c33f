"""Which method finds planted repeats among training problems.

    python -m tests.bench.curation.repeats DATA --encoder FOLDER

Rows: the first training questions of GSM8K, and of 250 of them one more each with the same answer,
made as in `leaks`: reworded, or with other names. Methods, in the order of curation: near
duplicates (`dedup.py`) at the default threshold, and the meaning (`meaning/repeats.py`). The rows
without planted ones say what is dropped wrongly.
"""

import argparse
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from rich.console import Console
from rich.table import Table

from data_schemas.settings import CurationSettings, Source
from tasks.curation.ingest import ingest, raw_files
from tasks.curation.meaning.folder_encoder import FolderEncoder
from tasks.curation.meaning.protocol import Encoder, Vectors
from tasks.curation.shards import steps
from tasks.curation.shards.mapping import Rules, map_shard, plan
from tasks.curation.shards.opened import Shards
from tasks.curation.shards.repeats import drop_repeats
from tasks.errors import DataError
from tasks.models.model_folder import SHIPPED
from tasks.platform.command_line import run
from tasks.platform.progress import progress
from tests.bench.curation.leaks import PLANTED

NUM_PLANTED = 250
_LONGEST = 4096
"""Tokens; of GSM8K no row is left out."""
_MARK = "planted"
REPEATS = ("reworded", "other names")
Row = Mapping[str, object]


class Remembering:
    """An encoder that encodes every text once."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._known: dict[str, Vectors] = {}

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Encode the texts that are new."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known |= dict(zip(new, self._encoder.encode(new), strict=True))
        return np.stack([self._known[text] for text in texts])


def found(rows: Sequence[Row], planted: Sequence[str], encoder: Encoder) -> Counter[str]:
    """Curate problems and planted ones; count by method what is dropped of each.

    Args:
        rows: as `prompt_jsonl` reads them.
        planted: prompts made of the first rows, with the answers of those.
        encoder: of the meaning.
    """
    with TemporaryDirectory() as folder:
        work = Path(folder)
        more = [{**row, "prompt": text} for row, text in zip(rows, planted, strict=False)]
        sources: list[Source] = []
        for name, some in (("given", rows), (_MARK, more)):
            path = work / f"{name}.jsonl"
            path.write_text("\n".join(json.dumps(row) for row in some))
            sources.append(Source(adapter="prompt_jsonl", path=str(path)))
        (work / "raw").mkdir()
        ingest(sources[: 1 + bool(more)], 0, work / "raw")
        settings = CurationSettings(max_prompt_tokens=_LONGEST, max_response_tokens=_LONGEST)
        jobs = list(plan(work / "raw", raw_files(work / "raw"), work / "shards"))
        for job in jobs:
            map_shard(job, Rules(settings, SHIPPED, None))
        shards = Shards([job.out for job in jobs], work)
        refused = steps.RefusalTables(shards, work)
        steps.deduplicate(shards, refused, settings.near_duplicate_jaccard)
        drop_repeats(shards, refused, encoder)
        return Counter(
            f"{one['reason']} {_MARK if f'/{_MARK}-' in one['key'] else 'given'}"
            for table in refused.tables()
            for one in table.to_pylist()
        )


def questions(path: Path, count: int) -> list[Row]:
    """Read the first questions of GSM8K as problems.

    Raises:
        DataError: the file cannot be read.
    """
    try:
        with path.open() as lines:
            rows = [json.loads(line) for line in islice(lines, count)]
        common = {"domain": "maths", "language": "en", "verifier": "final_answer"}
        return [
            common
            | {"prompt": row["question"], "answer": {"value": row["answer"].rpartition("#### ")[2]}}
            for row in rows
        ]
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"{path} cannot be read: {error!r}. Set DATA.") from error


def repeats(rows: Sequence[Row], encoder: Encoder) -> Table:
    """Draw the table of what each method drops."""
    remembering = Remembering(encoder)
    table = Table("planted", "rows", "near duplicates", "meaning", "clean rows, meaning")
    sets = {
        "none": [],
        **{
            name: [PLANTED[name](str(one["prompt"])) for one in rows[:NUM_PLANTED]]
            for name in REPEATS
        },
    }
    for name, planted in progress(sets.items(), "sets"):
        counts = found(rows, planted, remembering)
        table.add_row(
            name,
            f"{len(planted)}",
            f"{counts[f'near_duplicate {_MARK}']}",
            f"{counts[f'same_meaning {_MARK}']}",
            f"{counts['same_meaning given']}",
        )
    return table


def main(arguments: Sequence[str]) -> None:
    """Read the command line and print the table."""
    parser = argparse.ArgumentParser(prog="repeats", description=__doc__)
    parser.add_argument("data", type=Path, help="folder with gsm8k")
    parser.add_argument("--encoder", type=Path, default=SHIPPED, help="folder of a text encoder")
    parser.add_argument("--rows", type=int, default=7473, help="training questions of GSM8K")
    asked = parser.parse_args(arguments)
    rows = questions(asked.data / "gsm8k" / "train.jsonl", asked.rows)
    Console().print(repeats(rows, FolderEncoder(asked.encoder)))


if __name__ == "__main__":
    run(main)
