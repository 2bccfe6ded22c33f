"""The operator's guide from its first line to its last, on the stack; the line that fails is named.

    python -m pytest -m stack tests/test_rehearsal.py

MLflow with its users, S3 with its policies, PostgreSQL, openssl, the smoke test, its audit and a
night are real, and each is what the guide's table calls it: pods, auditor. In the place of Flyte is
an admin that compiles what is registered and started; docker, flytectl and kubectl note down
what they are asked. `tests/test_cluster.py` has the same pipeline pod by pod.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from containers.stack import GRANTS, PODS
from tasks.errors import DataError
from tasks.provenance.lineage.connection import connect
from tests.packages import ROOT
from tests.processes import run_process
from tests.test_guide import COMMANDS, STEPS, carry_out, script
from tests.test_pipeline import SAMPLE_WORLD

pytestmark = [pytest.mark.stack, pytest.mark.timeout(3600)]

PASSWORD = "of-the-rehearsal-1"
OWN = "guide-"
"""Before the name of an identity that the guide's lines create; the stack has made its own."""


def with_own_identities(lines: str) -> str:
    """The lines of the guide that create users, for users that are not there yet."""
    for who in GRANTS:
        lines = lines.replace(f'"username": "{who}"', f'"username": "{OWN}{who}"')
    named = f"for who in {' '.join(GRANTS)}; do"
    assert named in lines
    lines = lines.replace(named, f"for who in {' '.join(OWN + who for who in GRANTS)}; do")
    return lines.replace('"password": "..."', f'"password": "{PASSWORD}"')


def test_every_line_of_the_guide_holds_on_the_stack(stack, tmp_path, monkeypatch):
    stack.up()
    name = f"rehearsal-{os.getpid()}-{tmp_path.name[-6:]}"
    lines = with_own_identities(script((*COMMANDS, "mlflow()")))
    administrator = {
        "MLFLOW_ADMIN_PASSWORD": stack.access.mlflow_password,
        "MLFLOW_TRACKING_URI": stack.access.mlflow,
    }

    # Steps 1 to 10: images, quotas, users, secrets, templates, registration and starts.
    (tmp_path / "guide").mkdir()
    registered, others = carry_out(lines, tmp_path / "guide", administrator)
    started = [request.spec.launch_plan.name for request in registered.started]
    assert ["cpu_smoke", "workflows.audit.audit", "single_node"] == started
    assert "kubectl create secret generic eachprompt" in others

    # Step 4: what each identity may do in MLflow.
    def be(who: str):
        monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", who)
        monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", PASSWORD)
        return connect(stack.access.mlflow)

    model = f"{name}-rights"
    be(f"{OWN}{PODS}").create_registered_model(model)
    with pytest.raises(DataError, match="lacks EDIT on the registered model"):
        be(f"{OWN}auditor").update_registered_model(model, description="x")
    assert model == be(f"{OWN}auditor").get_registered_model(model).name
    be(f"{OWN}gc").update_registered_model(model, description="x")

    # Step 5: the key, by the two commands in its text.
    commands = re.findall(r"`(openssl [^`]+)`", STEPS)
    assert 2 == len(commands)
    for command in commands:
        subprocess.run(shlex.split(command), cwd=tmp_path, check=True, capture_output=True)

    # Steps 8 and 10 on this machine: smoke test, audit, night.
    pyflyte = Path(sys.executable).with_name("pyflyte")
    own = {"HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    own |= {"EACHPROMPT_SIGNING_KEY": str(tmp_path / "signing_key.pem")}
    store = f"s3://eachprompt/{name}/smoke"

    def run(who: str, *words: str) -> str:
        done = run_process(
            [pyflyte, "run", *words, "--store", store],
            cwd=ROOT,
            variables=own | stack.access.variables(who),
        )
        return done.stdout

    small = SAMPLE_WORLD | {"release": SAMPLE_WORLD["release"] | {"name": name}}
    smoke = ("workflows/launch_plans.py", "cpu_smoke", "--settings", json.dumps(small))
    assert "Released." in run(PODS, *smoke)
    audit = ("workflows/audit.py", "audit", "--model", f"models:/{name}@released")
    assert "PROVED" in run("auditor", *audit)
    (tmp_path / "inbox").mkdir()
    night = ("workflows/retrain.py", "retrain", "--inbox", str(tmp_path / "inbox"))
    assert "Not retrained: nothing new" in run(PODS, *night, "--model", name)
