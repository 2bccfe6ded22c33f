"""New rows with replayed old ones, and the held-out set with the slice of this month.

    mix(settings, "2026-11", new, known, out)

writes a curated set for retraining:

problems        the new ones that no known set has, and old ones in the share OLD_SHARE, evenly
                over the domains: what is not practised any more is forgotten
demonstrations  the new ones, which curation verified, and old ones as many as the same share gives,
                for each parent
held_out        the held-out set so far, unchanged, and once a month a slice of the new problems.
                The ids of a slice begin with `slice=2026-11/`, so that every slice is scored
                separately and old numbers stay comparable

Everything trained on is decontaminated against all slices. Withdrawn rows are never replayed, and
their list is passed on.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from data_schemas.arrow import read_table, write_table
from data_schemas.rows import (
    ASIDE,
    DEMONSTRATIONS,
    FACETS,
    HELD_OUT,
    PROBLEMS,
    QUARANTINE,
    REPLAYED,
    SLICE,
    Aside,
    Demonstration,
    Domain,
    MixReport,
    Parent,
    Problem,
    QuarantinedItem,
)
from data_schemas.rows import REPORT as MIX_REPORT
from data_schemas.settings import CurationSettings
from tasks.curation.contamination import as_items, decontaminate
from tasks.curation.curate import REPORT
from tasks.curation.items import Item, ticket
from tasks.curation.mixture import draw
from tasks.formats.content import content_key, content_keys
from tasks.formats.exclusions import LIST_FILE, read_list
from tasks.formats.known import read_known, rows_of_files
from tasks.store.files import canonical_json, sha256_bytes, write_bytes

OLD_SHARE = 0.25
"""Share of the problems and demonstrations trained on: old ones. The share of Ibrahim et al. (2024,
arXiv:2403.08763) for a strong change of the distribution."""
SLICE_SHARE = 0.1
"""Share of the new problems, per domain: what the slice of a month takes from training."""


@dataclass(frozen=True, slots=True)
class History:
    """What the released model was trained on."""

    problems: tuple[Problem, ...]
    demonstrations: tuple[Demonstration, ...]
    held_out: tuple[Problem, ...]
    """All slices so far."""


def mix(
    settings: CurationSettings,
    month: str,
    new: Path,
    history: History,
    out: Path,
    *,
    merge: bool = False,
    aside: Aside = Aside(),  # noqa: B008 - frozen
) -> MixReport:
    """Write the set that a retraining learns from.

    Args:
        settings: limits and seed.
        month: '2026-11', names the slice.
        new: curated folder of the new files.
        history: of the released model.
        out: empty folder.
        merge: keep the parents of demonstrations; else one model is fine-tuned on all of them.
        aside: new files that people have to look at first; their rows are left out.
    """
    aside_rows = rows_of_files(new, set(aside.files))
    keys = content_keys([*history.problems, *history.held_out])
    problems = [
        problem
        for problem in read_table(new / PROBLEMS, Problem)
        if content_key(problem) not in keys and problem.source_row not in aside_rows
    ]
    held_out, fresh = take_slice(problems, history.held_out, month, settings)
    pool = _without_ids(history.problems, {problem.id for problem in [*fresh, *held_out]})
    table = read_table(new / DEMONSTRATIONS, Demonstration)
    demonstrations = [one for one in table if one.source_row not in aside_rows]
    # Other old rows every night, and no draw of the new ones has the same ticket.
    night = sha256_bytes(canonical_json(sorted(one.id for one in [*fresh, *demonstrations])))[:16]
    old = replay(pool, len(fresh), settings.seed, night)
    old_rows = _replay_demonstrations(history.demonstrations, demonstrations, settings.seed, night)
    items = [
        *as_items([*fresh, *old]),
        *(Item(d, d.prompt_text) for d in [*demonstrations, *old_rows]),
    ]
    survivors, refused = decontaminate(items, as_items(held_out))
    records = [item.record for item in survivors]
    learned = [record for record in records if isinstance(record, Problem)]
    taught = [record for record in records if isinstance(record, Demonstration)]
    if not merge:
        taught = [one.model_copy(update={"parent": Parent.COMMERCE}) for one in taught]
    write_table(out / PROBLEMS, Problem, learned)
    write_table(out / DEMONSTRATIONS, Demonstration, taught)
    write_table(out / HELD_OUT, Problem, held_out)
    write_table(out / QUARANTINE, QuarantinedItem, refused)
    for name in (REPORT, FACETS, LIST_FILE):
        if (new / name).exists():
            write_bytes(out / name, (new / name).read_bytes())
    replay_ids = {problem.id for problem in old}
    of_new = {one.id for one in demonstrations}
    write_bytes(out / REPLAYED, canonical_json(sorted(replay_ids)))
    write_bytes(out / ASIDE, canonical_json(aside))
    mixed = MixReport(
        fresh=sum(problem.id not in replay_ids for problem in learned),
        replayed=sum(problem.id in replay_ids for problem in learned),
        held_out=len(held_out),
        added=len(held_out) - len(history.held_out),
        slice=f"{SLICE}{month}" if len(held_out) > len(history.held_out) else "",
        demonstrations=sum(one.id in of_new for one in taught),
        practised=sum(one.id not in of_new for one in taught),
        parents=dict(sorted(Counter(one.parent.value for one in taught).items())),
        refused=dict(sorted(Counter(row.reason for row in refused).items())),
    )
    write_bytes(out / MIX_REPORT, json.dumps(mixed.model_dump(), indent=2).encode())
    return mixed


def take_slice(
    problems: Sequence[Problem], held_out: Sequence[Problem], month: str, settings: CurationSettings
) -> tuple[list[Problem], list[Problem]]:
    """Hold out a share of the new problems, unless this month has its slice already.

    Returns:
        (the whole held-out set, the problems left to train on). A domain with fewer new problems
        than a slice of one needs gives none.
    """
    mark = f"{SLICE}{month}/"
    if any(problem.id.startswith(mark) for problem in held_out):
        return list(held_out), list(problems)
    groups: dict[Domain, list[Problem]] = defaultdict(list)
    for problem in sorted(problems, key=lambda one: ticket(mark, settings.seed, one.id)):
        groups[problem.domain].append(problem)
    limit = settings.held_out_per_suite
    slice_ids = {
        problem.id
        for group in groups.values()
        for problem in group[: min(limit, int(SLICE_SHARE * len(group)))]
    }
    added = [
        problem.model_copy(update={"id": f"{mark}{problem.id}"})
        for problem in problems
        if problem.id in slice_ids
    ]
    return [*held_out, *added], [problem for problem in problems if problem.id not in slice_ids]


def replay(old: Sequence[Problem], fresh: int, seed: int, night: str) -> list[Problem]:
    """Draw old problems, evenly over their domains, so that they are OLD_SHARE of the whole."""
    count = round(fresh * OLD_SHARE / (1.0 - OLD_SHARE))
    weights = dict.fromkeys({problem.domain for problem in old}, 1.0)
    return draw(old, weights, count, seed, f"replay/{night}")


def _replay_demonstrations(
    old: Sequence[Demonstration], new: Sequence[Demonstration], seed: int, night: str
) -> list[Demonstration]:
    """Draw old demonstrations, as many of each parent; none if there is no new one."""
    parents = sorted({one.parent for one in old} - {Parent.JUDGE})
    if not new or not parents:
        return []
    ids = {one.id for one in new}
    each = max(2, round(len(new) * OLD_SHARE / (1.0 - OLD_SHARE) / len(parents)))
    draws: list[Demonstration] = []
    for parent in parents:
        own = [one for one in old if one.parent is parent and one.id not in ids]
        own.sort(key=lambda one: ticket(f"replay/{night}", seed, one.id))
        draws += own[:each]
    return draws


def _without_ids(problems: Iterable[Problem], ids: set[str]) -> list[Problem]:
    """Drop problems whose id another one has, and repetitions."""
    return list({one.id: one for one in problems if one.id not in ids}.values())


def load_history(sets: Mapping[str, Path], new: Path) -> History:
    """Read what the released model was trained and is evaluated on, without withdrawn rows.

    Args:
        sets: every curated set and every mixture on the way to it, by digest.
        new: curated folder of the new files, with the held-out set so far and the exclusions.
    """
    suites = read_table(new / HELD_OUT, Problem)
    questions = content_keys(suites)
    exclusions = read_list(new / LIST_FILE) if (new / LIST_FILE).exists() else frozenset[str]()
    return History(
        problems=tuple(
            problem
            for problem in read_known(sets, PROBLEMS, Problem)
            if content_key(problem) not in questions and problem.source_row not in exclusions
        ),
        demonstrations=tuple(
            one
            for one in read_known(sets, DEMONSTRATIONS, Demonstration)
            if one.source_row not in exclusions
        ),
        held_out=tuple(suites),
    )
