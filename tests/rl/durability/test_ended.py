"""Responses that ended before their step was broken off are not generated a second time."""

import dataclasses
import shutil
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from data_schemas.machine_settings import RolloutKind
from data_schemas.rl_settings import EngineSettings
from tasks.durability.upload import Uploader, fetch_newest
from tasks.engines.protocols import EngineCounters, Request, Sampling
from tasks.engines.select import open_rollout
from tasks.errors import TamperError
from tasks.rl.ended import DurableRolloutEngine, name_of, read_ended, write_ended
from tasks.rl.phase import train
from tasks.store.interface import store_at
from tests.rl.conftest import rollout
from tests.rl.durability.test_resume import SMALL, outcome

LARGER = SMALL | {"prompts_per_step": 3, "engines": EngineSettings(rollout=RolloutKind.VLLM)}
"""In a process of its own as far as a phase knows."""
SAMPLING = Sampling(max_new_tokens=8, temperature=1.0, seed=0)


class OneByOne:
    """The embedded engine, one response at a time, so that no other one is in its batch."""

    def __init__(self, folder: Path, lose_after: int = 0) -> None:
        self._inner = open_rollout(EngineSettings(), folder)
        self._left = lose_after

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def generate(self, requests, sampling):
        for request in requests:
            for sample in range(request.first_sample, request.first_sample + request.num_samples):
                one = dataclasses.replace(request, first_sample=sample, num_samples=1)
                (found,) = self._inner.generate([one], sampling)
                yield found
                self._left -= 1
                if self._left == 0:
                    raise ConnectionError("the node is lost")


@pytest.fixture
def broken_off(phase_in, scorer, tmp_path):
    """The folder of a whole run, and of one whose node is lost in its second step's rollouts."""
    whole, lost = tmp_path / "whole", tmp_path / "lost"
    list(train(phase_in(whole, **LARGER), scorer(), open_engine=lambda _, f: OneByOne(f)))
    engines = []

    def losing(_, folder):
        engines.append(OneByOne(folder, lose_after=6 + 4))
        return engines[-1]

    with pytest.raises(ConnectionError):
        list(train(phase_in(lost, **LARGER), scorer(), open_engine=losing))
    return whole, lost, engines[0].counters.sequences


def resumed(phase, judge):
    """Go on; return how many responses were generated."""
    engines = []

    def opened(_, folder):
        engines.append(OneByOne(folder))
        return engines[-1]

    list(train(phase, judge, open_engine=opened))
    return engines[0].counters.sequences


@pytest.mark.slow
def test_a_node_lost_while_a_step_decodes_loses_no_response_that_had_ended(
    phase_in, scorer, broken_off, caplog
):
    whole, lost, generated = broken_off
    assert [path.name[:6] for path in (lost / "ended").glob("*")] == ["000001"]
    rest = resumed(phase_in(lost, **LARGER), scorer())

    assert "step 2 goes on with 4 responses that had ended" in caplog.text
    assert outcome(whole) == outcome(lost)
    assert generated + rest == 3 * 6
    assert not list((lost / "ended").glob("*"))


@pytest.mark.slow
def test_another_machine_goes_on_with_them(phase_in, scorer, broken_off, tmp_path):
    whole, lost, generated = broken_off
    place = str(tmp_path / "store")
    uploader = Uploader(lost, store_at(place))
    uploader.notify()
    assert uploader.flush(60.0)
    uploader.close()
    other = tmp_path / "elsewhere" / lost.name

    assert 1 == fetch_newest(place, other)
    assert generated + resumed(phase_in(other, **LARGER), scorer()) == 3 * 6
    assert outcome(whole) == outcome(other)


@pytest.mark.slow
def test_a_damaged_part_and_one_of_other_weights_are_drawn_again(
    phase_in, scorer, broken_off, tmp_path, caplog
):
    whole, lost, _ = broken_off
    (part,) = (lost / "ended").glob("*")
    damaged = tmp_path / "damaged" / lost.name
    shutil.copytree(lost, damaged)
    with (damaged / "ended" / part.name / "state.npz").open("ab") as stream:
        stream.write(b"x")
    other = tmp_path / "other" / lost.name
    shutil.copytree(lost, other)
    with (other / "committed/000001/MANIFEST.json").open("ab") as stream:
        stream.write(b" ")

    assert not read_ended(damaged, 1)
    assert not read_ended(other, 1)
    assert 2 == caplog.text.count("its responses are drawn again")
    assert 2 * 6 == resumed(phase_in(damaged, **LARGER), scorer())
    assert outcome(whole) == outcome(damaged)


def test_what_another_work_signed_is_refused(broken_off, tmp_path):
    _, lost, _ = broken_off
    other = tmp_path / "other" / "work"
    shutil.copytree(lost, other)

    with pytest.raises(TamperError):
        read_ended(other, 1)


def test_what_the_gate_stopped_is_drawn_again(broken_off, tmp_path):
    _, lost, _ = broken_off
    notice = lost / "steps/pause-000002.json"
    notice.write_bytes(b"{}")

    assert not read_ended(lost, 1)
    assert not list((lost / "ended").glob("*"))


class Scripted:
    """Responses by problem and sample, and a count of them."""

    policy_version, num_experts = 0, 2

    def __init__(self) -> None:
        self.asked: list[Request] = []
        self.counters = EngineCounters()

    def generate(self, requests, sampling):
        for request in requests:
            self.asked.append(request)
            for sample in range(request.first_sample, request.first_sample + request.num_samples):
                self.counters = dataclasses.replace(
                    self.counters, sequences=self.counters.sequences + 1
                )
                yield rollout(sample, problem_id=request.problem_id, policy_version=0)

    def close(self) -> None:
        pass


def request(name: str, samples: int, **changes: object) -> Request:
    return Request(name, np.array([1, 2], dtype=np.int32), samples, **changes)


def test_only_the_samples_that_are_missing_are_asked_for(tmp_path):
    asked = request("p", 5)
    kept = {name_of(asked, sample, SAMPLING): rollout(sample) for sample in (1, 4)}
    write_ended(tmp_path, 0, kept)
    engine = Scripted()
    with closing(DurableRolloutEngine(engine, tmp_path)) as keeping:
        found = list(keeping.generate([asked], SAMPLING))
        assert 5 == keeping.counters.sequences

    assert sorted(one.sample for one in found) == [0, 1, 2, 3, 4]
    assert [(0, 1), (2, 2)] == [(one.first_sample, one.num_samples) for one in engine.asked]


@pytest.mark.parametrize(
    ("changed", "sampling"),
    [
        (request("q", 1), SAMPLING),
        (request("p", 1, response_tokens=np.array([7], dtype=np.int32)), SAMPLING),
        (Request("p", np.array([1, 3], dtype=np.int32), 1), SAMPLING),
        (request("p", 1), dataclasses.replace(SAMPLING, temperature=0.9)),
        (request("p", 1), dataclasses.replace(SAMPLING, seed=1)),
    ],
)
def test_a_response_answers_only_what_it_was_asked_with(tmp_path, changed, sampling):
    write_ended(tmp_path, 0, {name_of(request("p", 1), 0, SAMPLING): rollout(0)})
    engine = Scripted()
    with closing(DurableRolloutEngine(engine, tmp_path)) as keeping:
        list(keeping.generate([changed], sampling))

    assert engine.asked == [changed]


def test_what_ends_is_written_while_others_decode(tmp_path):
    keeping = DurableRolloutEngine(Scripted(), tmp_path, every_s=0.0)
    running = keeping.generate([request("p", 3)], SAMPLING)
    for _ in range(3):
        next(running)
    keeping._settle()

    assert 3 == len(read_ended(tmp_path, 0))
    running.close()
    keeping.close()


def test_calls_that_cut_responses_keep_nothing(tmp_path):
    with closing(DurableRolloutEngine(Scripted(), tmp_path, every_s=0.0)) as keeping:
        for changes in ({"segment_tokens": 2}, {"enough": 1}):
            list(keeping.generate([request("p", 3)], dataclasses.replace(SAMPLING, **changes)))

    assert not (tmp_path / "ended").exists()
