import dataclasses
import itertools
import threading

import numpy as np
import pytest

from data_schemas.pass_rates import Band, GradedProblem
from tasks.algorithms.routing import route_digest
from tasks.durability import states
from tasks.errors import DataError
from tasks.rl import step_snapshot
from tasks.rl.codec import pack
from tasks.rl.phase import finish, train
from tasks.rl.replay.recompute import compare


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("phase")


@pytest.fixture
def phase(phase_in, scorer, folder):
    """Four steps on graded problems, done once for all tests."""
    phase = phase_in(folder)
    found = {"pass_rate": 0.5, "mean_tokens": 5.0, "band": Band.MEDIUM}
    graded = tuple(GradedProblem(**(dict(problem) | found)) for problem in phase.problems)
    phase = dataclasses.replace(phase, problems=graded)
    if not (folder / step_snapshot.FOLDER).exists():
        list(train(phase, scorer()))
    return phase


def steps(paths) -> list[int]:
    return [int(path.stem) for path in paths]


def test_the_newest_three_and_every_twentieth_are_kept(tmp_path):
    (tmp_path / step_snapshot.FOLDER).mkdir()
    for step in range(1, 46):
        (tmp_path / step_snapshot.FOLDER / step_snapshot.name_of(step)).touch()

    assert [20, 40, 43, 44, 45] == steps(step_snapshot.find_snapshots(tmp_path, 45))
    assert [20, 39, 40, 41] == steps(step_snapshot.find_snapshots(tmp_path, 41))
    assert [1, 2] == steps(step_snapshot.find_snapshots(tmp_path, 2))


def test_a_phase_keeps_snapshots_next_to_its_state_and_in_its_report(phase, tmp_path):
    (tmp_path / "model").mkdir()
    finish(phase, tmp_path / "model", tmp_path / "report")

    assert [2, 3, 4] == steps(sorted((phase.state / "snapshots").iterdir()))
    for path in (tmp_path / "report/snapshots").iterdir():
        assert (phase.state / "snapshots" / path.name).read_bytes() == path.read_bytes()
    assert [2, 3, 4] == steps(sorted((tmp_path / "report/snapshots").iterdir()))


def test_reading_and_writing_again_gives_the_same_bytes(phase):
    path = phase.state / "snapshots" / step_snapshot.name_of(4)

    assert path.read_bytes() == step_snapshot.encode(step_snapshot.decode(path.read_bytes()))


def test_routes_of_a_large_step_are_digests_but_in_the_snapshots_that_stay(phase, monkeypatch):
    path = phase.state / "snapshots" / step_snapshot.name_of(4)
    read = step_snapshot.decode(path.read_bytes())
    kept = dataclasses.replace(read, gate=read.gate.model_copy(update={"step": 20}))
    monkeypatch.setattr(step_snapshot, "ROUTE_BYTES", 100)
    written = step_snapshot.encode(read)
    small = step_snapshot.decode(written)
    first, other = (one.groups[0].group.rollouts[0].rollout.trace for one in (read, small))

    assert len(written) < len(path.read_bytes())
    assert (len(first.experts_TLK), 0, 0) == other.experts_TLK.shape
    assert route_digest(first) == other.digest
    assert written == step_snapshot.encode(small)
    assert {""} == {one.difference for one in compare(small)}
    assert np.array_equal(
        first.experts_TLK,
        step_snapshot.decode(step_snapshot.encode(kept))
        .groups[0]
        .group.rollouts[0]
        .rollout.trace.experts_TLK,
    )


def test_each_snapshot_starts_from_the_weights_of_the_previous_one(phase):
    two, three = (
        step_snapshot.decode((phase.state / "snapshots" / step_snapshot.name_of(step)).read_bytes())
        for step in (2, 3)
    )

    assert 64 == len(two.weights_after)
    assert two.weights_after == three.weights_before
    assert three.weights_before != three.weights_after


def test_a_resumed_phase_writes_the_same_snapshots(phase, phase_in, scorer, tmp_path):
    # When states are saved is no part of a step.
    cut = phase_in(tmp_path, commit_every=3)
    list(itertools.islice(train(cut, scorer()), 2))
    list(train(cut, scorer()))

    for name in map(step_snapshot.name_of, (2, 3, 4)):
        whole = phase.state / step_snapshot.FOLDER / name
        assert whole.read_bytes() == (tmp_path / step_snapshot.FOLDER / name).read_bytes()


def test_large_snapshots_are_written_beside_the_next_step_and_whole_at_every_commit(
    phase, phase_in, scorer, tmp_path, monkeypatch
):
    monkeypatch.setattr(step_snapshot, "BESIDE_BYTES", 0)
    begun = threading.active_count()
    for record in train(phase_in(tmp_path, commit_every=2), scorer()):
        if record.report.step in {2, 4}:
            name = step_snapshot.name_of(record.report.step)
            whole = phase.state / step_snapshot.FOLDER / name
            assert whole.read_bytes() == (tmp_path / step_snapshot.FOLDER / name).read_bytes()
            assert any(one.name.startswith("snapshot") for one in threading.enumerate())
    assert begun == threading.active_count()


def test_what_stopped_a_snapshot_stops_the_phase_before_its_next_commit(
    phase_in, scorer, tmp_path, monkeypatch
):
    monkeypatch.setattr(step_snapshot, "BESIDE_BYTES", 0)
    (tmp_path / step_snapshot.FOLDER).touch()
    with pytest.raises(FileExistsError):
        list(train(phase_in(tmp_path, commit_every=2), scorer()))
    assert states.newest(tmp_path) == 0


def test_every_sequence_is_in_exactly_one_call_of_the_loss(phase):
    sealed = step_snapshot.decode(
        (phase.state / "snapshots" / step_snapshot.name_of(4)).read_bytes()
    )
    rows = sealed.inputs["call_rows"]

    assert list(range(len(sealed.outputs["tokens_NT"]))) == sorted(rows.tolist())
    assert len(rows) == sealed.inputs["call_sizes"].sum()
    mask_NT = sealed.outputs["response_NT"]
    assert (sealed.inputs["logprobs_NT"][mask_NT] < 0.0).all()
    assert not sealed.inputs["logprobs_NT"][~mask_NT].any()


def test_other_bytes_are_refused():
    with pytest.raises(DataError, match="not a file of packed arrays"):
        step_snapshot.decode(b"nonsense")
    with pytest.raises(DataError, match="not the snapshot of a step"):
        step_snapshot.decode(pack({"a": np.zeros(1)}, {"settings": {}}))
