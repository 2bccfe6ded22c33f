"""Two real processes of one stage, see scenarios.py; started once for all tests."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from data_schemas.machine_settings import LayoutSettings, MachineSettings, RolloutKind, TrainerKind
from data_schemas.rl_settings import EngineSettings
from data_schemas.rollouts import Rollout, RouterTrace, StopReason
from tasks.engines.protocols import Request
from tasks.engines.select import require_fit
from tasks.engines.team.controller import current
from tasks.engines.team.member import replicas
from tasks.engines.team.rollout import checked, spread_requests
from tasks.errors import EngineError, SettingsError
from tests.processes import run_process

SCRIPT = Path(__file__).with_name("scenarios.py")


@pytest.fixture(scope="module", params=[pytest.param("", marks=pytest.mark.slow)])
def found(tiny_moe, tmp_path_factory):
    return run_scenarios(tiny_moe, tmp_path_factory.mktemp("team"))


def run_scenarios(model, out, *names):
    root = str(SCRIPT.parents[3])
    run_process(
        [sys.executable, SCRIPT, model, out, *names],
        variables={"PYTHONPATH": root, "OMP_NUM_THREADS": "1"},
    )
    return json.loads((out / "found.json").read_text())


def returned(found, name):
    assert "returned" in found[name], found[name]
    assert found[name]["returned"]["1"] is None  # rank 0's value is the stage's
    return found[name]["returned"]["0"]


def test_answers_do_not_depend_on_the_number_of_replicas(found):
    one = returned(found, "rolled_out")

    assert one["same"] is True
    assert one["logprobs"] < 1e-5


def test_every_request_is_answered_once_and_counted_once(found):
    one = returned(found, "rolled_out")

    # Twice all twelve, once by a caller who stopped listening, and two more.
    assert 26 == one["sequences"]
    assert one["tokens"][0] == one["tokens"][1]
    assert 2 == one["again"]
    assert one["slots"][0] == 2 * one["slots"][1]


def test_weights_of_another_trainer_are_sent_to_every_replica(found):
    one = returned(found, "rolled_out")

    assert 1 == len(set(one["digests"]))
    assert [7] == one["versions"]
    assert one["probe"] < 1e-5


def test_the_teams_own_trainer_feeds_every_engine_in_place(found):
    one = returned(found, "trained")

    assert 1 == len(set(one["digests"]))
    assert 1 == one["version"]


def test_the_calls_of_a_loss_come_together_from_all_ranks(found):
    one = returned(found, "trained")

    assert [0, 1, 2, 3, 4] == one["rows"]
    assert [-9.0, -10.0, -11.0] == one["logprobs"]["3"]
    assert -105.0 == one["loss"]


def test_every_rank_makes_the_trainers_calls(found):
    one = returned(found, "trained")

    assert one["doubled"] is True
    assert ["model-0", "model-1", "part-0", "part-1"] == one["files"]


def test_whoever_stops_reading_weights_leaves_the_team_in_step(found):
    assert "model.embed_tokens.weight" == returned(found, "trained")["first"]


def test_engines_of_their_own_roll_out_while_the_trainer_works(found):
    one = returned(found, "async_group")

    assert 12 == one["answers"]
    assert "while the team is busy" in one["refused"]


def test_only_the_first_rank_of_a_tensor_parallel_replica_replies(found):
    one = returned(found, "grouped")

    assert {"answers": 12, "sequences": 12} == one


def test_a_shared_queue_deals_by_tokens_so_slow_replicas_change_no_byte(found):
    one = returned(found, "shared_queue")

    assert one["same_bytes"] is True
    assert one["same_tokens"] is True
    assert one["counts"][0] == one["counts"][1]
    assert 0 < one["counts"][0] < 12


def test_a_shared_queue_that_is_abandoned_or_empty_leaves_the_team_in_step(found):
    one = returned(found, "shared_queue")

    assert (0, 2) == (one["empty"], one["after_abandoned"])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("other_weights", "EngineError: weight sync of version 1: rank 1 has"),
        (
            "other_kernels",
            "EngineError: weight sync: on canary sequences the engine of rank 1",
        ),
        ("worker_raises", "EngineError: rank 1: RuntimeError: no such kernel"),
        ("worker_fails_on_dedicated_gpus", "EngineError: rank 1: RuntimeError: no such kernel"),
        ("worker_has_bad_data", "DataError: rank 1: row 7 is not a number"),
        ("controller_fails", "SettingsError: steps is -1"),
        ("controller_fails_during_rollout", "SettingsError: steps is -1"),
    ],
)
def test_a_failure_ends_all_ranks_and_names_the_rank(found, name, message):
    assert found[name]["message"]["message"].startswith(message)


def test_the_controller_receives_the_failure_of_another_rank(found):
    assert (
        "EngineError: rank 1: RuntimeError: no such kernel" == found["worker_raises"]["controller"]
    )
    assert "DataError: rank 1: row 7 is not a number" == found["worker_has_bad_data"]["controller"]


def test_a_killed_rank_ends_the_others(found):
    one = found["worker_is_killed"]

    assert (1, -9) == (one["rank"], one["code"])


def test_a_stopped_rank_is_killed_and_named(found):
    one = found["worker_is_stopped"]

    expected = "EngineError: rank 1 has given no sign of life for 8 s"
    assert one["controller"].startswith(expected)
    # What the stage says: torchrun sees a process that was killed.
    assert one["message"]["message"].startswith(expected)


@pytest.mark.slow
def test_a_rank_that_hangs_ends_the_team_and_every_rank_says_where_it_is(tiny_moe, tmp_path):
    name = "worker_hangs_in_update"
    one = run_scenarios(tiny_moe, tmp_path, name)[name]

    assert one["controller"].startswith(
        "EngineError: no rank has computed anything for 10 s: rank 0 is in all_reduce"
    )
    assert "; rank 1 is in wait (threading.py" in one["controller"]


@pytest.mark.slow
def test_a_rank_that_computes_and_takes_no_step_ends_the_team_by_name(tiny_moe, tmp_path):
    name = "worker_computes_in_update"
    one = run_scenarios(tiny_moe, tmp_path, name)[name]

    assert one["controller"].startswith(
        "EngineError: ranks compute, but none has taken a step for 15 s: rank 0 is in all_reduce"
    )
    assert "; rank 1 is in strike (faults.py" in one["controller"]


FAULTS = {
    "killed": "a process exited without reporting an error",
    "stopped": "rank 1 has given no sign of life for 8 s",
    "hangs": "no rank has computed anything for 10 s: rank 0 is in ",
    "computes": "ranks compute, but none has taken a step for 15 s: rank 0 is in ",
}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_any_part_of_a_step_is_named(tiny_moe, tmp_path, fault):
    parts = ("opening", "collect", "old_logprobs", "update", "weight_sync", "commit")
    names = [f"worker_{fault}_in_{part}" for part in parts]

    found = run_scenarios(tiny_moe, tmp_path, *names)

    for name in names:
        assert found[name]["controller"].startswith(f"EngineError: {FAULTS[fault]}"), name


@pytest.mark.slow
def test_a_controller_that_hangs_is_named_by_its_place(tiny_moe, tmp_path):
    name = "controller_hangs_in_update"
    one = run_scenarios(tiny_moe, tmp_path, name)[name]

    assert "rank 0 is in wait (threading.py" in one["message"]["message"]


@pytest.mark.slow
def test_workers_end_with_the_error_and_kill_the_controller_that_is_stopped(tiny_moe, tmp_path):
    one = run_scenarios(tiny_moe, tmp_path, "controller_is_stopped")["controller_is_stopped"]

    assert one["message"]["message"].startswith("EngineError: rank 0 has given no sign of life")


def test_sigterm_to_one_rank_reaches_the_controller_and_ends_no_process(found):
    one = found["sigterm_to_worker"]["returned"]["0"]

    assert {"came": ["controller"], "answers": 12} == one


def test_no_thread_of_a_finished_team_can_abort_its_process(found):
    # A daemon thread in a call of torch.distributed aborts the interpreter's exit.
    ended = {name: one["daemons"] for name, one in found.items() if "returned" in one}

    assert {"0": [], "1": []} == ended["rolled_out"]
    assert [ended["rolled_out"]] * len(ended) == list(ended.values())


def test_a_worker_whose_controller_failed_leaves_no_thread_behind(found):
    assert {"1": []} == found["controller_fails"]["daemons"]


def requests(tokens, samples):
    return [
        Request(str(number), None, count, expected_tokens=expected)  # pyright: ignore[reportArgumentType]
        for number, (expected, count) in enumerate(zip(tokens, samples, strict=True))
    ]


def test_requests_are_spread_by_the_tokens_they_will_take():
    # 40, 30, 20 and 10 tokens: longest first to whoever is free first.
    parts = spread_requests(requests([10.0, 5.0, 20.0, 30.0], [1, 8, 1, 1]), 2)

    assert [["0", "1"], ["2", "3"]] == [[one.problem_id for one in part] for part in parts]


def test_without_a_forecast_requests_are_spread_by_their_samples():
    parts = spread_requests(requests([1.0] * 5, [2] * 5), 3)

    assert [2, 2, 1] == [len(part) for part in parts]


def rollout_of(experts):
    nothing = np.zeros(2, np.float32)
    tokens = nothing.astype(np.int32)
    trace = RouterTrace(np.array(experts, np.uint8))
    return Rollout("p", 0, tokens[:1], tokens, nothing, trace, StopReason.END, 0)


def test_a_rank_checks_and_hashes_the_routes_that_it_recorded():
    one, other = rollout_of([[[1, 2]], [[3, 0]]]), rollout_of([[[1, 2]], [[0, 3]]])
    digests = {checked(rollout, 4).trace.digest for rollout in (one, other, one)}

    assert [64, 64] == list(map(len, digests))
    with pytest.raises(EngineError, match="impossible routes: trace repeats an expert"):
        checked(rollout_of([[[1, 2]], [[3, 3]]]), 4)


def test_replicas_are_consecutive_ranks_or_one_per_node():
    assert ((0, 1), (2, 3)) == replicas(4, 4, tensor=2, dedicated=False)
    assert ((0,), (6,)) == replicas(12, 6, tensor=2, dedicated=True)


def test_a_stage_of_one_process_has_no_team():
    assert current() is None


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        ({"expert": 4}, "expert \\* pipeline is 4, which does not divide the 2 processes"),
        ({"tensor": 2, "pipeline": 2}, "tensor \\* pipeline \\* context is 4"),
        ({"rollout_tensor": 4}, "rollout_tensor 4 does not divide the 2 processes of a node"),
    ],
)
def test_a_layout_that_the_processes_cannot_form_is_refused_by_name(layout, message):
    engines = MachineSettings(
        rollout=RolloutKind.VLLM, trainer=TrainerKind.MEGATRON, layout=LayoutSettings(**layout)
    )

    with pytest.raises(SettingsError, match=message):
        require_fit(engines, nodes=1, processes=2)


def test_a_layout_of_many_processes_is_refused_where_there_is_one():
    engines = MachineSettings(trainer=TrainerKind.MEGATRON, layout=LayoutSettings(expert=2))

    with pytest.raises(SettingsError, match="EACHPROMPT_PROCESSES"):
        require_fit(engines, nodes=1, processes=1)
    require_fit(engines, nodes=1, processes=2)
    require_fit(engines, nodes=2, processes=1)


def test_engines_that_share_processes_take_turns():
    engines = EngineSettings(trainer=TrainerKind.MEGATRON, staleness=1)
    free = engines.model_copy(update={"segment_tokens": "free"})

    with pytest.raises(SettingsError, match="set layout\\.dedicated_rollout_gpus, or staleness 0"):
        require_fit(engines, nodes=1, processes=2)
    require_fit(engines, nodes=1, processes=1)
    require_fit(free, nodes=1, processes=2)  # no step ahead: what is in flight waits
