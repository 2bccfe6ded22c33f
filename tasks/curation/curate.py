"""Stage 1: turn raw rows into problems, demonstrations and held-out suites.

The steps are: read, carry out the decisions of people, cleanse, set benchmarks aside, verify
demonstrations, remove duplicates and what a guard calls harmful, check the tests of code problems,
draw the held-out suites, remove overlapping items from training, and select problems by the pass
rates of models. No item is lost: for every source, the number of items read equals the number kept
plus the number dropped plus the number quarantined.
"""

import json
import logging
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from data_schemas.arrow import read_table, write_table
from data_schemas.gold_decisions import AppliedDecision
from data_schemas.rl_settings import JudgeSettings
from data_schemas.rows import (
    CROISSANT,
    DECISIONS,
    HELD_OUT,
    PROBLEMS,
    QUARANTINE,
    ItemKind,
    Problem,
)
from data_schemas.settings import CurationSettings
from data_schemas.sources import RawFile
from tasks.curation import free_rewards
from tasks.curation.cleaning import annotation, pass_rates, personal
from tasks.curation.cleaning.verification import WRONG, Score
from tasks.curation.cleaning.withdrawal import REASON, withdraw, withdrawn_rows
from tasks.curation.code_soundness import UNSOUND
from tasks.curation.code_tests import check_code_tests
from tasks.curation.contamination import as_items
from tasks.curation.croissant import croissant
from tasks.curation.funnel import funnel_lines
from tasks.curation.harm.opening import open_guard
from tasks.curation.harm.screening import UNRATED
from tasks.curation.ingest import LISTS, check_raw_files, locate
from tasks.curation.items import Item
from tasks.curation.meaning.neighbours import Neighbours
from tasks.curation.meaning.opening import open_encoder
from tasks.curation.parts import SHARDS
from tasks.curation.shards import steps
from tasks.curation.shards.mapping import Rules, counts_of, plan
from tasks.curation.shards.opened import Shards
from tasks.curation.shards.processes import map_shards, num_workers
from tasks.curation.shards.repeats import drop_repeats
from tasks.curation.shards.result import Account, Counts, write_result
from tasks.curation.shards.selection import select
from tasks.curation.shards.steps import RefusalTables
from tasks.curation.split import separate_benchmarks
from tasks.errors import DataError
from tasks.formats import decisions as decision_tables
from tasks.formats import solve_rates
from tasks.formats.benchmark_file import write_suites
from tasks.formats.exclusions import LIST_FILE
from tasks.formats.licences import licence_of
from tasks.gym.table import score_batch
from tasks.platform.progress import progress, say
from tasks.store.files import scratch_folder, write_bytes

_LOG = logging.getLogger(__name__)

REPORT = "report.json"
EXAMPLE = "--sources my_dialogues.yaml=dialogues.jsonl,evaluation:mgsm=mgsm.jsonl"

_ADVICE = {
    "prompt_too_long": "Raise curation.max_prompt_tokens.",
    "response_too_long": "Raise curation.max_response_tokens.",
    annotation.REASON: "People dropped every problem; add other rows.",
    "duplicate": "The source repeats itself; add more of its rows.",
    "near_duplicate": "Raise curation.near_duplicate_jaccard.",
    "contaminated": "Lower curation.held_out_per_suite or add other rows.",
    REASON: "The exclusion list leaves nothing; add other rows.",
    WRONG: "Do the responses end with the answer in the form that the verifier reads?",
    UNSOUND: "Do the reference solutions pass the tests in the sandbox?",
    pass_rates.NO_RATE: "Does solve_rates have this source's problems as they are now?",
    pass_rates.OUTSIDE: "Widen the band.",
    UNRATED: "Does the guard of curation.guard answer, and with safe or unsafe?",
    "missing_field": "Name your columns as `eachprompt data` lists them, or write a mapping file.",
    "missing_column": "Correct the columns of the mapping file.",
    "not_json": "Is the file JSON lines, and the adapter the right one?",
    "not_utf8": "Save the file as UTF-8 with the program that wrote it.",
    "unclosed_quote": "Close the quote, or double the quotes inside of a cell.",
    "damaged_file": "What follows in the file is in no number: replace the file.",
    "damaged_rows": "Replace the file: its checksums or pages are broken.",
    "bad_answer": "Correct the gold answers, or the column of the mapping that has them.",
    "unread_cell": "Correct the cells, or leave the column out of the mapping.",
    "unread_key": "Remove the key where it says nothing, or write it into the text.",
    "repeated_column": "Rename or remove one of the columns of that name.",
    "repeated_header": "Files were put together with their headers; these lines are no rows.",
    "malformed_csv": "Quote cells that hold the delimiter or a line break.",
    personal.REASON: "Remove what tells of a person, or set curation.personal to mask.",
    "language_mix": "Correct the language of the mapping, or name the column that has it.",
}


def curate(
    settings: CurationSettings,
    raw: Path,
    base_model: Path,
    out: Path,
    held_out_from: Path | None = None,
    score: Score = score_batch,
    work: Path | None = None,
) -> dict[str, float | int | str]:
    """Write problems, demonstrations, held-out suites, refusals and the report to `out`.

    What sources say of their problems besides (`Item.facets`), and how often models solve them, is
    in facets.parquet, if anything is.

    Args:
        settings: limits and seeds. Sources are those listed in `raw`.
        raw: folder that `ingest` wrote.
        base_model: its tokenizer measures lengths.
        out: empty folder.
        held_out_from: an earlier curated folder whose held-out suites are reused; no new
            problem is held out then. What it left out as withdrawn is left out here too.
        score: scores the responses of demonstrations.
        work: folder of the shards, which a later attempt with the same inputs continues; without
            it they are in a temporary folder.

    Raises:
        TamperError: a raw file changed since it was ingested.
        DataError: a decision of people fits no problem, or no solve rate does; no problem is left,
            or none could be held out; not with `held_out_from`, and not if all sources are
            benchmarks.
    """
    files = check_raw_files(raw)
    listed = [file for file in files if file.adapter not in LISTS]
    exclusions = withdrawn_rows(raw, files, held_out_from, out)
    lists = (decision_tables.ADAPTER, solve_rates.ADAPTER, solve_rates.BANDS)
    of_people, of_models, of_bands = (_files_of(name, raw, files) for name in lists)
    rates, bands = solve_rates.read_rates(of_models), solve_rates.read_bands(of_bands)
    rules = Rules(settings, base_model, out / LIST_FILE if exclusions else None, of_people)
    with work_folder(work, out) as folder:
        shards = _map(raw, listed, rules, folder)
        decided = _carried_out(shards, of_people, out)
        refused = RefusalTables(shards, folder)
        benchmarks = _separate_benchmarks(shards, refused)
        steps.verify(shards, refused, score)
        steps.deduplicate(shards, refused, settings.near_duplicate_jaccard)
        if benchmarks:
            # Before others are held out: what overlaps with a benchmark is not drawn either.
            for any_numbers in (False, True):
                steps.drop_overlap(shards, refused, benchmarks, folder, any_numbers=any_numbers)
            steps.drop_reworded(shards, refused, benchmarks)
            steps.drop_reused_ids(shards, refused, benchmarks)
        _compare_meaning(shards, refused, benchmarks, settings.encoder)
        if guard := open_guard(settings.guard):
            steps.screen_harm(shards, refused, guard)
        tests = check_code_tests(shards, refused)
        held_out, earlier = [], []
        if held_out_from is None:
            held_out = shards.items(steps.draw(shards, settings.held_out_per_suite, settings.seed))
        else:
            earlier, _ = withdraw(
                as_items(read_table(held_out_from / HELD_OUT, Problem)), exclusions
            )
        suites = [*held_out, *earlier, *benchmarks]
        steps.drop_overlap(shards, refused, suites, folder)
        steps.drop_same_rows(shards, refused, suites)
        answered = select(shards, refused, suites, rates, bands)
        account = write_result(shards, refused, [*held_out, *benchmarks], suites, rates, out)

    free = free_rewards.measure(out / PROBLEMS, score)
    counts = {
        "decisions": decided,
        "tests": tests,
        "solve_rates": answered,
        "personal": account.personal,
    }
    report, totals = _by_source(listed, account, counts), account.totals()
    examined = bool(suites) and all(file.evaluation for file in listed)
    if held_out_from is None and not examined:  # new rows of a model may all be known or broken
        _check_enough(account, is_held_out=bool(suites), is_measured=bool(benchmarks))
    write_suites(out, (file.suite for file in listed))
    full_report = {
        "totals": totals,
        "sources": report,
        "families": _families(account, suites),
        "free_rewards": {
            source: {verifier: one.model_dump() for verifier, one in scores.items()}
            for source, scores in sorted(free.items())
        },
        "thinking": account.thinking.report(),
        "thinking_languages": account.thinking.languages(),
    }
    write_bytes(out / REPORT, json.dumps(full_report, indent=2, sort_keys=True).encode())
    licences = dict.fromkeys(report, "") | {file.adapter: licence_of(file) for file in listed}
    described = croissant(out, licences, settings.publication)
    write_bytes(out / CROISSANT, json.dumps(described, indent=2).encode())
    for line in funnel_lines(account, advice_on):
        say(line)
    return dict(totals)


@contextmanager
def work_folder(work: Path | None, out: Path) -> Iterator[Path]:
    """Yield the folder of the shards; it is removed when the set is written.

    Args:
        work: stays after a failure, so that the next attempt finds the shards that are complete.
        out: without `work`, a temporary folder beside this one is used.
    """
    if work is None:
        with scratch_folder(out.parent, ".shards-") as folder:
            yield folder
        return
    work.mkdir(parents=True, exist_ok=True)
    yield work
    # Mapped files are still open: NFS keeps them under another name, and their folder with them.
    shutil.rmtree(work, ignore_errors=True)


def _files_of(adapter: str, raw: Path, files: Sequence[RawFile]) -> tuple[Path, ...]:
    return tuple(locate(raw, file) for file in files if file.adapter == adapter)


def _map(raw: Path, files: Sequence[RawFile], rules: Rules, folder: Path) -> Shards:
    """Read, adapt and cleanse every row."""
    jobs = plan(raw, files, folder / SHARDS)
    workers = num_workers(sum(file.bytes for file in files))
    mapped_jobs = progress(map_shards(jobs, rules, workers), "curating shards")
    return Shards([job.out for job in mapped_jobs], folder)


def _carried_out(shards: Shards, paths: tuple[Path, ...], out: Path) -> dict[str, Counter[str]]:
    """Write what people decided, and count it by source.

    Raises:
        DataError: a decision fits no problem that was read.
    """
    if not paths:
        return {}
    decisions = decision_tables.read_decisions(paths)
    matches: dict[str, str] = {}
    for shard in range(len(shards)):
        matches |= counts_of(shards.folder(shard)).decided
    annotation.check(decisions, matches)
    rows = annotation.decision_rows(decisions)
    write_table(out / DECISIONS, AppliedDecision, rows)
    return {
        source: Counter(row.decision for row in rows if row.source == source)
        for source in sorted({row.source for row in rows})
    }


def _separate_benchmarks(shards: Shards, refused: RefusalTables) -> list[Item]:
    """Take the rows of benchmarks from the set, and return their problems."""
    rows = np.flatnonzero(shards.is_evaluation)
    benchmarks, _, refusals = separate_benchmarks(shards.items(rows))
    refused.add(refusals)
    shards.alive[rows] = False
    return benchmarks


def _compare_meaning(
    shards: Shards, refused: RefusalTables, benchmarks: Sequence[Item], settings: JudgeSettings
) -> None:
    """Compare with the benchmarks and among each other by meaning, if an encoder is set."""
    if encoder := open_encoder(settings):
        if benchmarks:
            steps.drop_same_meaning(shards, refused, Neighbours(benchmarks, encoder))
        drop_repeats(shards, refused, encoder)


def _check_enough(account: Account, *, is_held_out: bool, is_measured: bool) -> None:
    """Refuse a set that teaches nothing, or that nothing is measured with.

    Demonstrations beside a benchmark are enough: there is nothing to reward, and RL is skipped.
    """
    totals = account.totals()
    problems, demonstrations = totals["problems"], totals["demonstrations"]
    if (problems and is_held_out) or (demonstrations and is_measured):
        return
    if problems:
        raise DataError(
            f"{problems} problems, but none can be held out: a source and language needs at "
            "least two problems. Add rows, or raise the source's limit."
        )
    num_read = account.read.total()
    reasons = account.reasons[ItemKind.PROBLEM] + account.reasons[ItemKind.ROW]
    if not reasons or demonstrations > reasons.total():
        raise DataError(
            f"curation kept {demonstrations} demonstrations of {num_read} items, and no source has "
            "problems: nothing can be rewarded, and no release be measured. Give a mapping "
            f"verifier and answer (`eachprompt data`), or add a benchmark: {EXAMPLE}"
        )
    ranked = reasons.most_common(3)
    causes = ", ".join(f"{reason} {count}" for reason, count in ranked)
    detail = account.details[ranked[0][0]]
    advice = f"For example: {detail}. " if detail else ""
    advice += advice_on(ranked[0][0])
    raise DataError(
        f"curation kept none of {num_read} items as a training problem. "
        f"Most frequent reasons: {causes}. {advice}"
    )


def advice_on(reason: str) -> str:
    """Say what to do about rows that are left out for a reason."""
    return _ADVICE.get(reason, f"See {QUARANTINE}.")


def _by_source(
    files: Sequence[RawFile],
    account: Account,
    counts: Mapping[str, Mapping[str, Mapping[str, int]]],
) -> dict[str, dict[str, int | Counts]]:
    """Return the report of every source, with further counts by name and source."""
    report = {source: account.of(source) for source in sorted({file.adapter for file in files})}
    for name, of_sources in counts.items():
        for source, numbers in of_sources.items():
            if source in report:  # models may have solved problems of sources that are not read
                report[source][name] = dict(numbers)
    return report


def _families(account: Account, suites: Sequence[Item]) -> dict[str, dict[str, Counts]]:
    """Count training and held-out problems, per domain and per language."""
    held_out = {
        "domain": Counter(str(item.record.domain) for item in suites),
        "language": Counter(item.record.language for item in suites),
    }
    return {
        axis: {
            "problems": dict(sorted(account.axes[axis].items())),
            "held_out": dict(sorted(held_out[axis].items())),
        }
        for axis in held_out
    }
