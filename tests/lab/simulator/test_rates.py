"""Rates of a layout: proportions that follow from the arithmetic."""

import math
from dataclasses import replace

import pytest

from data_schemas.machine_settings import Precision
from tasks.capacity.plan import Plan, plan_of_preset
from tasks.lab.simulator.rates import (
    NETWORK_BYTES_S,
    NVLINK_BYTES_S,
    Efficiency,
    bubble_share,
    commit_seconds,
    engine_rates,
    rank_zero_seconds,
    rates_of,
    sync_seconds,
    trainer_rates,
)


def changed(plan: Plan, **changes) -> Plan:
    return replace(plan, layout=plan.layout.model_copy(update=changes))


def test_the_engine_has_the_cache_of_the_memory_budget():
    plan = plan_of_preset("full_scale")

    assert plan.budget().rollout.cached_tokens == engine_rates(plan, Efficiency()).cache_tokens


def test_fp8_halves_what_a_pass_reads_of_the_experts():
    plan = plan_of_preset("full_scale")
    fp8 = engine_rates(plan, Efficiency())
    bf16 = engine_rates(replace(plan, precision=Precision.BF16), Efficiency())

    assert pytest.approx(2.0) == bf16.experts_s / fp8.experts_s
    assert bf16.context_s == fp8.context_s


def test_recompute_makes_an_update_a_third_slower_where_nothing_is_exchanged():
    plan = changed(plan_of_preset("full_scale"), tensor=1, pipeline=1, expert=1)
    score, with_recompute = trainer_rates(plan, Efficiency(), 8192.0)
    without = trainer_rates(changed(plan, recompute=False), Efficiency(), 8192.0)

    assert pytest.approx(4.0) == with_recompute / score
    assert (score, pytest.approx(3.0)) == (without[0], without[1] / score)


def test_backward_exchanges_as_often_as_a_forward_pass_and_computes_twice_as_much():
    plan = changed(plan_of_preset("full_scale"), pipeline=1, recompute=False)
    alone = changed(plan, tensor=1, expert=1)
    (score, update), (compute, _) = (
        trainer_rates(one, Efficiency(), 8192.0) for one in (plan, alone)
    )

    assert pytest.approx(3.0 * compute + 2.0 * (score - compute)) == update
    assert 0.4 < (score - compute) / compute < 0.8


def test_scoring_waits_for_one_pipeline_and_updates_for_one_each():
    plan = plan_of_preset("full_scale")
    score, update = trainer_rates(plan, Efficiency(), 8192.0)
    one, eight = (
        trainer_rates(replace(plan, mini_batches=count), Efficiency(), 8192.0) for count in (1, 8)
    )

    assert {score} == {one[0], eight[0]}
    assert one[1] < update < eight[1]


def test_one_pipeline_stage_has_no_bubble_and_fewer_micro_batches_have_more():
    plan = plan_of_preset("full_scale")
    few = replace(plan, mini_batches=8)

    assert 0.0 == bubble_share(changed(plan, pipeline=1), 8192.0, 256)
    assert bubble_share(plan, 8192.0, 256) < bubble_share(few, 8192.0, 256)


def test_half_of_the_gpus_train_half_as_fast_and_have_half_of_the_engines():
    plan = changed(plan_of_preset("full_scale"), pipeline=1)
    half = changed(plan, dedicated_rollout_gpus=4, rollout_tensor=4)
    whole, dedicated = (rates_of(one, Efficiency(), 8192.0) for one in (plan, half))

    assert (32, 32) == (whole.engines, dedicated.engines)
    assert pytest.approx(2.0) == dedicated.update_s / whole.update_s


def test_every_rank_receives_and_hashes_all_weights():
    small, large = plan_of_preset("single_node"), plan_of_preset("full_scale")
    unhashed = Efficiency(hash_bytes_s=math.inf, host_bytes_s=math.inf, tensor_s=0.0)
    uncopied = Efficiency(host_bytes_s=math.inf, tensor_s=0.0)
    unhandled = Efficiency(tensor_s=0.0)
    small_bytes, large_bytes = (2 * one.model.parameters for one in (small, large))

    assert pytest.approx(small_bytes / NVLINK_BYTES_S) == sync_seconds(small, unhashed)
    assert pytest.approx(large_bytes / NETWORK_BYTES_S) == sync_seconds(large, unhashed)
    # 96 cores, 1 GB/s each; eight ranks of a node receive, one of them sends.
    assert pytest.approx(small_bytes * 9 / 96e9) == sync_seconds(small, uncopied)
    # Rank 0 copies all to its host's memory before it sends it, and after it received it.
    copied = small_bytes / NVLINK_BYTES_S + 2 * small_bytes / 2e10
    assert pytest.approx(copied) == sync_seconds(small, unhandled)
    # One thread of a rank handles the tensors of all experts.
    handled = copied + 24 * (3 * 128 + 9) * 0.00027 + 3 * 0.00027
    assert pytest.approx(handled) == sync_seconds(small, Efficiency())
    assert rates_of(small, Efficiency(), 4096.0).sync_s == sync_seconds(small, Efficiency())


def test_rank_zero_takes_what_was_measured_of_it_for_two_shapes_of_routes():
    plan = plan_of_preset("full_scale")
    wider = replace(plan.model, layers=94, experts_per_token=8)

    # 32k tokens: 72 layers of top-4 and 94 of top-8.
    assert [0.012, 0.020] == [
        pytest.approx(rank_zero_seconds(one, Efficiency(), 32_768.0), rel=0.01)
        for one in (plan, replace(plan, model=wider))
    ]
    assert 0.0 == rank_zero_seconds(replace(plan, gpus=1), Efficiency(), 32_768.0)
    assert 0.007 == rank_zero_seconds(plan_of_preset("compass_thinker"), Efficiency(), 4096.0)


def test_a_commit_takes_as_long_as_the_node_that_writes_most():
    plan = plan_of_preset("full_scale")
    unhashed = Efficiency(hash_bytes_s=math.inf)
    unwritten = Efficiency(disk_bytes_s=math.inf)

    # A rank has an expert of each of the 9 layers of its stage, an eighth of their attention and
    # of a table of the vocabulary: 2.14e9 weights of 14 bytes. Eight of them share a node.
    attention = 8192 * 2 * (64 + 8) * 128
    rank = 14 * (9 * (3 * 8192 * 8192) + (9 * attention + 151_936 * 8192) / 8)
    assert pytest.approx(29.9e9, rel=0.001) == rank
    assert pytest.approx(8 * rank / 2e9, rel=0.001) == commit_seconds(plan, unhashed)
    assert pytest.approx(rank / 1e9, rel=0.001) == commit_seconds(plan, unwritten)

    whole = commit_seconds(plan, Efficiency())
    assert pytest.approx(whole / 10) == rates_of(plan, Efficiency(), 8192.0).commit_s  # every tenth


def test_one_node_writes_the_whole_state():
    plan = plan_of_preset("single_node")
    unhashed = Efficiency(hash_bytes_s=math.inf)

    assert pytest.approx(14 * plan.model.parameters / 2e9, rel=0.005) == commit_seconds(
        plan, unhashed
    )


def test_stages_that_share_a_node_write_all_they_have():
    plan = changed(plan_of_preset("single_node"), tensor=2, pipeline=2, expert=4)
    unhashed = Efficiency(hash_bytes_s=math.inf)

    assert pytest.approx(14 * plan.model.parameters / 2e9, rel=0.005) == commit_seconds(
        plan, unhashed
    )
