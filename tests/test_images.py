"""The lines of each Dockerfile in a Debian root (make test-images): needs root, no Docker."""

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.image_root import ROOT, Image, make_base

pytestmark = [pytest.mark.images, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Path:
    return make_base(tmp_path_factory.mktemp("base") / "root")


@pytest.fixture
def image(base, tmp_path, request):
    root = tmp_path / request.param
    subprocess.run(["cp", "--archive", "--reflink=auto", base, root], check=True)
    yield Image(root)
    shutil.rmtree(root)


@pytest.mark.parametrize("image", ["cpu"], indirect=True)
def test_the_cpu_image_runs_the_whole_pipeline_and_its_audit(image):
    image.build(ROOT / "containers/cpu.Dockerfile")

    command = "pyflyte run workflows/{}.py {} --store /root/runs"
    released = image.run("OMP_NUM_THREADS=1 " + command.format("post_training", "post_training"))
    assert "Released" in released
    audited = image.run(command.format("audit", "audit"))
    assert "PROVED" in audited


DOUBLE = r"""
from tasks.gym.sandbox.runner import Sandbox
from tasks.gym.sandbox.toolchains import Language, build
programs = {
    Language.PYTHON: "print(2 * int(input()))",
    Language.CPP: "#include <iostream>\nint main() { int a; std::cin >> a; std::cout << 2 * a; }",
    Language.JAVA: "import java.util.Scanner; class Main { public static void main(String[] a) {"
    " System.out.print(2 * new Scanner(System.in).nextInt()); } }",
}
sandbox = Sandbox()
for language, source in programs.items():
    made = build(language, source, limits=sandbox.limits)
    ran = sandbox.execute(made, ["21"], lambda _, run: "" if run.output.split() == ["42"] else "no")
    print(language.value, ran.end, ran.why)
sandbox.close()
"""


@pytest.mark.parametrize("image", ["sandbox"], indirect=True)
def test_the_sandbox_image_runs_all_three_languages_and_holds_no_engine(image):
    image.build(ROOT / "containers/sandbox.Dockerfile")

    judged = image.run(f"python -c {shlex.quote(DOUBLE)}")
    assert ["python done", "cpp done", "java done"] == [
        line.strip() for line in judged.splitlines()
    ]
    assert "nothing" == image.run("python -c 'import torch' 2>/dev/null || printf nothing")


@pytest.mark.parametrize("image", ["mlflow"], indirect=True)
def test_the_image_of_the_mlflow_server_holds_what_its_command_needs(image):
    image.build(ROOT / "containers/mlflow.Dockerfile")

    image.run("sh -n mlflow_server.sh && python -c 'import psycopg, flask_wtf, boto3'")
    assert "Usage: mlflow server" in image.run("mlflow server --app-name basic-auth --help")


@pytest.mark.parametrize("image", ["rollout", "trainer"], indirect=True)
def test_every_package_of_a_gpu_image_has_a_file_for_its_platform(image):
    image.build(ROOT / f"containers/{image.root.name}.Dockerfile", dry=True)

    assert "1000\n" == image.run("id -u")
    libraries = image.run("/sbin/ldconfig --print-cache")
    assert all(f"{name}.so" in libraries for name in ("libibverbs", "librdmacm", "libmlx5"))
