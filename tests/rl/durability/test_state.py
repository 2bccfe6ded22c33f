"""A state is whole or it is not there; what is not needed any more goes."""

import json
import logging

import pytest

from tasks.durability import states
from tasks.rl import state


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_newest_whole_state_wins(small_phase, number, tmp_path):
    small_phase(tmp_path, 1, 3)
    (tmp_path / "committed/000003/trainer.pt").write_text("4")

    assert 2 == state.restore(tmp_path, number).step
    assert 2 == number.value
    assert ["000002"] == names(tmp_path / "committed")


@pytest.mark.parametrize("damage", ["missing", "changed"])
def test_a_state_whose_records_are_not_its_own_is_not_whole(
    small_phase, number, tmp_path, caplog, damage
):
    small_phase(tmp_path, 1, 3)
    path = tmp_path / "steps/000003.json"
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes().replace(b'"step":3', b'"step":2'))

    assert 2 == state.restore(tmp_path, number).step
    assert "000003 is damaged and skipped" in caplog.text


def test_a_phase_without_a_whole_state_starts_again(small_phase, number, tmp_path):
    small_phase(tmp_path, 1, 2)
    (tmp_path / "steps/000001.json").unlink()

    assert state.RunState() == state.restore(tmp_path, number)
    assert () == state.past_code(tmp_path)


def test_what_a_killed_process_left_half_written_is_removed(small_phase, number, tmp_path, caplog):
    small_phase(tmp_path, 1, 2)
    before = {path: names(tmp_path / path) for path in ("committed", "steps")}
    (tmp_path / "committed/.000003.abc").mkdir()
    (tmp_path / "committed/.000003.abc/trainer.pt").write_text("half")
    (tmp_path / "steps/.000003.json.abc").write_text("half")

    with caplog.at_level(logging.WARNING):
        assert 2 == state.restore(tmp_path, number).step
    assert before == {path: names(tmp_path / path) for path in ("committed", "steps")}
    assert "" == caplog.text


def test_a_record_is_hashed_once_however_many_states_name_it(small_phase, tmp_path):
    small_phase(tmp_path, 1, 2)
    (tmp_path / "steps/000001.json").write_bytes(b"not read again")
    small_phase(tmp_path, 3, 3)
    digests = [
        json.loads((tmp_path / f"committed/00000{step}" / states.RECORDS_FILE).read_bytes())
        for step in (2, 3)
    ]

    assert {"000001.json", "000002.json", "000003.json"} == digests[1].keys()
    assert digests[0].items() < digests[1].items()
