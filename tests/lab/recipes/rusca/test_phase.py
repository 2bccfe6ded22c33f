"""A phase with a scaffold: gated, recorded, replayed and resumed like any other."""

import json
from dataclasses import replace
from itertools import islice

import pytest

from data_schemas.arrow import read_table
from data_schemas.reports import MismatchDecision
from data_schemas.rl_settings import EngineSettings
from tasks.engines.chat import load_tokenizer
from tasks.lab.recipes.rusca import defence
from tasks.lab.recipes.rusca.settings import Form, Ratio, ScaffoldSettings
from tasks.lab.recipes.rusca.shown import SHOWN_FILE, ShownRow
from tasks.rl import state, step_snapshot
from tasks.rl.phase import Phase, finish, state_folder, train
from tasks.rl.recipe import open_recipe
from tasks.rl.replay.recompute import compare
from tasks.rl.views import responses_of
from tasks.store.manifest import folder_manifest
from tests.slices import sliced

STEPS = 3
SCAFFOLD = ScaffoldSettings(form=Form.USER, switch_at=0.6)
"""The first two of three steps show criteria."""


@pytest.fixture
def phase(settings, rubrics, tiny_moe):
    def make(folder, sampling=None, **changes):
        asked = settings.model_copy(update={"steps": STEPS} | (sampling or {}))
        recipe = open_recipe(SCAFFOLD.model_copy(update=changes), asked)
        return Phase(asked, tiny_moe, rubrics, folder, "code", recipe=recipe)

    return make


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    return tmp_path_factory.mktemp("scaffolded")


@pytest.fixture
def records(phase, scorer, done):
    """The records of a whole phase, run once for all tests."""
    if not list(done.iterdir()):
        list(train(phase(done), scorer()))
    return list(state.read_steps(done, STEPS))


def snapshots(folder):
    paths = step_snapshot.find_snapshots(folder, STEPS)
    return [step_snapshot.decode(path.read_bytes()) for path in paths]


def test_no_step_is_stopped_or_corrected_although_the_prompts_are_far_apart(records):
    apart = [one.report.metrics["scaffold/k3_between_prompts"] for one in records]

    assert [MismatchDecision.PROCEED] * STEPS == [one.gate.decision for one in records]
    assert max(one.gate.k3 for one in records) < 1e-6
    assert apart[0] > 1e-6
    assert 0.0 == apart[-1]


def test_every_response_has_a_row_with_what_it_was_shown_and_the_switch_ends_it(records):
    for step, record in enumerate(records, start=1):
        shown = [len(row["shown"]) for row in record.rows]
        assert len(shown) == sum(row.rollouts for row in record.ledger)
        assert {3} == {row["criteria"] for row in record.rows}
        assert ([0, 1, 2, 3] if step < STEPS else [0]) == sorted(set(shown))
        generated = sum(row.generated_tokens for row in record.ledger)
        assert generated == record.report.metrics["rollout/engine_tokens"]


def test_a_snapshot_replays_to_the_same_bytes_with_what_was_shown(records, done):
    first, *_, last = snapshots(done)

    assert "drawn_logprobs_NT" in first.inputs
    assert "drawn_logprobs_NT" not in last.inputs
    assert any(item.rollout.shown for entry in first.groups for item in entry.group.rollouts)
    for snapshot in (first, last):
        assert not [one.name for one in compare(snapshot) if one.difference]


@pytest.mark.parametrize(
    "ratio", sliced([Ratio.IMPORTANCE, Ratio.SCAFFOLDED], lambda one: one is Ratio.IMPORTANCE)
)
def test_the_other_ratios_train_and_replay_as_well(phase, scorer, tmp_path, ratio):
    (record,) = islice(train(phase(tmp_path, ratio=ratio), scorer()), 1)

    (snapshot,) = snapshots(tmp_path)
    assert record.gate.k3 < 1e-6
    assert not [one.name for one in compare(snapshot) if one.difference]


def test_the_sampling_of_the_paper_is_compared_and_trained_over_what_was_drawn_from(
    phase, scorer, tmp_path
):
    sampling = {"temperature": 0.7, "top_p": 0.8, "top_k": 20}
    (record,) = islice(train(phase(tmp_path, sampling), scorer()), 1)

    (snapshot,) = snapshots(tmp_path)
    assert record.gate.k3 < 1e-6
    assert 1.0 < record.report.metrics["rollout/kept_tokens"] <= 20.0
    assert any(item.rollout.shown for entry in snapshot.groups for item in entry.group.rollouts)
    assert not [one.name for one in compare(snapshot) if one.difference]


def test_a_phase_that_stopped_while_criteria_are_shown_ends_in_the_same_bytes(
    records, phase, scorer, done, tmp_path
):
    list(islice(train(phase(tmp_path), scorer()), 1))

    list(train(phase(tmp_path), scorer()))

    assert folder_manifest(done / "snapshots") == folder_manifest(tmp_path / "snapshots")
    again = list(state.read_steps(tmp_path, STEPS))
    assert [one.rows for one in records] == [one.rows for one in again]


@pytest.mark.slow
def test_responses_in_segments_and_ahead_of_their_step_keep_their_prompts(phase, scorer, tmp_path):
    engines = EngineSettings(segment_tokens=3, staleness=1)
    asked = phase(tmp_path)
    cut = Phase(
        asked.settings.model_copy(update={"engines": engines}),
        *(asked.start, asked.problems, tmp_path / "cut", "code"),
        recipe=asked.recipe,
    )
    whole = replace(cut, state=tmp_path / "whole")
    list(islice(train(cut, scorer()), 1))
    list(train(cut, scorer()))
    list(train(whole, scorer()))

    for name in ("cut", "whole"):
        assert max(one.gate.k3 for one in state.read_steps(tmp_path / name, STEPS)) < 0.1
    assert folder_manifest(tmp_path / "cut/snapshots") == folder_manifest(
        tmp_path / "whole/snapshots"
    )


def test_the_report_has_the_rows_and_the_facts(records, phase, done, tmp_path):
    facts = finish(phase(done), tmp_path / "model", tmp_path / "report")

    rows = read_table(tmp_path / "report" / SHOWN_FILE, ShownRow)
    assert [row for record in records for row in record.rows] == [
        row.model_dump(mode="json") for row in rows
    ]
    assert 2 == facts["scaffold_last_step"]
    assert sum(bool(row.shown) for row in rows) == facts["scaffold_responses"]


def test_the_page_of_the_phase_compares_what_the_gate_compared(records, done, tiny_moe):
    first, *_ = snapshots(done)
    found = responses_of(first, load_tokenizer(tiny_moe), 1_000_000)

    gaps = [abs(gap) for group in found.groups for one in group.responses for gap in one.gaps]
    assert gaps
    assert max(gaps) < 1e-3


def test_a_phase_without_a_scaffold_names_none_anywhere(
    settings, rubrics, tiny_moe, scorer, tmp_path
):
    plain = Phase(settings.model_copy(update={"steps": 1}), tiny_moe, rubrics, tmp_path, "code")
    list(train(plain, scorer()))
    finish(plain, tmp_path / "model", tmp_path / "report")

    written = b"".join(path.read_bytes() for path in (tmp_path / "report").rglob("*.*"))
    assert b"scaffold" not in written
    assert b"shown" not in written
    assert not any(b'"shown"' in path.read_bytes() for path in tmp_path.rglob("*.json"))


def test_a_scaffold_has_a_state_of_its_own_whatever_its_code(settings, tmp_path):
    plain, scaffolded, again = (
        state_folder(tmp_path, settings, "start", "problems", recipe=recipe).name
        for recipe in (None, SCAFFOLD, SCAFFOLD.model_copy(update={"code": "changed"}))
    )

    assert plain != scaffolded == again


def test_the_responses_of_a_finished_phase_are_mined_for_what_pays(records, done, tmp_path):
    asked = {entry.group.problem.id for one in snapshots(done) for entry in one.groups}
    rows = tmp_path / "rows.jsonl"

    defence.main([str(done), str(rows)])

    written = [json.loads(line) for line in rows.read_text().splitlines()]
    assert asked == {row["id"] for row in written}
    assert {"rubicon"} == {row["answer"]["aggregation"] for row in written}
