"""The mismatch over steps of RL: what is trained, tabled and drawn."""

import json

import pytest

from data_schemas.machine_settings import Precision, RolloutKind, TrainerKind
from data_schemas.reports import GateRecord
from data_schemas.rl_settings import RouterReplay
from tasks.errors import SettingsError
from tasks.lab.study.mismatch import drift
from tasks.lab.study.mismatch.numerics import real_engines
from tests.records import filled


def gate(step: int, k3: float) -> GateRecord:
    return filled(GateRecord, step=step, k3=k3, mean_abs_logprob=10 * k3)


COURSE = {
    RouterReplay.OFF: [gate(step, 1e-4 * step) for step in range(1, 11)],
    RouterReplay.R3: [gate(step, 0.0) for step in range(1, 11)],
}


def test_phases_differ_in_nothing_but_replay():
    engines = real_engines(Precision.BF16, Precision.FP32)
    off, r3 = (
        drift.settings_of(engines, replay, steps=3, prompts=2, tokens=8)
        for replay in (RouterReplay.OFF, RouterReplay.R3)
    )

    assert off == r3.model_copy(update={"router_replay": RouterReplay.OFF})
    assert (RolloutKind.VLLM, TrainerKind.MEGATRON) == (off.engines.rollout, off.engines.trainer)


def test_the_table_has_the_first_and_the_last_fifth():
    table = drift.drift_table(COURSE)
    rows = zip(*(column.cells for column in table.columns), strict=True)

    first = next(iter(rows))
    assert ("off", "10", "1.50e-04", "9.50e-04") == first[:4]
    assert ("5.50e-04", "5.50e-04", "1.00e-03", "5.50e-03") == first[4:8]


def test_equal_records_give_an_equal_picture_even_where_nothing_differs():
    one, other = (drift.picture(COURSE, "title") for _ in range(2))

    assert one == other
    assert one.startswith(b"\x89PNG")


@pytest.mark.slow
def test_a_short_run_is_trained_drawn_and_taken_up_again(tmp_path, capsys):
    command = ["--steps", "1", "--prompts", "2", "--tokens", "8", "--out", str(tmp_path / "out")]

    drift.main(command)
    assert "off: no collapse" in capsys.readouterr().out
    kept = json.loads((tmp_path / "out" / "drift.json").read_text())
    drift.main(command)

    assert {"off", "r3"} == set(kept)
    assert [1] == [record["step"] for record in kept["r3"]]
    assert json.loads((tmp_path / "out" / "drift.json").read_text()) == kept
    assert (tmp_path / "out" / "drift.png").stat().st_size > 1000
    assert (tmp_path / "out" / "embedded-bf16-fp32-r3" / "model" / "config.json").is_file()


@pytest.mark.parametrize("rate", ["0", "-1", "nan", "2", "fast"])
def test_a_learning_rate_outside_of_its_range_is_refused_by_name(rate, capsys):
    with pytest.raises(SystemExit):
        drift.main(["--learning-rate", rate])

    assert "--learning-rate" in capsys.readouterr().err


def test_a_model_that_is_not_there_is_named(tmp_path):
    with pytest.raises(SettingsError, match="/nowhere"):
        drift.main(["--model", "/nowhere", "--out", str(tmp_path / "out")])
