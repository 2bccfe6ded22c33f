"""Users of MLflow without rights: what they may do by themselves, and what they are told."""

import base64
import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from tasks.errors import DataError, SettingsError
from tasks.provenance.lineage.connection import require_access
from tasks.provenance.lineage.lookup import Lookup
from tests.processes import serving


class Server(BaseHTTPRequestHandler):
    """MLflow with `NO_PERMISSIONS`: 403 for a model that is not the user's, there or not."""

    owners: dict[str, str]

    def do_GET(self):
        path, query = urlsplit(self.path).path, parse_qs(urlsplit(self.path).query)
        if path.endswith("get-by-name"):
            self._say(404, {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "no experiment"})
        elif self._user() != self.owners.get(query["name"][0]):
            self._say(403, "Permission denied")
        elif path.endswith("registered-models/get"):
            self._say(200, {"registered_model": {"name": query["name"][0]}})
        else:
            self._say(400, {"error_code": "INVALID_PARAMETER_VALUE", "message": "no alias"})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")
        path, name = self.path, body.get("name")
        if path.endswith("registered-models/create"):
            if name in self.owners:
                self._say(400, {"error_code": "RESOURCE_ALREADY_EXISTS", "message": "there"})
                return
            self.owners[name] = self._user()
            self._say(200, {"registered_model": {"name": name}})
        elif path.endswith("registered-models/set-tag") and self._user() != self.owners[name]:
            self._say(403, "Permission denied")
        else:
            self._say(200, {})

    def log_message(self, format, *args):
        pass

    def _user(self):
        return base64.b64decode(self.headers["Authorization"].split()[1]).decode().split(":")[0]

    def _say(self, status, answer):
        body = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def mlflow(monkeypatch):
    """The address of a server, for the user `pods`."""
    handler = type("Owned", (Server,), {"owners": {}})
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "pods")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "word")
    with HTTPServer(("127.0.0.1", 0), handler) as server, serving(server):
        yield f"http://127.0.0.1:{server.server_port}"


def test_a_model_that_nobody_registered_becomes_the_users_and_has_no_release(mlflow):
    with pytest.raises(DataError, match="'pods' lacks READ on the registered model 'shop', or"):
        Lookup(mlflow).version("models:/shop@released")

    require_access(mlflow, "shop")

    with pytest.raises(SettingsError, match="Nothing was released under that name"):
        Lookup(mlflow).version("models:/shop@released")


def test_a_model_of_somebody_else_is_refused_with_the_right_that_lacks(mlflow, monkeypatch):
    require_access(mlflow, "shop")
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "night")

    with pytest.raises(SettingsError, match="'night' lacks EDIT on the registered model 'shop'"):
        require_access(mlflow, "shop")
