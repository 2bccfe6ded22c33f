"""Files of a data set on the hub: a server on this machine answers as the hub does."""

import base64
import hashlib
import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tasks.errors import SettingsError
from tasks.store.hub import copy_dataset
from tests.processes import run_process
from tests.test_layout import ROOT

COMMIT = "0123456789abcdef0123456789abcdef01234567"
ROW = b'{"question": "3 + 4?", "answer": "7\\n#### 7"}\n'
OUTSIDE = "../../../../../../planted.jsonl"
FILES = {
    "README.md": b"# A card",
    "main/train-0.jsonl": ROW,
    "main/train-1.jsonl": ROW * 2,
    "main/test-0.jsonl": ROW * 3,
}
PUSHED: dict[str, bytes] = {}
COPY = """
import json, sys
from pathlib import Path
from tasks.errors import DataError, SettingsError
from tasks.store.hub import copy_dataset
for place, uri in enumerate(json.loads(sys.argv[1])):
    out = Path(sys.argv[2]) / str(place)
    try:
        found = copy_dataset(uri, out, [".jsonl"])
        print(json.dumps(sorted(str(p.relative_to(out)) for p in [found, *found.glob("*")])))
    except (SettingsError, DataError) as error:
        print(json.dumps(str(error)))
"""


class Hub(BaseHTTPRequestHandler):
    """What huggingface_hub asks: which files a revision has, and each of them at a commit."""

    def do_GET(self) -> None:
        _, _, path = self.path.partition("/datasets/")
        if path.startswith("shop/evil/revision/"):
            named = path.rpartition("/")[2] == "name"
            siblings = [{"rfilename": OUTSIDE if named else "rows.jsonl"}]
            sha = COMMIT if named else "../" * 13 + "x"
            found = {"id": "shop/evil", "sha": sha, "siblings": siblings}
            self._send(json.dumps(found).encode(), 200, "")
            return
        if path.startswith("shop/rows/revision/"):
            known = path.rpartition("/")[2] in ("main", "v1", COMMIT)
            siblings = [{"rfilename": name} for name in FILES]
            found = {"id": "shop/rows", "sha": COMMIT, "siblings": siblings}
            code = "RevisionNotFound"
            self._send(json.dumps(found if known else {}).encode(), 200 if known else 404, code)
            return
        content = FILES.get(path.removeprefix(f"shop/rows/resolve/{COMMIT}/"))
        self._send(content or b"", 404 if content is None else 200, "RepoNotFound")

    do_HEAD = do_GET

    def do_POST(self) -> None:
        """Make a repository, say which files go into the commit itself, and take them."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        place = self.path.removeprefix("/api/")
        address = f"http://{self.headers['Host']}/shop/model"
        if place == "repos/create":
            found: dict[str, object] = {"url": address, "name": "shop/model", "id": "shop/model"}
        elif place.startswith("models/shop/model/preupload/"):
            names = [one["path"] for one in json.loads(body)["files"]]
            found = {
                "files": [
                    {"path": n, "uploadMode": "regular", "shouldIgnore": False} for n in names
                ]
            }
        elif place == "validate-yaml":  # of the card
            found = {"errors": [], "warnings": []}
        else:
            lines = [json.loads(line) for line in body.splitlines()]
            for line in (one["value"] for one in lines if one["key"] == "file"):
                PUSHED[line["path"]] = base64.b64decode(line["content"])
            found = {"commitUrl": f"{address}/commit/{COMMIT}", "commitOid": COMMIT}
        self._send(json.dumps(found).encode(), 200, "")

    def _send(self, payload: bytes, status: int, code: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(payload)))
        self.send_header("Content-Type", "application/json")
        self.send_header("ETag", f'"{hashlib.sha256(payload).hexdigest()}"')
        self.send_header("X-Repo-Commit", COMMIT)
        if status != 200:
            self.send_header("X-Error-Code", code)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(payload)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def copied(folder: Path, endpoint: str, uris: list[str], offline: str = "0") -> list:
    """Copy each address in a process that knows this hub only; return the files or errors."""
    variables = {"HF_ENDPOINT": endpoint, "HF_HUB_OFFLINE": offline, "HF_HOME": str(folder / "hf")}
    done = run_process(
        [sys.executable, "-c", COPY, json.dumps(uris), str(folder)],
        cwd=ROOT,
        variables=variables | {"PYTHONPATH": str(ROOT)},
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.attack
def test_what_a_hub_names_is_written_nowhere_else(tmp_path, endpoint):
    asked = ["hf://datasets/shop/evil@name", "hf://datasets/shop/evil@commit"]
    by_name, by_commit = copied(tmp_path / "a" / "b", endpoint, asked)

    assert f"the hub names {OUTSIDE!r}, which is of no file of a data set" in by_name
    assert "the hub names no commit" in by_commit
    assert not [*tmp_path.rglob("*.jsonl")]


def test_files_of_the_hub_are_copied_at_the_commit_that_their_revision_has(tmp_path, endpoint):
    asked = [
        "hf://datasets/shop/rows/main",
        "hf://datasets/shop/rows@v1/main/train-*.jsonl",
        f"hf://datasets/shop/rows@{COMMIT}/main/test-0.jsonl",
        "hf://datasets/shop/rows",
        "hf://datasets/shop/rows@v2/main",
        "hf://datasets/shop/none/main",
    ]
    folder, train, test, *refused = copied(tmp_path, endpoint, asked)

    place = f"hf/shop/rows/{COMMIT}/main"
    of_training = [f"{place}/train-0.jsonl", f"{place}/train-1.jsonl"]
    assert [place, f"{place}/test-0.jsonl", *of_training] == folder
    assert [place, *of_training] == train
    assert [f"{place}/test-0.jsonl"] == test
    assert ROW * 3 == (tmp_path / "2" / test[0]).read_bytes()
    assert "no such file; files that can be read are in main" in refused[0]
    assert "404" in refused[1]
    assert "404" in refused[2]


PUSH = """
import sys
from pathlib import Path
from tasks.errors import SettingsError
from tasks.store.hub import push_model
try:
    print(push_model(Path(sys.argv[1]), "shop/model"))
except SettingsError as error:
    print(error)
"""


def pushed(folder: Path, endpoint: str) -> str:
    """Push a folder in a process that knows this hub only."""
    variables = {"HF_ENDPOINT": endpoint, "HF_HUB_OFFLINE": "0", "HF_HOME": str(folder / "hf")}
    (folder / "model").mkdir()
    (folder / "model" / "README.md").write_text("# Mine")
    done = run_process(
        [sys.executable, "-c", PUSH, str(folder / "model")],
        cwd=ROOT,
        variables=variables | {"PYTHONPATH": str(ROOT), "HF_TOKEN": "hf_x"},
    )
    return done.stdout.strip()


def test_a_folder_is_pushed_to_the_hub(tmp_path, endpoint):
    assert f"{endpoint}/shop/model" == pushed(tmp_path, endpoint)
    assert b"# Mine" == PUSHED["README.md"]


def test_without_a_network_the_command_for_later_is_named(tmp_path):
    told = pushed(tmp_path, "http://127.0.0.1:9")

    assert "cannot be reached" in told
    assert f"hf upload shop/model {tmp_path / 'model'}" in told
    assert 1 == len(told.splitlines())


@pytest.mark.parametrize(
    ("offline", "told"),
    [
        ("1", "HF_HUB_OFFLINE is set. Unset it. Download"),
        ("0", "http://127.0.0.1:9 cannot be reached ("),
    ],
)
def test_without_a_network_the_address_is_named(tmp_path, offline, told):
    (error,) = copied(tmp_path, "http://127.0.0.1:9", ["hf://datasets/shop/rows/main"], offline)

    assert error.startswith("hf://datasets/shop/rows/main: ")
    assert told in error


@pytest.mark.parametrize(
    "uri", ["hf://shop/rows", "hf://datasets/rows", "hf://datasets//rows", "hf://models/shop/rows"]
)
def test_another_form_of_address_is_refused_with_an_example(tmp_path, uri):
    with pytest.raises(SettingsError, match="Example: hf://datasets/openai/gsm8k/main/train"):
        copy_dataset(uri, tmp_path, [".jsonl"])
