"""Which version is the released one, when several want to be."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from data_schemas.artifacts import Execution, StoreRef
from tasks.provenance.lineage.connection import connect
from tasks.provenance.lineage.rebuild import rebuild
from tasks.provenance.lineage.registry import PromotionEntry, promote
from tasks.provenance.lineage.releases import is_current
from tasks.provenance.lineage.versions import read_history
from tests.provenance.lineage.small_chain import make_raw, release, run_all, train
from tests.provenance.release import racing

ROOT = Path(__file__).parents[3]


def run(name: str) -> Execution:
    return Execution(id=name, started=0.0)


def ask(store: StoreRef, statement: str, execution: str) -> bool:
    return is_current(racing.NAME, statement, racing.digest_of(execution), store.uri)


def aliases(store: StoreRef) -> dict[str, str]:
    found = connect(store.tracking_uri).get_registered_model(racing.NAME).aliases
    return {name: str(version) for name, version in found.items()}


def promotions(store: StoreRef) -> list[tuple[str, str]]:
    return [(one.version, one.by) for one in read_history(racing.NAME, store.tracking_uri)]


@pytest.mark.slow
def test_the_start_is_released_until_another_execution_releases(store):
    assert ask(store, "any", "e2") is False

    first = racing.promote(store, run("e1"))
    assert ask(store, first, "e2")
    model = train(store, run("e3"), make_raw(store, run("e3")))
    release(store, run("e3"), model, released=False)
    assert ask(store, first, "e2")

    racing.promote(store, run("e4"))
    assert not ask(store, first, "e2")


def test_a_task_that_is_tried_again_after_it_has_registered_is_not_stale(store):
    first = racing.promote(store, run("e1"))
    racing.promote(store, run("e2"))

    assert ask(store, first, "e2")
    assert not ask(store, first, "e20")


@pytest.mark.slow
def test_of_two_releases_that_would_replace_the_same_version_one_wins(store):
    first = racing.promote(store, run("e1"))
    command = [sys.executable, racing.__file__, store.model_dump_json(), first]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr[-3000:]
    (_, winner) = promotions(store)
    assert {"released": winner[0], "previous": "1"} == aliases(store)
    found = connect(store.tracking_uri).search_model_versions(f"name = '{racing.NAME}'")
    assert {"1", "2", "3"} == {str(version.version) for version in found}


def test_a_promotion_that_arrives_late_does_not_replace_a_newer_one(store):
    """Its gate decided when another version was the released one."""
    first = racing.promote(store, run("e1"))
    racing.promote(store, run("e2"))
    entry = PromotionEntry(
        version="1", sha256="s", statement="late", key="e3.release", time=0.0, by="release"
    )

    assert not promote(connect(store.tracking_uri), racing.NAME, entry, replaces=first)
    assert {"released": "2", "previous": "1"} == aliases(store)


def test_aliases_that_a_crash_left_behind_are_set_by_the_next_event(store):
    racing.promote(store, run("e1"))
    racing.promote(store, run("e2"))
    client = connect(store.tracking_uri)
    client.set_registered_model_alias(racing.NAME, "released", "1")
    client.delete_registered_model_alias(racing.NAME, "previous")
    rebuild(store)

    assert {"released": "2", "previous": "1"} == aliases(store)
    assert [("1", "release"), ("2", "release")] == promotions(store)


@pytest.mark.slow
def test_a_model_from_before_promotions_were_kept_has_its_aliases_as_history(store):
    run_all(store, run("e1"))
    run_all(store, run("e2"), b"c,d\n")
    client = connect(store.tracking_uri)
    for number in (1, 2):
        client.delete_registered_model_tag(racing.NAME, f"promotion.{number:06}")
    assert [("1", "release"), ("2", "release")] == promotions(store)

    run_all(store, run("e3"), b"e,f\n")
    assert [("1", "release"), ("2", "release"), ("3", "release")] == promotions(store)
    assert {"released": "3", "previous": "2"} == aliases(store)
