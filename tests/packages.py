"""What pyflyte sends to a cluster, by either of its two commands."""

import os
import sys
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from flytekit.clis.sdk_in_container.pyflyte import main
from google.protobuf.json_format import MessageToDict

from tests.admin import Registered, recording_admin
from tests.compiler import Platform
from tests.processes import run_process

ROOT = Path(__file__).parents[1]
PROJECT, DOMAIN, VERSION = "eachprompt", "development", "0.1.0"


def package_into(folder: Path, variables: Mapping[str, str]) -> Path:
    """Run `pyflyte package`, and return the folder of what it wrote."""
    made = folder / "package.tgz"
    command = ["--pkgs", "workflows", "package", "--image", "registry.example/cpu:1"]
    command += ["--output", made, "--force", "--source", ROOT]
    command += ["--copy", "all", "--in-container-source-path", "/root"]
    _pyflyte(command, folder, variables)
    with tarfile.open(made) as archive:
        archive.extractall(folder / "package", filter="data")
    return folder / "package"


def register_into(
    folder: Path, variables: Mapping[str, str], platform: Platform, exceptions: Sequence[str] = ()
) -> Registered:
    """Run `pyflyte register` against an admin that compiles and records."""
    (folder / "registered").mkdir()
    with recording_admin(folder / "registered", platform, exceptions) as registered:
        config = folder / "flyte.yaml"
        config.write_text(f"admin:\n  endpoint: {registered.endpoint}\n  insecure: true\n")
        command = ["--config", config, "register", "--image", "registry.example/cpu:1"]
        command += ["--project", PROJECT, "--domain", DOMAIN, "--version", VERSION]
        command += ["--copy", "all", "--service-account", "trainer", "--activate-launchplans"]
        programs = os.pathsep.join([str(_with_quick_pigz(folder)), os.environ["PATH"]])
        _pyflyte([*command, ROOT / "workflows"], folder, {"PATH": programs, **variables})
    return registered


def pod(task: Any) -> dict[str, Any]:
    """One view of a container, whether it is given plainly or in a pod template."""
    if task.HasField("k8s_pod"):
        spec = MessageToDict(task.k8s_pod.pod_spec)
        container = spec["containers"][0]
        return {
            "image": container["image"],
            "args": container["args"],
            "requests": container["resources"]["requests"],
            "limits": container["resources"]["limits"],
            "grace": spec["terminationGracePeriodSeconds"],
        }
    names = {1: "cpu", 2: "gpu", 3: "memory", 5: "ephemeral-storage"}
    container = task.container
    return {
        "image": container.image,
        "args": list(container.args),
        "requests": {names[item.name]: item.value for item in container.resources.requests},
        "limits": {names[item.name]: item.value for item in container.resources.limits},
        "grace": None,
    }


def run_remotely(folder: Path, command: Sequence[str], platform: Platform) -> Registered:
    """Run `pyflyte run --remote` in this process against an admin that compiles and records."""
    (folder / "registered").mkdir()
    with recording_admin(folder / "registered", platform) as registered:
        config = folder / "flyte.yaml"
        config.write_text(f"admin:\n  endpoint: {registered.endpoint}\n  insecure: true\n")
        options = ["--remote", "--project", PROJECT, "--domain", DOMAIN]
        options += ["--image", "registry.example/cpu:1"]
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HOME", str(folder))
            patch.chdir(folder)
            done = CliRunner().invoke(main, ["--config", str(config), "run", *options, *command])
    assert done.exit_code == 0, done.output[-3000:]
    return registered


def _with_quick_pigz(folder: Path) -> Path:
    """A folder with a pigz that compresses little, which pyflyte takes: its own way is slow."""
    programs = folder / "programs"
    programs.mkdir()
    program = programs / "pigz"
    program.write_text('#!/bin/sh\n# pigz --no-time -c FILE\nexec gzip -1 -n -c "$3"\n')
    program.chmod(0o755)
    return programs


def _pyflyte(command: list[str | Path], folder: Path, variables: Mapping[str, str]) -> None:
    pyflyte = Path(sys.executable).with_name("pyflyte")
    run_process([pyflyte, *command], cwd=folder, variables={"HOME": str(folder)} | dict(variables))
