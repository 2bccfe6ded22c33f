"""The table of stages; what reaches the cluster is asserted in test_package."""

import re
import sys
from pathlib import Path

import pytest

from tasks.platform import resources
from tests.processes import run_process

ROOT = Path(__file__).parents[2]


def test_only_what_looks_outside_is_never_served_from_the_cache():
    uncached = {
        name
        for name, stage in resources.STAGES.items()
        if not stage.cached and not stage.module.startswith("lab.")
    }

    assert uncached == {
        "check_settings",
        "pin_recipe",
        "with_teachers",
        "with_sources",
        "with_seed",
        "needs_judge",
        "scaled_recipe",
        "open_store",
        "ingest",
        "ingest_base",
        "ingest_parents",
        "ingest_candidates",
        "ingest_models",
        "ingest_retrain_models",
        "keep_start",
        "name_released",
        "nights_page",
        "curation_page",
        "night_page",
        "drop_files",
        "distil",
        "evaluate_endpoint",
        "evaluate_all",
        "compare_precisions",
        "compare_logs",
        "export",
        "agreement",
        "check_comparisons",
        "collect_comparisons",
        "release",
        "summary",
        "tell_failure",
        "answers_page",
        "audit",
        "ledger",
        "replay",
        "trace",
        "compare_models",
        "forget",
        "capacity",
        "fit_settings",
        "end_execution",
        "open_night",
        "scan_inbox",
        "skip_curation",
        "examine_rows",
        "skip_grading",
        "assess_learning_value",
        "record_skip",
        "conclude",
        "retrain_summary",
    }


def test_preemptible_stages_have_retries_and_time_to_commit():
    for stage in resources.STAGES.values():
        assert not stage.interruptible or (stage.retries >= 3 and stage.grace_s > 0)


def test_a_stage_over_many_nodes_has_a_retry_for_each_that_it_is_expected_to_lose():
    rl, merge = resources.STAGES["rl"], resources.STAGES["merge"]

    # 336 hours of 32 nodes, of which 0.3 a month are lost: 4.5.
    assert [5, 6, 10] == [rl.retries_over(nodes) for nodes in (1, 2, 32)]
    assert merge.retries == merge.retries_over(32), "it has one pod, and a budget of the platform"


def test_a_stage_over_many_nodes_is_not_put_on_nodes_that_can_be_taken_away():
    rl, grade = resources.STAGES["rl"], resources.STAGES["grade"]

    # Of a node 0.2 a month are taken away, and 3.5 hours of 720 are lost: 0.1 % of a team's time.
    assert [1, 2, 10] == [nodes for nodes in (1, 2, 10, 11, 32) if rl.interruptible_over(nodes)]
    assert not grade.interruptible_over(1), "it does not resume from a committed step"
    alone = resources.Stage("m", resources.SMALL, "cpu", hours=24, interruptible=True)
    assert alone.interruptible_over(32), "it has one pod, however many nodes a team has"


@pytest.mark.slow
@pytest.mark.parametrize(("nodes", "expected"), [("2", "(True, 6)"), ("32", "(False, 10)")])
def test_the_task_of_a_stage_has_the_retries_and_the_kind_of_nodes_of_its_size(nodes, expected):
    code = "(shown['interruptible'], shown['retries'])"
    start = "from tasks.platform.shell import task_arguments; shown = task_arguments('rl')"

    assert expected == imported(code, start=start, EACHPROMPT_NODES=nodes)


def test_a_stage_of_minutes_may_wait_half_a_day_for_a_node():
    assert [] == [name for name, stage in resources.STAGES.items() if stage.hours < 4]


def test_only_what_holds_models_asks_for_a_disk_that_does():
    large = {name for name, stage in resources.STAGES.items() if stage.machine.disk == "1Ti"}
    models = ("base", "parents", "candidates", "models", "retrain_models")

    ingests = {f"ingest_{name}" for name in models}
    assert {"merge", "release", "audit", *ingests} == large - {"upcycle"}


def test_a_cluster_names_its_own_machines():
    gpus = "cpu=90,memory=900Gi,disk=3Ti,gpus=4,accelerator=nvidia-a100-80gb"
    code = "resources.STAGES['rl'].machine, resources.REGISTRATION.variables"

    shown = imported(code, EACHPROMPT_MACHINE_GPUS=gpus)

    assert "cpu='90', memory='900Gi', disk='3Ti', gpus=4" in shown
    assert f"'EACHPROMPT_MACHINE_GPUS': '{gpus}'" in shown  # so that tasks made in pods have it


def imported(code: str, start: str = "", **environment: str) -> str:
    done = run_process(
        [sys.executable, "-c", f"from tasks.platform import resources\n{start}\nprint({code})"],
        cwd=ROOT,
        variables=environment,
    )
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("command", "variables", "named"),
    [
        ("register", {}, {"CPU", "ROLLOUT", "TRAINER"}),
        ("register", {"EACHPROMPT_IMAGE_CPU": f"cpu@sha256:{64 * 'a'}"}, {"ROLLOUT", "TRAINER"}),
        ("register", {"EACHPROMPT_SMOKE": "1"}, set()),
        ("run", {}, set()),
    ],
)
def test_an_image_that_is_registered_by_tag_is_warned_of_by_name(command, variables, named):
    done = run_process(
        [sys.executable, "-c", "import tasks.platform.resources", command],
        cwd=ROOT,
        variables=variables,
    )

    assert named == set(re.findall(r"EACHPROMPT_IMAGE_(\w+)", done.stderr))


def test_a_smoke_test_of_a_cluster_needs_no_gpu_and_one_image():
    code = "{(s.image, s.machine.gpus, s.machine.cpu) for s in resources.STAGES.values()}"

    assert "{('cpu', 0, '2')}" == imported(code, EACHPROMPT_SMOKE="1")
    assert any(stage.machine.gpus for stage in resources.STAGES.values())


def test_addresses_to_notify_are_separated_by_commas():
    assert "('a@b.c', 'd@e.f')" == imported("resources.NOTIFY", EACHPROMPT_NOTIFY="a@b.c, d@e.f,")
    assert "()" == imported("resources.NOTIFY", EACHPROMPT_NOTIFY="")


def test_a_pod_knows_the_gpus_of_its_whole_team():
    rl = {"FLYTE_INTERNAL_TASK_NAME": "tasks.stages.rl.rl", "EACHPROMPT_NODES": "4"}

    assert "32" == imported("resources.reserved_gpus()", **rl)
    assert "0" == imported("resources.reserved_gpus()", **rl, EACHPROMPT_SMOKE="1")
    assert "0" == imported("resources.reserved_gpus()")
