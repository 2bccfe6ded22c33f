"""The memory budget as it is typed, and that the layouts of the presets fit their GPUs."""

import pytest

from data_schemas import presets
from tasks.capacity import command
from tasks.capacity.memory import budget
from tasks.capacity.table import HEADROOM


@pytest.mark.parametrize("name", command.PRESETS)
def test_the_layout_of_a_preset_fits_its_gpus(name):
    preset, model, gpus = command.PRESETS[name]
    for phase in (preset.rl_one, preset.rl_two):
        engines = phase.engines
        found = budget(model, engines.layout, engines.precision, command.work_of(preset), gpus=gpus)

        assert found.fits(HEADROOM), (found.phases, found.rollout.cached_tokens)


def test_a_preset_is_printed_with_what_is_left(capsys):
    assert 0 == command.main(["full_scale"])

    printed = capsys.readouterr().out
    assert "245.3B parameters, 71.4B active, on 256 GPUs" in printed
    assert "fits" in printed


def test_options_change_what_a_preset_brings(capsys):
    assert 1 == command.main(["full_scale", "--gpu-gib", "39"])

    assert "does not fit" in capsys.readouterr().out


def test_a_model_directory_is_measured_by_its_config(tiny_moe, capsys):
    command = [str(tiny_moe), "--prompt", "32", "--response", "32", "--sequences", "4"]

    assert 0 == command.main(command)
    assert "parameters" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["nowhere"], "is neither a folder nor one of full_scale, single_node, compass_thinker"),
        (["full_scale", "--layout", '{"tensors": 2}'], "tensors"),
        (["full_scale", "--layout", '{"pipeline": 7}'], "multiple"),
    ],
    ids=["no such model", "no such setting", "not divisible"],
)
def test_what_makes_no_sense_is_refused_with_the_reason(command, message, capsys):
    assert 1 == command.main(command)

    assert message in " ".join(capsys.readouterr().out.split())


def test_the_sources_of_work_are_the_larger_phase():
    work = command.work_of(presets.FULL_SCALE)

    assert (1024, 32_768, 4096) == (work.prompt_tokens, work.response_tokens, work.sequences)
