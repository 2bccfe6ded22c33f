"""Every process has its rank, and impossible layouts are refused before anything is built."""

import os
import re

import pytest
from torch import distributed

pytest.importorskip("megatron.core.models.gpt.gpt_layer_specs")

from data_schemas.machine_settings import LayoutSettings
from tasks.engines.trainer_megatron import parallel
from tasks.errors import SettingsError
from tests.engines.trainer_megatron.gloo_world import run_world

pytestmark = pytest.mark.engines

ALONE = {
    "rank": 0,
    "tensor_rank": 0,
    "pipeline_rank": 0,
    "expert_rank": 0,
    "data_rank": 0,
    "data": 1,
}


def place(layout: LayoutSettings) -> dict[str, int]:
    """Sizes and numbers of this rank, asked for twice."""
    ranks = parallel.initialise(layout)
    assert ranks == parallel.initialise(layout)
    names = ("rank", "tensor_rank", "pipeline_rank", "expert_rank", "data_rank", "data")
    return {name: getattr(ranks, name) for name in names}


def refusal(*layouts: LayoutSettings) -> str:
    """Return the error message for the last of these layouts."""
    for layout in layouts[:-1]:
        parallel.initialise(layout)
    with pytest.raises(SettingsError) as refused:
        parallel.initialise(layouts[-1])
    return str(refused.value)


def forget_torchrun() -> None:
    """Make this rank a process of its own."""
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        del os.environ[name]


def place_without_torchrun() -> dict[str, int]:
    """The same in a process that nobody gave a rank."""
    forget_torchrun()
    return place(LayoutSettings())


def place_after_a_closed_world() -> dict[str, int]:
    """The same after another engine closed the process group in between."""
    forget_torchrun()
    parallel.initialise(LayoutSettings())
    distributed.destroy_process_group()
    return place(LayoutSettings())


def test_ranks_count_tensor_first_then_data_then_stages():
    found = run_world(place, 4, LayoutSettings(tensor=2, pipeline=2, expert=2))

    assert [0, 1, 0, 1] == [rank["tensor_rank"] for rank in found]
    assert [0, 0, 1, 1] == [rank["pipeline_rank"] for rank in found]
    assert [0, 1, 0, 1] == [rank["expert_rank"] for rank in found]
    assert [1, 1, 1, 1] == [rank["data"] for rank in found]


def test_experts_are_spread_over_data_parallel_ranks_too():
    found = run_world(place, 4, LayoutSettings(tensor=2, expert=4))

    assert [0, 1, 2, 3] == [rank["expert_rank"] for rank in found]
    assert [0, 0, 1, 1] == [rank["data_rank"] for rank in found]


def test_a_process_without_torchrun_is_a_world_of_its_own():
    assert [ALONE] == run_world(place_without_torchrun, 1)


def test_groups_of_a_world_that_was_closed_are_made_anew():
    assert [ALONE] == run_world(place_after_a_closed_world, 1)


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        (LayoutSettings(tensor=2), "tensor x pipeline x context is 2.*the 1 processes"),
        (LayoutSettings(expert=2), "expert x pipeline is 2.*the 1 processes"),
        (LayoutSettings(context=2), "tensor x pipeline x context is 2.*the 1 processes"),
    ],
)
def test_layouts_that_do_not_fit_the_world_are_refused(layout, message):
    (said,) = run_world(refusal, 1, layout)

    assert re.search(message, said)


def test_a_process_keeps_the_layout_it_began_with():
    said = run_world(refusal, 2, LayoutSettings(tensor=2), LayoutSettings(pipeline=2))

    assert 2 == len(said)
    assert all("one process has one layout" in one for one in said)


def test_a_rank_that_fails_shows_its_traceback():
    with pytest.raises(AssertionError, match=r"rank 0: (?s:.*)ZeroDivisionError"):
        run_world(divmod, 1, 1, 0)
