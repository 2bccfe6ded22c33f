"""The configuration and the pod template of the guide fit what is registered."""

import re
from textwrap import dedent

import yaml
from flyteidl.core.tasks_pb2 import TaskTemplate

from tasks.platform import resources
from tests.compiler import Platform, check_resources
from tests.packages import ROOT

GUIDE = (ROOT / "containers" / "README.md").read_text()


def snippet(first: str) -> dict:
    """Read the block of YAML that begins with a line."""
    start = GUIDE.index(f"       {first}\n")
    block = re.match(r"(?: {7}.*\n)+", GUIDE[start:])
    assert block
    return yaml.safe_load(dedent(block[0]))


def test_every_machine_is_within_the_limits_that_the_guide_says_to_set():
    limits = snippet("task_resources:")["task_resources"]["limits"]

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
    assert Platform().max_nodes == snippet("task_resources:")["registration"]["maxWorkflowNodes"]


def test_the_pod_template_mounts_nothing_that_a_stage_asks_for():
    template = snippet("apiVersion: v1")["template"]["spec"]
    (default,) = template["containers"]

    assert "default" == default["name"]
    assert {volume["name"] for volume in template["volumes"]} == {
        mount["name"] for mount in default["volumeMounts"]
    }
    mounted = {mount["mountPath"] for mount in default["volumeMounts"]}
    assert "/dev/shm" not in mounted
    key = next(one["value"] for one in default["env"] if one["name"] == "EACHPROMPT_SIGNING_KEY")
    assert any(key.startswith(f"{path}/") for path in mounted)
