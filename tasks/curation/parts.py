"""Part of the work on single rows, as a task of its own: map some of the shards, and verify them.

`curate` takes the shards of all parts instead of mapping them itself. It writes the same bytes with
any number of parts, and without them.
"""

import logging
import shutil
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from data_schemas.settings import CurationSettings
from data_schemas.sources import Part
from tasks.curation.cleaning.verification import Score
from tasks.curation.cleaning.withdrawal import withdrawn_rows
from tasks.curation.ingest import LISTS, check_raw_files, locate
from tasks.curation.shards import steps
from tasks.curation.shards.mapping import DONE, Rules, plan
from tasks.curation.shards.opened import Shards
from tasks.curation.shards.processes import map_shards, num_workers
from tasks.formats import decisions
from tasks.formats.exclusions import LIST_FILE
from tasks.gym.table import score_batch
from tasks.platform.progress import progress
from tasks.store.files import scratch_folder

_LOG = logging.getLogger(__name__)
SHARDS = "shards"
"""Folder of the shards, in the working folder of curation and in a part."""


def map_part(
    settings: CurationSettings,
    raw: Path,
    base_model: Path,
    part: Part,
    out: Path,
    held_out_from: Path | None = None,
    score: Score = score_batch,
) -> dict[str, int]:
    """Map the shards of a part, and verify their demonstrations.

    Args:
        settings: limits. Sources are those listed in `raw`.
        raw: folder that `ingest` wrote.
        base_model: its tokenizer measures lengths.
        part: which shards; there may be none.
        out: empty folder.
        held_out_from: an earlier curated folder; what it left out as withdrawn is left out here.
        score: scores the responses of demonstrations.

    Returns:
        Counts of shards, and of the items that they have and that were verified.

    Raises:
        TamperError: a raw file changed since it was ingested.
    """
    files = check_raw_files(raw)
    listed = [file for file in files if file.adapter not in LISTS]
    people = tuple(locate(raw, file) for file in files if file.adapter == decisions.ADAPTER)
    with scratch_folder(out.parent, ".part-") as work:
        exclusions = withdrawn_rows(raw, files, held_out_from, work)
        rules = Rules(settings, base_model, work / LIST_FILE if exclusions else None, people)
        jobs = islice(plan(raw, listed, out / SHARDS), part.number, None, part.of)
        workers = num_workers(sum(file.bytes for file in listed) // part.of)
        mapped_jobs = progress(map_shards(jobs, rules, workers), "curating shards")
        shards = Shards([job.out for job in mapped_jobs], work)
        shards.alive &= ~shards.is_evaluation  # benchmarks stay as they are published
        steps.verify(shards, steps.RefusalTables(shards, work), score)
    _LOG.info("part %d of %d: mapped %d shards", part.number + 1, part.of, len(shards))
    return {
        "shards": len(shards),
        "items": len(shards.alive),
        "verified": int(shards.is_verified.sum()),
    }


def take_parts(parts: Sequence[Path], work: Path) -> None:
    """Link the shards of parts into the working folder of curation, which then maps none of them.

    What curation notes of a shard besides lies beside the links, so that a part is never written.

    Args:
        parts: folders that `map_part` wrote.
        work: folder of the shards, as `curate` has it; an earlier attempt may have left it.
    """
    for part in parts:
        for source in sorted(part.glob(f"{SHARDS}/*")):
            shard = work / source.relative_to(part)
            if (shard / DONE).exists():
                continue
            shutil.rmtree(shard, ignore_errors=True)  # unfinished, or links to a copy that is gone
            shard.mkdir(parents=True)
            for path in sorted(source.iterdir(), key=lambda path: path.name == DONE):
                (shard / path.name).symlink_to(path)
