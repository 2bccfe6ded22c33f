"""Reuse of earlier responses in a phase: the same bytes as without, for fewer generated tokens."""

import dataclasses
import itertools

import numpy as np
import pytest

from data_schemas.machine_settings import Reuse
from data_schemas.rl_settings import EngineSettings
from tasks.durability import states
from tasks.engines.protocols import Request
from tasks.rl import state, step_snapshot
from tasks.rl.phase import train
from tasks.rl.reuse import EarlierResponses, read_responses, write_responses
from tests.rl.conftest import content_of

STEPS = 4
NEW = EngineSettings(reuse=Reuse.SHARED_NOISE)
REUSED = EngineSettings(reuse=Reuse.PREFIX)


def responses(*texts):
    return tuple(np.array(text, np.int32) for text in texts)


def as_lists(found):
    return {name: [tokens.tolist() for tokens in mine] for name, mine in found.items()}


def test_a_prompt_drawn_again_in_a_step_has_another_stream_and_in_another_step_the_same(problems):
    earlier = EarlierResponses(Reuse.PREFIX, {})
    streams = [earlier.stream(step, problems[0]) for step in (1, 1, 2, 2)]

    assert [problems[0].id, streams[1]] * 2 == streams
    assert streams[0] != streams[1]
    assert earlier.stream(2, problems[1]) == problems[1].id


def test_without_reuse_there_is_no_stream_and_nothing_is_kept(problems, make_rollout):
    earlier = EarlierResponses(Reuse.OFF, {})
    earlier.remember("", [make_rollout()])

    assert "" == earlier.stream(1, problems[0])
    assert {} == earlier.responses()


def test_the_newest_responses_are_the_drafts_of_the_next(make_rollout):
    earlier = EarlierResponses(Reuse.PREFIX, {"p": responses([9], [8])})
    asked = [Request("1.0.0", np.array([1], np.int32), 2)]

    (before,) = earlier.requests("p", asked)
    earlier.remember("p", [make_rollout(0, 3), make_rollout(1, 2)])
    (after,) = earlier.requests("p", asked)

    assert [[9], [8]] == [draft.tolist() for draft in before.drafts]
    assert [[0, 1, 2], [0, 1]] == [draft.tolist() for draft in after.drafts]
    assert "p" == after.stream


def test_a_smaller_group_keeps_the_older_responses_of_the_samples_beyond_it(make_rollout):
    earlier = EarlierResponses(Reuse.PREFIX, {"p": responses([9], [8], [7, 7])})
    earlier.remember("p", [make_rollout(0, 3)])
    later = Request("1.0.0", np.array([1], np.int32), 2, first_sample=1)
    (request,) = earlier.requests("p", [later])

    assert {"p": [[0, 1, 2], [8], [7, 7]]} == as_lists(earlier.responses())
    assert [[8], [7, 7]] == [draft.tolist() for draft in request.drafts]


def test_the_draft_of_a_length_is_reused_where_there_is_no_response():
    asked = [Request(name, np.array([1], np.int32), 2) for name in "ab"]
    asked[1] = dataclasses.replace(asked[1], drafts=responses([1, 2]))
    lengths = responses([5, 6], [7])

    one, two = EarlierResponses(Reuse.PREFIX, {}).with_drafts(asked, lengths)
    anew = EarlierResponses(Reuse.SHARED_NOISE, {}).with_drafts(asked, lengths)

    assert [[5, 6]] == [draft.tolist() for draft in one.drafts]
    assert [[1, 2]] == [draft.tolist() for draft in two.drafts]
    assert asked == anew


def test_responses_are_read_as_they_were_written_and_newer_ones_win(tmp_path):
    old, new = tmp_path / "graded", tmp_path / "phase"
    for folder in (old, new, tmp_path / "other engine"):
        folder.mkdir()
    write_responses(old, {"a": responses([1, 2], []), "b": responses([3])})
    write_responses(new, {"b": responses([4], [5, 6])})

    folders = [old, tmp_path / "other engine", new]
    found = read_responses(Reuse.PREFIX, folders)

    assert {"a": [[1, 2], []], "b": [[4], [5, 6]]} == as_lists(found)
    assert {} == read_responses(Reuse.SHARED_NOISE, folders)


@pytest.fixture
def small(phase_in, problems):
    """Four prompts, three a step: most are drawn again in the next step."""

    def build(folder, engines, **changes):
        phase = phase_in(folder, steps=STEPS, engines=engines, **changes)
        return dataclasses.replace(phase, problems=problems[:4])

    return build


def snapshots(folder):
    paths = sorted((folder / "snapshots").glob("*.npz"))
    return [step_snapshot.decode(path.read_bytes()) for path in paths]


@pytest.mark.slow
@pytest.mark.parametrize("staleness", [0, 1])
def test_a_phase_has_the_same_bytes_with_reuse_and_generates_less(
    small, scorer, tmp_path, staleness
):
    engines = [each.model_copy(update={"staleness": staleness}) for each in (NEW, REUSED)]
    changes = {"learning_rate": 1e-4}
    phases = [small(tmp_path / each.reuse, each, **changes) for each in engines]
    anew, reused = (list(train(phase, scorer())) for phase in phases)

    assert STEPS - 1 == len(snapshots(phases[0].state))  # the newest are kept
    for one, two in zip(*(snapshots(phase.state) for phase in phases), strict=True):
        assert content_of(one) == content_of(two)
    saved = []
    for one, two in zip(anew, reused, strict=True):
        kept = sum(row.reused_tokens for row in two.ledger)
        generated = [sum(row.generated_tokens for row in record.ledger) for record in (one, two)]
        saved.append(kept)
        assert generated[0] == generated[1] + kept
        assert generated[1] == two.report.metrics["rollout/engine_tokens"]
        assert kept == two.report.metrics["rollout/reused_tokens"]
        assert 0 == one.report.metrics["rollout/reused_tokens"]
    assert 0 == saved[0] < sum(saved)


@pytest.mark.slow
def test_a_phase_that_stopped_reuses_the_same_tokens_when_it_goes_on(small, scorer, tmp_path):
    whole, phase = small(tmp_path / "whole", REUSED), small(tmp_path / "stopped", REUSED)
    expected = list(train(whole, scorer()))
    list(itertools.islice(train(phase, scorer()), 2))
    list(train(phase, scorer()))
    found = list(state.read_steps(phase.state, STEPS))

    assert [(r.report, r.ledger) for r in expected] == [(r.report, r.ledger) for r in found]
    assert 0 < sum(row.reused_tokens for record in found for row in record.ledger)
    first, second = (
        state.decode(states.read_file(folder, STEPS, state.INFLIGHT_FILE), whole.problems).collector
        for folder in (whole.state, phase.state)
    )
    assert as_lists(first.responses) == as_lists(second.responses)
    assert first.responses.keys() >= {problem.id for problem in whole.problems}


def test_a_phase_reuses_responses_from_before_it(small, scorer, tmp_path):
    engines = REUSED
    first = small(tmp_path / "first", engines)
    next(iter(train(first, scorer())))
    data = states.read_file(first.state, 1, state.INFLIGHT_FILE)
    before = state.decode(data, first.problems).collector.responses
    again = dataclasses.replace(small(tmp_path / "again", engines), earlier=before)

    record = next(iter(train(again, scorer())))

    # The same policy draws them again, from the first token to the last.
    assert 0 == sum(row.generated_tokens for row in record.ledger)
    assert 0 < record.report.metrics["rollout/verified_tokens"]
    assert content_of(snapshots(first.state)[0]) == content_of(snapshots(again.state)[0])
