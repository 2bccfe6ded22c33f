"""schemathesis asks an endpoint what its own OpenAPI document allows, and what it does not."""

import subprocess
from pathlib import Path

from tests.test_layout import ROOT

PROGRAM = ROOT / ".venv-tools" / "bin" / "schemathesis"
# 400: what the document allows and the model cannot do, such as a prompt beyond its positions.
SETTINGS = '[checks.positive_data_acceptance]\nexpected-statuses = ["2xx", 400]\n'


def complaints(address: str, folder: Path) -> str:
    """Return what schemathesis found; '' if every answer was as the document says.

    Args:
        address: of the server.
        folder: for its settings and what it keeps.
    """
    (folder / "schemathesis.toml").write_text(SETTINGS)
    command = [
        *(PROGRAM, "--config-file", folder / "schemathesis.toml", "run"),
        *(f"{address}/openapi.json", "--max-examples", "100", "--seed", "1", "--no-color"),
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert "2 selected / 2 total" in done.stdout, done.stdout + done.stderr
    return done.stdout if done.returncode else ""
