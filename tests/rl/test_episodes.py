"""A phase whose responses have several turns: replayed, counted and resumed like any other."""

import random
from itertools import islice

import numpy as np
import pytest

from data_schemas.rows import Domain
from tasks.curation.marketplace.shop import draw_cases
from tasks.durability import states
from tasks.engines.chat import load_tokenizer
from tasks.rl import state, step_snapshot
from tasks.rl.phase import Phase, train
from tasks.rl.views import responses_of
from tasks.store.manifest import folder_manifest
from tasks.training.foundation.base import shipped_base
from tests.gym.environments.conftest import problem_of
from tests.rl.conftest import RuleScorer

STEPS = 2


@pytest.fixture(scope="module")
def tokenizer():
    return load_tokenizer(shipped_base())


@pytest.fixture
def phase(settings):
    """The shipped base sometimes opens a brace, which the shop answers."""
    cases = islice(draw_cases(random.Random(0), problems=True), 8)
    changes = {
        "domains": {Domain.TOOL_USE: 1.0},
        "steps": STEPS,
        "prompts_per_step": 8,
        "group_size": 4,
        "max_new_tokens": 64,
    }
    problems = tuple(problem_of(case, f"shop/{place}") for place, case in enumerate(cases))
    asked = settings.model_copy(update=changes)
    return lambda folder: Phase(asked, shipped_base(), problems, folder, "code")


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    return tmp_path_factory.mktemp("whole")


@pytest.fixture
def records(phase, tokenizer, done):
    """The records of a whole phase, run once for all tests."""
    if states.newest(done) != STEPS:
        list(train(phase(done), RuleScorer(tokenizer)))
    return list(state.read_steps(done, STEPS))


def snapshots(folder):
    paths = step_snapshot.find_snapshots(folder, STEPS)
    return [step_snapshot.decode(path.read_bytes()) for path in paths]


def episodes_of(folder):
    return [
        item.rollout
        for snapshot in snapshots(folder)
        for entry in snapshot.groups
        for item in entry.group.rollouts
        if item.rollout.sampled is not None
    ]


@pytest.mark.slow
def test_the_trainer_recomputes_what_was_sampled_across_turns(records, done):
    assert episodes_of(done)
    for record in records:
        assert record.gate.k3 < 1e-6
        assert 0.0 == record.report.metrics["mismatch/missing_routes"]


def test_only_sampled_tokens_are_counted_as_generated(records, done):
    for record in records:
        generated = sum(row.generated_tokens for row in record.ledger)
        assert record.report.metrics["rollout/engine_tokens"] == generated
    rollouts = episodes_of(done)
    assert all(0.0 == rollout.logprobs[~rollout.sampled].max(initial=0.0) for rollout in rollouts)


def test_the_page_shows_an_answer_without_a_gap_or_an_entropy(records, done, tokenizer):
    for snapshot in snapshots(done):
        views = {
            (group.problem, place): view
            for group in responses_of(snapshot, tokenizer, 1_000_000).groups
            for place, view in enumerate(group.responses)
        }
        for entry in snapshot.groups:
            for place, item in enumerate(entry.group.rollouts):
                view = views[entry.group.problem.id, place]
                if item.rollout.sampled is None or not view.gaps:
                    continue
                heard = ~item.rollout.sampled
                shown = [range(first, end) for first, end in view.environment]
                assert np.flatnonzero(heard).tolist() == [k for run in shown for k in run]
                assert not np.any(np.array(view.gaps)[heard])
                assert not np.any(np.array(view.entropies)[heard])


@pytest.mark.slow
def test_a_phase_that_stopped_between_two_steps_ends_in_the_same_bytes(
    records, phase, tokenizer, done, tmp_path
):
    next(iter(train(phase(tmp_path), RuleScorer(tokenizer))))

    list(train(phase(tmp_path), RuleScorer(tokenizer)))

    files = [step_snapshot.FOLDER]
    assert [folder_manifest(done / name) for name in files] == [
        folder_manifest(tmp_path / name) for name in files
    ]
    assert [r.report for r in records] == [r.report for r in state.read_steps(tmp_path, STEPS)]
