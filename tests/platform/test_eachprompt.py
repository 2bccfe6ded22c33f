"""The check that `workflows`, `tasks` and `data_schemas` are this project's."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import run_process

MODULE = Path(__file__).parents[2] / "tasks" / "platform" / "eachprompt.py"
PACKAGES = ("workflows", "tasks", "data_schemas")


def install(site: Path, distribution: str, *packages: str, is_ours: bool = False) -> None:
    """Write what an installer would, with an empty console that prints 'started'."""
    record = site / f"{distribution}-1.0.dist-info"
    record.mkdir(parents=True)
    (record / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    files = [f"{name}/__init__.py" for name in packages]
    (record / "RECORD").write_text("".join(f"{name},,\n" for name in files))
    for name in files:
        (site / name).parent.mkdir(exist_ok=True)
        (site / name).write_text("")
    if is_ours:
        platform = site / "tasks" / "platform"
        platform.mkdir()
        (platform / "__init__.py").write_text("")
        (platform / "console.py").write_text(
            "def main(words):\n    print('started')\n    return 0\n"
        )


def start(*sites: Path) -> subprocess.CompletedProcess[str]:
    """Run the command in an environment that has these folders only."""
    path = f"import sys; sys.path[:0] = {[*map(str, sites)]}"
    code = f"{path}; import runpy; runpy.run_path({str(MODULE)!r})['main']()"
    return run_process(
        [
            sys.executable,
            "-I",
            "-S",
            "-c",
            f"import sys; sys.path[:0] = {[*map(str, sites)]}; {code}",
        ],
        check=False,
    )


def test_an_environment_of_its_own_starts(tmp_path):
    install(tmp_path, "eachprompt", *PACKAGES, is_ours=True)

    done = start(tmp_path)

    assert (0, "started\n") == (done.returncode, done.stdout), done.stderr


@pytest.mark.parametrize("name", PACKAGES)
def test_a_distribution_that_also_installs_one_of_the_packages_is_named(tmp_path, name):
    install(tmp_path, "eachprompt", *PACKAGES, is_ours=True)
    install(tmp_path, "foreign", name)

    done = start(tmp_path)

    assert 2 == done.returncode
    assert f"foreign also installs the package {name}" in done.stderr
    assert "an environment of its own" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_package_of_another_project_that_comes_first_is_named(tmp_path):
    install(tmp_path / "ours", "eachprompt", *PACKAGES, is_ours=True)
    install(tmp_path / "theirs", "tasks", "tasks")

    done = start(tmp_path / "theirs", tmp_path / "ours")

    assert 2 == done.returncode
    assert f"{tmp_path / 'theirs' / 'tasks'} is the package of another project" in done.stderr


def test_packages_in_different_folders_are_named(tmp_path):
    install(tmp_path / "ours", "eachprompt", *PACKAGES, is_ours=True)
    install(tmp_path / "copy", "eachprompt", "workflows")

    done = start(tmp_path / "copy", tmp_path / "ours")

    assert 2 == done.returncode
    assert "the packages lie in different folders" in done.stderr


def test_a_package_that_is_missing_is_named(tmp_path):
    install(tmp_path, "eachprompt", "tasks", "data_schemas", is_ours=True)

    done = start(tmp_path)

    assert 2 == done.returncode
    assert "the package workflows is missing" in done.stderr
