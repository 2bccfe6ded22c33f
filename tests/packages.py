"""What pyflyte sends to a cluster, by either of its two commands."""

import os
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path

from tests.admin import Registered, recording_admin

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


def register_into(folder: Path, variables: Mapping[str, str]) -> Registered:
    """Run `pyflyte register` against an admin that records."""
    (folder / "registered").mkdir()
    with recording_admin(folder / "registered") as registered:
        config = folder / "flyte.yaml"
        config.write_text(f"admin:\n  endpoint: {registered.endpoint}\n  insecure: true\n")
        command = ["--config", config, "register", "--image", "registry.example/cpu:1"]
        command += ["--project", PROJECT, "--domain", DOMAIN, "--version", VERSION]
        command += ["--copy", "all", "--service-account", "trainer", "--activate-launchplans"]
        _pyflyte([*command, ROOT / "workflows"], folder, variables)
    return registered


def _pyflyte(command: list[str | Path], folder: Path, variables: Mapping[str, str]) -> None:
    pyflyte = Path(sys.executable).with_name("pyflyte")
    environment = os.environ | {"HOME": str(folder)} | variables
    done = subprocess.run(
        [pyflyte, *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
