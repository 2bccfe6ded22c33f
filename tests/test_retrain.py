"""Retraining as a whole, on a released base model: promoted, nothing new, only rubbish."""

import json
from contextlib import suppress
from pathlib import Path

import pytest

from data_schemas.prompts import Domain
from data_schemas.rl_settings import RLSettings
from data_schemas.settings import (
    CurationSettings,
    EvaluationSettings,
    GradingSettings,
    ReleaseSettings,
    RetrainSettings,
)
from tasks.audit.walk import audit
from tasks.curation import sample_world
from tasks.curation.task import curate, ingest
from tasks.errors import SettingsError
from tasks.evaluation.task import compare, evaluate
from tasks.foundation.task import ingest_base
from tasks.intake.task import open_store
from tasks.lineage.lookup import Lookup
from tasks.release.task import release
from workflows.retrain import retrain

MODEL = "models:/eachprompt-tiny@released"
CURATION = CurationSettings(held_out_per_suite=3)
EVALUATION = EvaluationSettings(samples=2, max_new_tokens=32)
# One step teaches nothing worth releasing: the gate is opened to reach what lies behind it.
RELEASE = ReleaseSettings(min_gain=-1.0, max_domain_drop=1.0, max_truncated_share=1.0)


def fresh_rows(folder: Path, count: int) -> list[dict[str, object]]:
    """Rows of another sample world, as people would drop them into an inbox."""
    sample_world.generate(9, folder)
    problems = []
    for line in (folder / "problems.jsonl").read_text().splitlines():
        with suppress(ValueError):  # the world has broken rows on purpose
            problems.append(sample_world.problem_from_row(json.loads(line), 64 * "0"))
    drawn = problems[:: len(problems) // count][:count]
    kept = {"domain", "language", "messages", "verifier", "answer"}
    return [problem.model_dump(mode="json", include=kept) for problem in drawn]


def drop(inbox: Path, name: str, rows: list[object]) -> None:
    inbox.mkdir(exist_ok=True)
    (inbox / name).write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def settings(inbox: Path) -> RetrainSettings:
    return RetrainSettings(
        inbox=str(inbox),
        min_rows=8,
        curation=CURATION,
        grading=GradingSettings(samples=4, max_new_tokens=32, drop_at_or_above=1.01),
        rl=RLSettings(
            domains=dict.fromkeys(Domain, 1.0),
            steps=1,
            prompts_per_step=4,
            group_size=4,
            max_new_tokens=32,
        ),
        evaluation=EVALUATION,
        release=RELEASE,
    )


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """A store whose released model is the shipped base itself, without Flyte's cache."""
    folder = tmp_path_factory.mktemp("retrain")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLYTE_LOCAL_CACHE_ENABLED", "false")
        store, execution = open_store(store=str(folder / "runs"), workflow="post_training")
        where = {"store": store, "execution": execution}
        base = ingest_base(path="", name="base", **where)
        raw = ingest(settings=CURATION, **where)
        curated = curate(settings=CURATION, raw=raw, base=base, **where)
        held_out = evaluate(settings=EVALUATION, name="base", model=base, curated=curated, **where)
        progression = compare(settings=EVALUATION, candidate=held_out, parents=[held_out], **where)
        release(settings=RELEASE, candidate=base, progression=progression, **where)
        yield folder, store


def test_new_rows_end_in_a_promoted_model_or_in_a_reason(released):
    folder, store = released
    inbox = folder / "inbox"
    rows = fresh_rows(folder / "elsewhere", 40)
    drop(inbox, "monday.jsonl", [*rows, {"domain": "maths"}])

    page = retrain(settings=settings(inbox), store=store.uri)

    version = Lookup(store.tracking_uri).version(MODEL)
    assert page.endswith(".html")
    assert Path(page).exists()
    assert "2" == version.number
    assert audit(MODEL, store.tracking_uri, store.uri).proved

    again = retrain(settings=settings(inbox), store=store.uri)

    assert again.startswith("Not retrained: nothing new in ")

    drop(inbox, "tuesday.jsonl", [{"domain": "maths"}, *rows[:2]])
    rubbish = retrain(settings=settings(inbox), store=store.uri)

    assert "3 new rows in 1 files, 2 of them valid (schema 1); min_rows asks for 8" in rubbish
    assert version == Lookup(store.tracking_uri).version(MODEL)


def test_without_a_released_model_there_is_nothing_to_retrain(tmp_path):
    with pytest.raises(SettingsError, match="no MLflow store at"):
        retrain(settings=settings(tmp_path), store=str(tmp_path / "runs"))
