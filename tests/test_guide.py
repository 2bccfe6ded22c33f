"""The guide, carried out: its commands against a Flyte that compiles, its pod template merged."""

import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent

import pytest
import yaml
from flyteidl.core.tasks_pb2 import TaskTemplate
from google.protobuf.json_format import MessageToDict

from tasks.pages import live
from tasks.platform import environment, resources
from tests.admin import recording_admin
from tests.compiler import Platform, check_resources
from tests.packages import ROOT
from tests.processes import run_process

CLUSTER = ROOT / "containers" / "cluster"
GUIDE = (ROOT / "containers" / "FLYTE.md").read_text()
STEPS = GUIDE.partition("\n## ")[0]
IMAGES = (
    (ROOT / "containers" / "README.md")
    .read_text()
    .partition("## Build and name them")[2]
    .partition("\n## ")[0]
)
COMMANDS = ("docker", "export", "unset", "flytectl", "kubectl", "cp", "pyflyte")
"""First words of the blocks that a reader types."""
OTHERS = ("docker", "flytectl", "kubectl")
"""Programs of other projects, which write down their arguments here."""


def manifests(name: str) -> list[dict]:
    """Read the documents of a file that the guide applies."""
    return list(yaml.safe_load_all((CLUSTER / name).read_text()))


def test_every_machine_is_within_the_limits_that_the_guide_says_to_set():
    limits = manifests("flyte.yaml")[0]["task_resources"]["limits"]

    platform = Platform(limits=limits | {"ephemeral-storage": limits["ephemeralStorage"]})
    for stage in resources.STAGES.values():
        asked = {
            "cpu": stage.machine.cpu,
            "memory": stage.machine.memory,
            "ephemeral-storage": stage.machine.disk,
            "gpu": str(stage.machine.gpus),
        }
        assert [] == check_resources(container(asked), platform)
    assert check_resources(container({"memory": "1601Gi"}), platform)


def container(asked):
    names = {"cpu": 1, "gpu": 2, "memory": 3, "ephemeral-storage": 5}
    template = TaskTemplate()
    for name, value in asked.items():
        template.container.resources.requests.add(name=names[name], value=value)
    return template


def test_the_nodes_of_the_guide_are_those_that_the_tests_compile_with():
    assert Platform().max_nodes == manifests("flyte.yaml")[0]["registration"]["maxWorkflowNodes"]


def test_the_pod_template_mounts_nothing_that_a_stage_asks_for():
    template = manifests("pod_template.yaml")[0]["template"]["spec"]
    (default,) = template["containers"]

    assert "default" == default["name"]
    assert {volume["name"] for volume in template["volumes"]} == {
        mount["name"] for mount in default["volumeMounts"]
    }
    mounted = {mount["mountPath"] for mount in default["volumeMounts"]}
    assert "/dev/shm" not in mounted
    key = next(one["value"] for one in default["env"] if one["name"] == "EACHPROMPT_SIGNING_KEY")
    assert any(key.startswith(f"{path}/") for path in mounted)


def script(commands: Sequence[str] = COMMANDS) -> str:
    """All shell lines of the guide, in order, with names in place of what a reader fills in.

    Args:
        commands: first words of the blocks that are taken.
    """
    blocks = re.findall(r"(?:^ {4,}\S.*\n)+", IMAGES + STEPS, re.MULTILINE)
    lines = "".join(dedent(one) for one in blocks if one.split()[0] in commands)
    for word, name in (
        ("REGISTRY", "registry.example"),
        ("BUCKET", "shop"),
        ("sha256:...", "sha256:" + 64 * "a"),
        ("=...", "=secret"),
    ):
        lines = lines.replace(word, name)
    if find_spec("flytekitplugins") is None:  # then nothing can be registered for several processes
        lines = lines.replace("export EACHPROMPT_PROCESSES=8\n", "")
    return lines


@pytest.fixture(scope="module")
def carried_out(tmp_path_factory):
    """What arrives at a Flyte that is configured as the guide says, and what other programs did."""
    return carry_out(script(), tmp_path_factory.mktemp("guide"), {})


def checkout_into(folder: Path) -> Path:
    """Copy what a checkout has of code and of what its cache versions are made of."""
    for part in ("workflows", "tasks", "data_schemas"):
        shutil.copytree(ROOT / part, folder / part)  # with what is compiled
    shutil.copytree(CLUSTER, folder / "containers" / "cluster")
    for lock in CLUSTER.parent.glob("lock_*.txt"):
        shutil.copy(lock, folder / "containers")
    shutil.copy(ROOT / "lock_cpu.txt", folder)
    return folder


def carry_out(lines: str, folder: Path, variables: Mapping[str, str]):
    """Run shell lines in a checkout, against an admin that compiles and stubs of other programs.

    Args:
        lines: of the guide; the first one that fails is named.
        folder: empty.
        variables: of the shell.
    """
    programs = folder / "bin"
    programs.mkdir()
    for name in OTHERS:
        (programs / name).write_text(f'#!/bin/sh\necho {name} "$@" >> {folder}/others\n')
        (programs / name).chmod(0o755)
    limits = manifests("flyte.yaml")[0]["task_resources"]["limits"]
    platform = Platform(limits=limits | {"ephemeral-storage": limits["ephemeralStorage"]})
    (folder / "messages").mkdir()
    with recording_admin(folder / "messages", platform) as registered:
        config = folder / "flyte.yaml"
        config.write_text(f"admin:\n  endpoint: {registered.endpoint}\n  insecure: true\n")
        own = {name: one for name, one in os.environ.items() if not name.startswith("EACHPROMPT_")}
        path = os.pathsep.join([str(programs), str(Path(sys.executable).parent), own["PATH"]])
        checkout = checkout_into(folder / "checkout")
        done = run_process(
            ["bash", "-Eeuo", "pipefail"],
            cwd=checkout,
            env=own
            | {"PATH": path, "HOME": str(folder), "FLYTECTL_CONFIG": str(config)}
            | {"PYTHONPATH": str(checkout)}
            | variables,
            input=f"trap 'echo \"does not hold: $BASH_COMMAND\" >&2' ERR\n{lines}",
            check=False,
        )
    assert 0 == done.returncode, lines + done.stdout[-3000:] + done.stderr[-3000:]
    return registered, (folder / "others").read_text()


@pytest.mark.slow
def test_the_commands_of_the_guide_register_and_start_what_they_say(carried_out):
    registered, others = carried_out

    started = [request.spec.launch_plan.name for request in registered.started]
    assert ["cpu_smoke", "workflows.audit.audit", "single_node"] == started
    smoke, _, released = (request.spec.launch_plan.version for request in registered.started)
    assert smoke != released  # flytekit's version of the same code, on the smallest machines or not
    assert "nightly_retrain" in registered.active
    assert {"eachprompt/production"} == {f"{one.project}/{one.domain}" for one in registered.ids}
    assert "kubectl create secret generic eachprompt-signing" in others
    applied = {f"kubectl apply -f {path.relative_to(ROOT)}" for path in CLUSTER.glob("*.yaml")}
    assert applied - set(others.splitlines()) == {"kubectl apply -f containers/cluster/flyte.yaml"}


@pytest.mark.slow
def test_the_values_of_the_guide_are_those_of_the_pods(carried_out):
    registered, _ = carried_out
    rl, curate = (registered.tasks[f"tasks.stages.{name}"] for name in ("rl.rl", "curation.curate"))

    accelerator = rl.extended_resources.gpu_accelerator.device
    assert ("nvidia-h100", "eachprompt-h100") == (accelerator, rl.metadata.pod_template_name)
    (asked,) = [c for c in [curate.container] if c.image]
    assert "registry.example/cpu@sha256:" + 64 * "a" == asked.image
    assert {"8", "32Gi", "200Gi"} == {one.value for one in asked.resources.requests}
    labels = {name: dict(plan.spec.labels.values) for name, plan in registered.plans.items()}
    queue = {"kueue.x-k8s.io/queue-name": "eachprompt"}
    assert [queue] * 2 == [labels[name] for name in ("single_node", "nightly_retrain")]


def test_the_queue_of_the_guide_admits_a_team_of_its_largest_machine_as_a_whole():
    names, quotas = manifests("kueue.yaml")
    (flavor,) = quotas["spec"]["resourceGroups"][0]["flavors"]
    admitted = {one["name"]: str(one["nominalQuota"]) for one in flavor["resources"]}

    assert "eachprompt" == names["metadata"]["name"]
    assert names["spec"]["clusterQueue"] == quotas["metadata"]["name"]
    machine = environment.machine(
        re.search(r"EACHPROMPT_MACHINE_GPUS=(\S+)", (CLUSTER / "values.env").read_text())[1]  # pyright: ignore[reportOptionalSubscript]
    )
    asked = {
        "cpu": machine["cpu"],
        "memory": machine["memory"],
        "ephemeral-storage": machine["disk"],
        "gpu": machine["gpus"],
    }
    limits = {name.removeprefix("nvidia.com/"): value for name, value in admitted.items()}
    assert asked.keys() == limits.keys()
    assert [] == check_resources(container(asked), Platform(limits=limits))


@pytest.mark.slow
def test_the_pod_template_of_the_guide_merges_into_every_pod(carried_out):
    registered, _ = carried_out
    template = manifests("pod_template.yaml")[0]["template"]["spec"]
    (default,) = template["containers"]
    for name, task in registered.tasks.items():
        pod = MessageToDict(task.k8s_pod.pod_spec) if task.HasField("k8s_pod") else {}
        (own,) = pod.get("containers", [{}])
        mounts = [*own.get("volumeMounts", []), *default["volumeMounts"]]
        # What propeller adds by itself for shared memory.
        paths = [one["mountPath"] for one in mounts]
        paths += ["/dev/shm"] * task.extended_resources.HasField("shared_memory")
        assert len(paths) == len(set(paths)), name
        variables = [one["name"] for one in default["env"]]
        variables += [one["name"] for one in own.get("env", [])]
        variables += [one.key for one in task.container.env]
        variables += [one.env_var for one in task.security_context.secrets]
        assert len(variables) == len(set(variables)), name


def in_prometheus(metric: str) -> str:
    """Return what Prometheus calls a gauge without unit that comes by OpenTelemetry.

    Source: opentelemetry.io, compatibility with Prometheus; every other character becomes `_`.
    """
    return re.sub(r"[^a-zA-Z0-9_:]+", "_", metric)


def test_the_names_of_metrics_on_the_page_are_those_of_prometheus():
    page = (ROOT / "containers" / "OPERATIONS.md").read_text()
    named = re.findall(r"^\| `(\w+/\w+)` \| `(\w+)", page, re.MULTILINE)

    assert 4 == len(named)
    assert [(metric, in_prometheus(metric)) for metric, _ in named] == named


def test_alerts_are_of_the_namespace_of_the_guide_and_say_what_to_do():
    (group,) = yaml.safe_load((ROOT / "containers" / "alerts.yaml").read_text())["groups"]
    namespace = manifests("pod_template.yaml")[0]["metadata"]["namespace"]
    project, _, domain = namespace.partition("-")

    of_steps = {metric for metric, *_ in live.CURVES}
    for rule in group["rules"]:
        expression, told = rule["expr"], rule["annotations"]["summary"]
        assert f'namespace="{namespace}"' in expression or (
            f'project="{project}",domain="{domain}"' in expression
            or expression.partition("{job=")[0] in map(in_prometheus, of_steps)
        )
        assert expression.count("(") == expression.count(")")
        assert 2 <= len(told.split(". "))
        if "for" in rule:
            assert int(rule["for"].removesuffix("h")) < resources.WAIT


@pytest.mark.skipif(not shutil.which("promtool"), reason="Debian's package prometheus has promtool")
def test_every_alert_fires_in_prometheus_on_its_cause_alone():
    cases = ROOT / "tests" / "alerts.promtool.yaml"
    done = run_process(["promtool", "test", "rules", str(cases)], check=False)
    (group,) = yaml.safe_load((ROOT / "containers" / "alerts.yaml").read_text())["groups"]
    fired = {
        check["alertname"]
        for case in yaml.safe_load(cases.read_text())["tests"]
        for check in case["alert_rule_test"]
        if check.get("exp_alerts")
    }

    assert (0, "") == (done.returncode, done.stderr)
    assert {rule["alert"] for rule in group["rules"]} == fired


def test_the_page_for_operators_says_what_each_alert_means_within_150_lines():
    page = (ROOT / "containers" / "OPERATIONS.md").read_text()
    (group,) = yaml.safe_load((ROOT / "containers" / "alerts.yaml").read_text())["groups"]
    table = page.partition("| alert |")[2].partition("\n\n")[0]

    assert 150 >= len(page.splitlines())
    told = re.findall(r"^\| `(\w+)` \| [^|]+ \| [^|]+ \|$", table, re.MULTILINE)
    assert [rule["alert"] for rule in group["rules"]] == told


def test_no_pod_of_the_guides_namespace_is_reached_but_by_teams():
    policy = manifests("network_policy.yaml")[0]
    template = manifests("pod_template.yaml")[0]

    assert policy["metadata"]["namespace"] == template["metadata"]["namespace"]
    assert ({}, ["Ingress"]) == (policy["spec"]["podSelector"], policy["spec"]["policyTypes"])
    (rule,) = policy["spec"]["ingress"]
    assert [{"from"}, 1] == [{*rule}, len(rule["from"])]
    assert rule["from"][0]["podSelector"]["matchLabels"]
