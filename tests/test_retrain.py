"""Retraining as a whole, on a released base model: promoted, nothing new, only rubbish."""

import gc
import html
import json
import re
import shlex
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from data_schemas.intake import FileStatus
from data_schemas.reports import SLICE_KINDS
from data_schemas.rl_settings import RLSettings
from data_schemas.rows import Domain
from data_schemas.settings import (
    CurationSettings,
    EvaluationSettings,
    GradingSettings,
    ReleaseSettings,
    RetrainSettings,
)
from tasks.curation import sample_world
from tasks.errors import SettingsError
from tasks.provenance.audit.walk import audit
from tasks.provenance.lineage.lookup import Lookup
from tasks.provenance.lineage.statements import chain
from tasks.retraining import approve
from tasks.retraining.processed import load
from tasks.stages.curation import curate, ingest
from tasks.stages.evaluation import compare, evaluate
from tasks.stages.foundation import ingest_base
from tasks.stages.opening import open_store
from tasks.stages.release import release
from workflows.retrain import retrain

# flytekit leaves the folder of a task's checkpoint to the garbage collector, which warns. It runs
# at the end of this module, so that the warnings fail no other test and not the exit of pytest.
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
MODEL = "models:/eachprompt-tiny@released"
CURATION = CurationSettings(held_out_per_suite=3)
EVALUATION = EvaluationSettings(samples=2, max_new_tokens=32)
# One step teaches nothing worth releasing: the gate is opened to reach what lies behind it.
RELEASE = ReleaseSettings(
    min_gain=-1.0, may_lose=dict.fromkeys(SLICE_KINDS, 1.0), max_truncated_share=1.0
)


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


def with_solutions(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """The same rows with a response: right where the answer is one value, else wrong."""
    answers = [json.loads(str(row["answer"])) for row in rows]
    return [
        row | {"reasoning": "I know it.", "response": str(answer.get("value", "I do not know"))}
        for row, answer in zip(rows, answers, strict=True)
    ]


def drop(inbox: Path, name: str, rows: Sequence[object]) -> None:
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


@pytest.fixture(scope="module", autouse=True)
def _collect_garbage_here():
    yield
    gc.collect()


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
        curated = curate(settings=CURATION, raw=raw, base=base, parts=[], **where)
        held_out = evaluate(settings=EVALUATION, name="base", model=base, curated=curated, **where)
        earlier = evaluate(settings=EVALUATION, name="merged", model=base, curated=curated, **where)
        progression = compare(settings=EVALUATION, candidate=held_out, parents=[earlier], **where)
        releasing = {"settings": RELEASE, "candidate": base, "progression": progression, **where}
        release(**releasing)
        yield folder, store, releasing


def released_version(store):
    return Lookup(store.tracking_uri).version(MODEL)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_new_rows_end_in_a_promoted_model_or_in_a_reason(released, monkeypatch):
    folder, store, releasing = released
    inbox = folder / "inbox"
    rows = fresh_rows(folder / "elsewhere", 80)
    first = released_version(store).tags["statement"]
    drop(inbox, "new.jsonl", [row | {"language": "fr"} for row in rows[60:76]])

    held = retrain(settings=settings(inbox), store=store.uri)

    assert "needs people: new.jsonl: most of the problems have a value that no problem" in held
    command = held.partition("Say yes or no: ")[2].partition(", or eachprompt reject")[0]
    words = shlex.split(command.replace("NAME", "ann").replace("...", "we sell there now"))
    assert ["eachprompt", "approve", "new.jsonl", "--inbox", str(inbox)] == words[:5]
    page = Path(held.rpartition(" ")[2]).read_text()
    assert command in html.unescape(re.sub("<[^>]+>", "", page))
    (inbox / "new.jsonl").rename(inbox / "renamed.jsonl")
    drop(inbox, "monday.jsonl", [*rows[:40], {"domain": "maths"}])
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store.tracking_uri)
    approve.approve(words[2:])

    promoted = retrain(settings=settings(inbox), store=store.uri)

    version = released_version(store)
    assert promoted.startswith("Promoted: version ")
    assert "trained on 2 files (monday.jsonl, renamed.jsonl). RL trained on " in promoted
    assert "old problems. Why it was trained: 57 rows in 2 files; " in promoted
    assert "Drift: " in promoted
    assert "Graded: of " in promoted
    assert Path(promoted.rpartition(" ")[2]).exists()
    assert "2" == version.number
    assert audit(MODEL, store.tracking_uri, store.uri).proved
    statements = chain(store.uri, [version.tags["statement"]]).values()
    assert "approve" in {statement.stage for statement in statements}

    again = retrain(settings=settings(inbox), store=store.uri)

    said, _, page = again.rpartition(" Page: ")
    assert f"Not retrained: nothing new in {inbox}." == said
    assert "nothing new in" in Path(page).read_text()

    # Killed after the release and before its files were recorded.
    for path in Path(store.uri, "inboxes").glob("*.json"):
        path.unlink()
    known = retrain(settings=settings(inbox), store=store.uri)

    assert "problems are duplicates of what the released model was trained or" in known
    assert [FileStatus.SKIPPED] * 2 == [file.status for file in load(store.uri, str(inbox)).files]

    drop(inbox, "tuesday.jsonl", [{"domain": "maths"}, *rows[:2]])
    rubbish = retrain(settings=settings(inbox), store=store.uri)

    assert "3 rows in 1 file; not usable: missing_field 1" in rubbish
    assert "min_rows asks for 8" in rubbish
    assert version == released_version(store)

    # A run that began before the first one was promoted.
    release(**releasing, replaces=first)

    assert version == released_version(store)


@pytest.mark.slow
def test_rows_of_a_refused_model_are_kept_for_the_next_new_file(released):
    folder, store, _ = released
    inbox = folder / "strict"
    rows = with_solutions(fresh_rows(folder / "other", 80)[40:])
    drop(inbox, "monday.jsonl", rows)
    strict = settings(inbox).model_copy(
        update={"min_rows": 4, "release": RELEASE.model_copy(update={"min_gain": 1.0})}
    )
    before = released_version(store)

    refused = retrain(settings=strict, store=store.uri)

    assert (
        "Refused by the release gate: a model trained on 1 file (monday.jsonl), because " in refused
    )
    assert "Its rows are used again with the next new file." in refused
    assert "wrong_demonstration " in refused
    assert "SFT + RL: " in refused
    assert before == released_version(store)
    alone = retrain(settings=strict, store=store.uri)
    assert "nothing new in" in alone
    assert "1 file of refused models are kept and used with the next new one" in alone
    drop(inbox, "tuesday.jsonl", [{"domain": "maths"}])
    waiting = retrain(
        settings=strict.model_copy(update={"min_rows": 1000}), inbox=str(inbox), store=store.uri
    )
    assert "rows in 2 files, 1 of them used again after a refused model" in waiting


def test_settings_that_cannot_run_are_refused_before_any_work(tmp_path):
    judge = {"kind": "model", "address": str(tmp_path / "none")}
    given = settings(tmp_path).model_dump(mode="json") | {"evaluation": {"judge": judge}}
    with pytest.raises(SettingsError, match=r"evaluation\.judge\.address: .* is not a folder"):
        retrain(settings=RetrainSettings.model_validate(given), store=str(tmp_path / "runs"))

    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
def test_without_a_released_model_there_is_nothing_to_retrain(tmp_path):
    with pytest.raises(SettingsError, match="nothing was released as "):
        retrain(settings=settings(tmp_path), store=str(tmp_path / "runs"))
