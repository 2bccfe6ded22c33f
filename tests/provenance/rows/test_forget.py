"""The recorded story: a poisoned row is found, named with what must go, and left out."""

import json
from pathlib import Path

import pytest

from data_schemas.arrow import read_table
from data_schemas.rows import (
    DEMONSTRATIONS,
    HELD_OUT,
    PROBLEMS,
    QUARANTINE,
    Demonstration,
    Problem,
    QuarantinedItem,
)
from data_schemas.settings import MergeSettings, PipelineSettings
from tasks.curation.curate import curate
from tasks.curation.ingest import ingest
from tasks.errors import SettingsError
from tasks.formats.exclusions import read_list
from tasks.provenance.rows.find import by_row
from tasks.provenance.rows.index import open_index
from tasks.provenance.rows.influence import trace_rows
from tasks.provenance.rows.text import forget_text
from tasks.provenance.rows.withdrawal import forget, read_rows
from tasks.store.files import sha256_bytes
from tests.provenance.rows.shop import NEW, OLD, POISON, Shop, line_of, question

PHASE = "rl/two of rl/one of merged"


def digest_of(row) -> str:
    return sha256_bytes(line_of(row).encode())


def forgotten(shop: Shop, *lines: str):
    index = open_index(shop.store, shop.place)
    (shop.outside / "rows.txt").write_text("\n".join(lines))
    withdrawal = read_rows(index, shop.store, shop.outside / "rows.txt")
    return forget(index, shop.store, shop.place, withdrawal, show=5)


def settings_of(found) -> PipelineSettings:
    """The settings of the retraining, as the command line reads them."""
    (file,) = [one.settings for one in found.retrainings if one.release == "complete"]
    return PipelineSettings.model_validate_json(Path(file).read_bytes())


def curated_again(shop: Shop, settings: PipelineSettings, folder):
    """Ingest and curate with the settings of a retraining."""
    for name in ("raw", "out"):
        (folder / name).mkdir(parents=True)
    ingest(settings.curation.sources, 0, folder / "raw")
    base = shop.place / "objects" / shop.refs["base"].digest[:16]
    curate(settings.curation, folder / "raw", base, folder / "out")
    return folder / "out"


def rows_of(out) -> set[str]:
    tables = ((PROBLEMS, Problem), (DEMONSTRATIONS, Demonstration), (HELD_OUT, Problem))
    return {row.source_row for name, kind in tables for row in read_table(out / name, kind)}


@pytest.fixture
def complete(shop, tmp_path) -> Shop:
    """With the second phase that a release of post_training has."""
    shop.outside = tmp_path
    shop.reinforce("rl/two", "rl/one of merged", "old")
    shop.release("complete", PHASE, "old")
    return shop


def test_a_poisoned_row_is_found_forgotten_and_left_out(complete, tmp_path):
    index = open_index(complete.store, complete.place)
    trace = trace_rows(index, by_row(index, complete.store, line_of(POISON)), show=5)
    steps = {use.stage: use.steps for use in trace.uses if use.trained}

    found = forgotten(complete, line_of(POISON))

    assert {"rl/one", "rl/two", "sft/reasoning"} == steps.keys()
    assert trace.checkpoints == found.trace.checkpoints
    assert {"shop", "complete"} == {made.release for made in found.releases}
    assert frozenset({digest_of(POISON)}) == read_list(tmp_path / found.exclusions)
    out = curated_again(complete, settings_of(found), tmp_path / "again")
    assert {digest_of(row) for row in OLD if row != POISON} == rows_of(out)
    refused = read_table(out / QUARANTINE, QuarantinedItem)
    assert {"withdrawn"} == {row.reason for row in refused if row.source_row == digest_of(POISON)}


def test_the_settings_of_the_retraining_are_those_of_the_release(complete):
    found = forgotten(complete, line_of(POISON))

    settings = settings_of(found)
    assert ["gsm8k", "withdrawn"] == [source.adapter for source in settings.curation.sources]
    assert (2, 3) == (settings.sft.epochs, settings.curation.held_out_per_suite)
    assert "complete" == settings.release.name
    shown = [str(part) for part in forget_text(found, complete.store).renderables]
    assert any(f"--settings {one.settings}" in part for one in found.retrainings for part in shown)


def test_a_release_of_another_workflow_says_why_there_are_no_settings(shop):
    found = forgotten(shop, line_of(NEW[0]), line_of(POISON))

    reasons = {one.release: one.reason for one in found.retrainings if not one.settings}
    assert "its chain has no rl/two; post_training did not make it" == reasons["shop"]


def test_rows_that_trained_nothing_take_no_release_with_them(shop):
    held_out = read_table(
        shop.place / "objects" / shop.refs["old/curated"].digest[:16] / HELD_OUT, Problem
    )

    found = forgotten(shop, held_out[0].source_row)

    assert ((), ()) == (found.releases, found.retrainings)
    assert 1 == len(found.trace.evaluations)
    assert frozenset({held_out[0].source_row}) == read_list(shop.place / found.exclusions)


def test_what_says_the_same_is_withdrawn_too_and_what_is_similar_is_shown(shop, tmp_path):
    """Curation kept one of the equal rows; without it, it would keep the next."""
    shop.outside = tmp_path
    same = {"question": POISON["question"].upper(), "answer": POISON["answer"]}
    long = "The owner counts the till twice. Then a clerk writes all of it down in a book. "
    long += "Every evening the book goes into the safe, and a guard locks the door behind it. "
    near = [
        {"question": long + question(70)["question"] + end, "answer": question(70)["answer"]}
        for end in ("", " Please.")
    ]
    shop.add_rows("twins", [same, POISON, *near, *NEW])
    index = open_index(shop.store, shop.place)
    reasons = {row["reason"] for row in index.read("rows").to_pylist()}

    kept, dropped = forgotten(shop, line_of(same)), forgotten(shop, line_of(POISON))

    assert {"duplicate", "near_duplicate"} <= reasons
    assert ((digest_of(POISON),), (digest_of(same),)) == (kept.duplicates, dropped.duplicates)
    assert (2, 2) == (kept.rows, dropped.rows)
    similar = forgotten(shop, line_of(near[0]))
    assert ((), (digest_of(near[1]),)) == (similar.duplicates, similar.similar)


def test_what_was_withdrawn_before_stays_withdrawn(complete, tmp_path):
    first = forgotten(complete, line_of(POISON))
    out = curated_again(complete, settings_of(first), tmp_path / "again")
    recorded = complete.stage("curate", MergeSettings(), curated="again")
    with recorded as record, record.output("curated") as made:
        for path in out.iterdir():
            path.rename(made / path.name)

    second = forgotten(complete, line_of(OLD[0]))

    assert frozenset(map(digest_of, (POISON, OLD[0]))) == read_list(
        complete.place / second.exclusions
    )


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["no shop ever sold this"], r"rows.txt, line 1: --row 'no shop ever sold this'"),
        (["", " "], "names no row"),
        ([line_of(POISON), "bags"], r"line 2: --row 'bags': give at least 8 characters"),
    ],
)
def test_a_line_that_means_no_row_is_refused_by_number(shop, tmp_path, lines, message):
    shop.outside = tmp_path

    with pytest.raises(SettingsError, match=message):
        forgotten(shop, *lines)


def test_a_digest_that_was_never_read_is_listed_and_still_excluded(shop, tmp_path):
    shop.outside = tmp_path

    found = forgotten(shop, "f" * 64)

    assert (("f" * 64,), ()) == (found.unknown, found.releases)
    assert frozenset({"f" * 64}) == read_list(shop.place / found.exclusions)
    assert json.loads(found.model_dump_json())["rows"] == 1


def test_a_file_that_cannot_be_read_is_refused(shop, tmp_path):
    index = open_index(shop.store, shop.place)
    (tmp_path / "rows.bin").write_bytes(b"\xff\xfe")

    with pytest.raises(SettingsError, match=r"--rows .*rows.bin cannot be read"):
        read_rows(index, shop.store, tmp_path / "rows.bin")
