"""What `pyflyte register` creates on a cluster, read back from the messages that it sends."""

import itertools
import tarfile
from collections import Counter
from datetime import timedelta
from importlib import import_module
from pathlib import Path

import msgpack
import pytest
from flyteidl.admin import launch_plan_pb2
from flyteidl.admin.launch_plan_pb2 import LaunchPlan
from flyteidl.admin.task_pb2 import TaskSpec
from flyteidl.admin.workflow_pb2 import WorkflowSpec
from flyteidl.core.execution_pb2 import WorkflowExecution

from data_schemas import presets
from data_schemas.settings import PipelineSettings, RetrainSettings
from tasks.lab.study.declaration import read_study
from tasks.platform import resources
from tasks.platform.cache_version import code_digest
from tasks.platform.literals import unpacked
from tests.admin import BUNDLE
from tests.compiler import Platform
from tests.packages import DOMAIN, PROJECT, ROOT, VERSION, pod, register_into

ROLLOUT_IMAGE = "registry.example/rollout@sha256:" + 64 * "a"
MAP_TASKS = 4
ADAPTED = Platform(limits={"cpu": "96", "memory": "1600Gi", "gpu": "8", "ephemeral-storage": "4Ti"})
"""A Flyte of defaults, but for the limits of containers that the guide says to set."""
PLANTED = "planted-c0ffee"
"""Value of every secret of the machine that registers."""
ON_GPUS = {
    "pretrain",
    "sft",
    "measure_judge",
    "grade",
    "distil",
    "evaluate",
    "measure_precisions",
    "rl",
}
"""Stages of the core; a recipe says for itself."""
for path in (ROOT / "tasks" / "lab").rglob("*.py"):  # add their stages
    if path.stem == "task" or (path.parent.name == "stages" and path.stem != "__init__"):
        import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))


@pytest.fixture(scope="session")
def registered(tmp_path_factory):
    """What arrives at an admin, registered as a release would be."""
    variables = {
        "EACHPROMPT_CURATION_TASKS": f"{MAP_TASKS}",
        "EACHPROMPT_IMAGE_ROLLOUT": ROLLOUT_IMAGE,
        "EACHPROMPT_NOTIFY": "people@shop.example",
        "EACHPROMPT_POD_TEMPLATE_TRAINER": "h100-trainer",
        "EACHPROMPT_SECRETS": "MLFLOW_TRACKING_PASSWORD=eachprompt/mlflow,"
        "AWS_SECRET_ACCESS_KEY=eachprompt/s3",
        "MLFLOW_TRACKING_PASSWORD": PLANTED,
        "AWS_SECRET_ACCESS_KEY": PLANTED,
    }
    folder = tmp_path_factory.mktemp("registered")
    return register_into(folder, variables, ADAPTED)


@pytest.fixture(scope="session")
def package(registered):
    """The folder of the messages and of the shipped code."""
    return registered.folder


def read(package: Path, suffix: str, message: type) -> dict:
    specs = {}
    for path in sorted(package.glob(f"*_{suffix}.pb")):
        spec = message()
        spec.ParseFromString(path.read_bytes())
        holder = spec if message is LaunchPlan else spec.template
        specs[holder.id.name] = spec
    return specs


@pytest.fixture(scope="session")
def tasks(package):
    return read(package, "1", TaskSpec)


@pytest.fixture(scope="session")
def workflows(package):
    return read(package, "2", WorkflowSpec)


@pytest.fixture(scope="session")
def plans(package):
    return read(package, "3", LaunchPlan)


def template(tasks: dict, stage: str):
    return tasks[f"tasks.{resources.STAGES[stage].module}.{stage}"].template


def tasks_of(workflow) -> Counter[str]:
    """How often a workflow itself calls each task."""
    nodes = [node for node in workflow.template.nodes if node.HasField("task_node")]
    return Counter(node.task_node.reference_id.name.split(".")[-1] for node in nodes)


def test_everything_is_registered_once_under_one_version_what_others_need_first(registered):
    names = [(one.resource_type, one.name) for one in registered.ids]

    assert {(PROJECT, DOMAIN, VERSION)} == {
        (one.project, one.domain, one.version) for one in registered.ids
    }
    assert [] == [name for name, count in Counter(names).items() if count > 1]


def test_a_cluster_takes_everything(registered):
    assert {} == registered.refused


def test_a_night_without_news_is_two_small_pods(tasks, workflows):
    opening, branch = workflows["workflows.retrain.retraining"].template.nodes[-2:]
    quiet = branch.branch_node.if_else.else_node.task_node.reference_id.name
    pods = [opening.task_node.reference_id.name, quiet]

    assert ["tasks.stages.opening.open_night", "tasks.stages.pages.night_page"] == pods
    small = {"cpu": "2", "memory": "8Gi", "ephemeral-storage": "20Gi"}
    assert [small] * 2 == [pod(tasks[name].template)["requests"] for name in pods]


def test_flyte_itself_tells_of_an_execution_that_failed(workflows):
    for name in ("workflows.retrain.retrain", "workflows.post_training.post_training"):
        node = workflows[name].template.failure_node
        promises = {one.var: one.binding.promise.var for one in node.inputs}

        assert "tasks.stages.failure.tell_failure" == node.task_node.reference_id.name
        assert "store" == promises["store"]


def test_the_scheduled_plan_and_those_of_presets_are_active(registered, plans):
    own = {name for name in plans if "." not in name}

    assert {"nightly_retrain", "cpu_smoke", "single_node"} <= own
    assert own <= set(registered.active)


def test_runs_of_plans_have_the_service_account_that_was_given(plans):
    accounts = {
        plan.spec.security_context.run_as.k8s_service_account
        or plan.spec.auth_role.kubernetes_service_account
        for plan in plans.values()
    }

    assert {"trainer"} == accounts


def test_pods_fetch_the_code_that_was_uploaded(tasks):
    for name in resources.STAGES:
        arguments = pod(template(tasks, name))["args"]
        assert BUNDLE == arguments[arguments.index("--additional-distribution") + 1]


def test_every_stage_of_the_table_is_registered_and_one_map_task_but_no_other_task(tasks):
    expected = {f"tasks.{stage.module}.{name}" for name, stage in resources.STAGES.items()}

    assert expected <= set(tasks)
    (mapping,) = set(tasks) - expected
    arguments = pod(tasks[mapping].template)["args"]
    assert "pyflyte-map-execute" in arguments
    assert ["task-module", "tasks.stages.curation", "task-name", "curate_part"] == arguments[-4:]


def test_a_stage_asks_for_the_machine_of_the_table(tasks):
    for name, stage in resources.STAGES.items():
        task = template(tasks, name)
        machine = pod(task)

        assert machine["requests"]["cpu"] == stage.machine.cpu, name
        assert machine["requests"]["memory"] == stage.machine.memory, name
        assert machine["requests"]["ephemeral-storage"] == stage.machine.disk, name
        assert machine["requests"].get("gpu", "0") == str(stage.machine.gpus), name
        assert machine["requests"] == machine["limits"], name
        assert task.metadata.retries.retries == stage.retries, name
        assert task.metadata.timeout.ToTimedelta() == timedelta(hours=stage.hours), name
        assert task.metadata.interruptible is stage.interruptible, name
        assert task.metadata.generates_deck.value, name


def test_what_generates_or_trains_goes_to_the_h100_pool(tasks):
    pool = {
        name
        for name in resources.STAGES
        if template(tasks, name).extended_resources.gpu_accelerator.device == "nvidia-h100"
    }

    own = {name for name in pool if resources.STAGES[name].module.startswith("stages.")}
    assert own == ON_GPUS
    assert {pod(template(tasks, name))["requests"]["gpu"] for name in pool} == {"8"}


def test_reinforcement_is_preemptible_and_has_time_to_commit(tasks):
    rl = template(tasks, "rl")

    assert rl.metadata.interruptible
    assert rl.metadata.retries.retries == 5
    assert pod(rl)["grace"] == 1800


def test_a_stage_is_cached_under_the_digest_of_its_code(tasks):
    for name, stage in resources.STAGES.items():
        metadata = template(tasks, name).metadata

        assert metadata.discoverable is stage.cached, name
        if metadata.discoverable:
            assert metadata.discovery_version == code_digest(name)[:32], name
            assert list(metadata.cache_ignore_input_vars) == ["execution"], name
            assert metadata.cache_serializable, name


def test_images_are_pinned_and_start_the_right_function(tasks):
    for name, stage in resources.STAGES.items():
        container = pod(template(tasks, name))
        _, _, tag = container["image"].rpartition(":")

        assert tag, name
        assert tag != "latest", name
        started = ["task-module", f"tasks.{stage.module}", "task-name", name]
        assert container["args"][-4:] == started


def test_a_pod_gets_the_secrets_of_the_cluster_as_variables(tasks):
    for name in resources.STAGES:
        asked = {
            secret.env_var: (secret.group, secret.key)
            for secret in template(tasks, name).security_context.secrets
        }

        assert asked == {
            "MLFLOW_TRACKING_PASSWORD": ("eachprompt", "mlflow"),
            "AWS_SECRET_ACCESS_KEY": ("eachprompt", "s3"),
        }, name


def test_no_secret_of_the_machine_that_registers_is_in_what_is_registered(package):
    holding = [path.name for path in package.iterdir() if PLANTED.encode() in path.read_bytes()]

    assert not holding


def test_stages_on_the_trainer_image_have_the_template_of_its_pods(tasks):
    named = {
        name: template(tasks, name).metadata.pod_template_name
        for name in resources.STAGES
        if template(tasks, name).metadata.pod_template_name
    }

    assert {"h100-trainer"} == set(named.values())
    assert named.keys() == {
        name for name, stage in resources.STAGES.items() if stage.image == "trainer"
    }


def test_an_image_is_named_by_the_environment_at_registration(tasks):
    assert pod(template(tasks, "evaluate"))["image"] == ROLLOUT_IMAGE
    assert pod(template(tasks, "rl"))["image"] == resources.IMAGES["trainer"]


@pytest.mark.parametrize("name", ["post_training.post_training", "retrain.examine"])
def test_curation_waits_for_a_map_task_over_its_parts(workflows, name):
    nodes = {node.id: node for node in workflows[f"workflows.{name}"].template.nodes}
    (mapping,) = [node for node in nodes.values() if node.HasField("array_node")]
    (curating,) = [node for node in nodes.values() if mapping.id in node.upstream_node_ids]
    parts = next(binding for binding in mapping.inputs if binding.var == "part")

    given = [msgpack.unpackb(one.scalar.binary.value) for one in parts.binding.collection.bindings]
    assert [{"number": number, "of": MAP_TASKS} for number in range(MAP_TASKS)] == given
    assert "tasks.stages.curation.curate" == curating.task_node.reference_id.name


def nodes_of(workflow, task: str):
    """The nodes of a workflow that call a task."""
    return [
        node
        for node in workflow.template.nodes
        if node.task_node.reference_id.name.endswith(f".{task}")
    ]


def test_the_second_phase_of_rl_waits_for_the_first(workflows):
    one, two = nodes_of(workflows["workflows.post_training.post_training"], "rl")

    assert one.id in two.upstream_node_ids


def test_the_release_is_judged_against_the_five_models_before_rl_two_and_against_rl_two(workflows):
    (comparing,) = nodes_of(workflows["workflows.post_training.post_training"], "compare")
    parents = next(binding for binding in comparing.inputs if binding.var == "parents")

    assert len(parents.binding.collection.bindings) == 6


def test_a_study_of_any_size_has_few_nodes(workflows):
    """A node per variant, seed and stage is made by dynamic tasks, whose limit is their own."""
    called = tasks_of(workflows["workflows.lab.study.study"])

    assert dict.fromkeys(("read_study", "study_cells", "open_store", "tabulate_study"), 1) == called
    for declaration in (ROOT / "workflows" / "lab" / "studies").glob("*.yaml"):
        cells = read_study(str(declaration)).cells
        assert 100 > len({cell.variant for cell in cells})
        assert 100 > len({cell.seed for cell in cells})


def test_retraining_asks_three_times_whether_it_is_worth_it(workflows):
    nodes = workflows["workflows.retrain.night"].template.nodes
    questions = [node for node in nodes if node.HasField("branch_node")]

    names = ["worth_reading", "worth_grading", "worth_learning"]
    assert names == [node.metadata.name for node in questions]
    for before, after in itertools.pairwise(questions):
        assert before.id in after.upstream_node_ids


def test_the_pipeline_asks_once_whether_a_fine_tuning_follows_rl(workflows):
    nodes = workflows["workflows.post_training.post_training"].template.nodes
    (question,) = [node for node in nodes if node.HasField("branch_node")]

    assert "general_sft" == question.metadata.name
    evaluated = [node for node in nodes if question.id in node.upstream_node_ids]
    assert evaluated  # what comes after it takes its model


def test_retraining_fine_tunes_one_model_or_merges_two_or_none(workflows):
    nodes = workflows["workflows.retrain.prepare"].template.nodes

    names = [node.metadata.name for node in nodes if node.HasField("branch_node")]
    assert ["worth_fine_tuning", "worth_merging"] == names


@pytest.mark.parametrize(
    ("name", "preset"),
    [
        ("cpu_smoke", presets.CPU_SMOKE),
        ("single_node", presets.SINGLE_NODE),
        ("full_scale", presets.FULL_SCALE),
        ("compassmax", presets.COMPASSMAX),
        ("ring_lite", presets.RING_LITE),
        ("compass_thinker", presets.COMPASS_THINKER),
    ],
)
def test_a_launch_plan_carries_its_preset_whole(plans, name, preset):
    plan = plans[name].spec
    packed = plan.default_inputs.parameters["settings"].default.scalar.binary.value

    assert plan.workflow_id.name == "workflows.post_training.post_training"
    assert preset == PipelineSettings.model_validate(unpacked(msgpack.unpackb(packed)))
    assert not plan.fixed_inputs.literals  # pyflyte could not start it


def test_retraining_runs_every_night_on_a_large_preset_that_an_execution_may_change(plans):
    plan = plans["nightly_retrain"].spec
    inputs = plan.default_inputs.parameters

    assert plan.entity_metadata.schedule.cron_schedule.schedule == "0 3 * * *"
    assert plan.workflow_id.name == "workflows.retrain.retrain"
    packed = inputs["settings"].default.scalar.binary.value
    given = RetrainSettings.model_validate(unpacked(msgpack.unpackb(packed)))
    assert presets.NIGHTLY_SINGLE_NODE == given
    assert {"settings", "inbox", "model", "demonstrations", "store"} == inputs.keys()
    assert not plan.fixed_inputs.literals
    assert presets.SINGLE_NODE.release.name == presets.NIGHTLY_SINGLE_NODE.release.name


def test_a_night_that_runs_longer_than_a_day_is_not_joined_by_the_next(plans):
    policy = plans["nightly_retrain"].spec.concurrency_policy

    assert (1, launch_plan_pb2.CONCURRENCY_LIMIT_BEHAVIOR_SKIP) == (policy.max, policy.behavior)


def test_who_is_named_at_registration_is_told_how_the_night_ended(plans):
    (notice,) = plans["nightly_retrain"].spec.entity_metadata.notifications
    phases = {WorkflowExecution.Phase.Name(phase) for phase in notice.phases}

    assert ["people@shop.example"] == list(notice.email.recipients_email)
    assert {"SUCCEEDED", "FAILED", "ABORTED", "TIMED_OUT"} == phases


def test_no_launch_plan_keeps_its_store_in_a_pod(plans):
    stores = {
        name: plan.spec.default_inputs.parameters["store"].default.scalar.primitive.string_value
        for name, plan in plans.items()
        if "." not in name
    }

    assert "cpu_smoke" in stores
    assert not [name for name, store in stores.items() if not store.startswith("s3://")]


def test_the_code_that_is_shipped_is_whole(package):
    bundle = next(package.glob("fast*.tar.gz"))
    with tarfile.open(bundle) as archive:
        names = {name.removeprefix("./") for name in archive.getnames()}
    sources = {
        str(path.relative_to(ROOT))
        for folder in ("tasks", "workflows", "data_schemas")
        for path in (ROOT / folder).rglob("*.py")
    }

    assert sources <= names
    assert "lock_cpu.txt" in names
    assert not [name for name in names if name.startswith((".venv", "runs/"))]
