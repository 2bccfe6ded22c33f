"""A published release proves itself where its store is not, and says nothing of where it was."""

import base64
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from data_schemas.artifacts import StoreRef
from data_schemas.audits import AuditReport
from tasks.errors import DataError, SettingsError, TamperError
from tasks.provenance.audit.papers import PAPERS, paper
from tasks.provenance.audit.published import audit_published
from tasks.provenance.audit.text import verdict
from tasks.provenance.audit.walk import audit
from tasks.provenance.lineage.publication import KIND, is_own_form
from tasks.provenance.lineage.signatures import dsse
from tasks.provenance.lineage.signatures.keys import (
    KEY_VARIABLE,
    find_signer,
    public_path,
    read_public_keys,
)
from tasks.provenance.lineage.signatures.working import seal, type_of
from tasks.provenance.lineage.statements import open_statement
from tasks.provenance.release.card import VERIFY
from tasks.provenance.release.publish import publish_release
from tasks.settings.early import check
from tasks.store.interface import store_at
from tests.provenance.audit.conftest import Maker
from tests.test_layout import ROOT
from tests.tracking_servers import copy_database

TELLING = "ann.example-laptop"
KEYS = "provenance/keys.pem"
RELEASED = "models:/tiny@released"


@pytest.fixture(scope="module")
def original(tmp_path_factory, migrated) -> StoreRef:
    """A store whose base and raw files lie in a folder with a telling name."""
    home = tmp_path_factory.mktemp("homes") / TELLING
    outside = home / "My Tables"
    (outside / "base").mkdir(parents=True)
    (outside / "base" / "model.safetensors").write_bytes(b"base" * 10)
    (outside / "base" / "config.json").write_text("{}")
    (outside / "gsm8k.jsonl").write_text('{"question": "1+1", "answer": "2"}\n')
    store = home / "runs"
    identity = store_at(str(store)).open()
    copy_database(migrated, store / "mlflow.db")
    ref = StoreRef(uri=str(store), id=identity, tracking_uri=f"sqlite:///{store}/mlflow.db")
    Maker(ref, outside).run()
    return ref


@pytest.fixture(scope="module")
def published(original, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("out") / "tiny"
    publish_release(RELEASED, original, folder)
    return folder


@pytest.fixture
def copy(published, tmp_path) -> Path:
    return Path(shutil.copytree(published, tmp_path / "tiny"))


def audited(folder: Path) -> AuditReport:
    return audit_published(folder, read_public_keys(public_path()))


def statements(folder: Path) -> list[Path]:
    return sorted((folder / "provenance" / "statements").iterdir())


def own_form(folder: Path) -> Path:
    """A statement that was signed once more without its places."""
    return next(path for path in statements(folder) if is_own_form(path.read_bytes()))


def test_the_folder_alone_proves_the_chain_and_says_what_it_leaves_open(copy):
    report = audited(copy)

    assert () == report.findings
    listed = json.loads((copy / "manifest.json").read_bytes())["statements"]
    assert len(listed) + 1 == report.statements == len(statements(copy))
    released = [name for name in leaving(copy) if not name.startswith("provenance/")]
    assert len(released) == report.objects
    text = verdict(report)
    assert text.startswith(f"PROVED: {report.statements} statements and {report.objects} files")
    assert "Not proved here: the contents of" in text
    assert "the places in 1 of the statements, signed once more" in text
    assert "of --key" in text


def test_without_a_key_nobody_vouches(copy):
    assert "no --key was given" in verdict(audit_published(copy))


def to_cache(folder: Path) -> Path:
    """Lay a download out as the hub's cache does: links into blobs, named by their content."""
    home = folder.parent / "models--ann--tiny"
    snapshot = home / "snapshots" / ("c" * 40)
    (home / "blobs").mkdir(parents=True)
    for number, path in enumerate(sorted(folder.rglob("*"))):
        if path.is_file():
            link = snapshot / path.relative_to(folder)
            link.parent.mkdir(parents=True, exist_ok=True)
            path.rename(home / "blobs" / str(number))
            link.symlink_to(os.path.relpath(home / "blobs" / str(number), link.parent))
    return snapshot


def test_a_cache_of_links_is_proved(copy):
    snapshot = to_cache(copy)

    assert () == audited(snapshot).findings
    weights = snapshot / "model.safetensors"
    weights.resolve().write_bytes(b"other weights")
    assert {"model.safetensors"} == {one.object for one in audited(snapshot).findings}
    weights.unlink()
    weights.symlink_to("/dev/zero")
    assert ["is no regular file"] == [one.problem for one in audited(snapshot).findings]


def test_what_the_hub_and_its_client_write_is_no_finding_and_a_changed_card_is_named(copy):
    (copy / ".gitattributes").write_text("*.safetensors filter=lfs")
    (copy / ".cache" / "huggingface" / "download").mkdir(parents=True)
    (copy / ".cache" / "huggingface" / "download" / "config.json.metadata").write_text("c")
    (copy / "README.md").write_text("---\nlicense: mit\n---\nedited on the hub")

    report = audited(copy)

    assert () == report.findings
    assert "README.md, which is not the card that was released" in verdict(report)


def _replace(name: str, old: bytes, new: bytes) -> Callable[[Path], object]:
    def tamper(folder: Path) -> None:
        content = (folder / name).read_bytes()
        assert old in content
        (folder / name).write_bytes(content.replace(old, new))

    return tamper


def _sign_as_somebody(folder: Path) -> None:
    """Whoever has no key of the release signs other settings for the same statement."""
    path = own_form(folder)
    envelope = dsse.Envelope.model_validate_json(path.read_bytes())
    payload = dsse.payload_of(envelope, type_of(KIND, path.stem))
    other = payload.replace(b'"rows":', b'"row_":')
    before = os.environ[KEY_VARIABLE]
    os.environ[KEY_VARIABLE] = str(folder.parent / "other.pem")
    try:
        find_signer()
        path.write_bytes(seal(KIND, path.stem, other))
    finally:
        os.environ[KEY_VARIABLE] = before


def _swap(folder: Path) -> None:
    """A form that was signed for one statement lies under the name of another."""
    one = own_form(folder)
    # Not that of the release, without which the folder is refused as a whole.
    others = [path for path in statements(folder) if path != one and stage_of(path) != "release"]
    shutil.copy(one, others[0])


def stage_of(path: Path) -> str:
    payload = json.loads(base64.b64decode(json.loads(path.read_bytes())["payload"]))
    return payload["predicate"]["buildDefinition"]["externalParameters"]["stage"]


TAMPERING: dict[str, tuple[Callable[[Path], object], str]] = {
    "weights": (_replace("model.safetensors", b"policy", b"poison"), r"sha256 is .*, released"),
    "code": (lambda folder: (folder / "modeling_x.py").write_text(""), "added after publication"),
    "a pickle in a folder": (
        lambda folder: ((folder / "x").mkdir(), (folder / "x" / "a.bin").write_bytes(b"")),
        "added after publication",
    ),
    "a linked folder": (
        lambda folder: (folder / "x").symlink_to(folder.parent),
        "added after publication",
    ),
    "a file gone": (lambda folder: (folder / "config.json").unlink(), "removed after"),
    "manifest": (_replace("manifest.json", b'"tiny"', b'"tidy"'), r"sha256 is .*, released"),
    "bill": (_replace("bom.cdx.json", b"tiny", b"tidy"), r"sha256 is .*, released"),
    "a statement edited": (
        lambda folder: own_form(folder).write_bytes(
            own_form(folder).read_bytes().replace(b'"payload":"eyJ', b'"payload":"eyK')
        ),
        r"the signature of key \w+ does not fit",
    ),
    "a statement gone": (lambda folder: own_form(folder).unlink(), "gone"),
    "a statement more": (
        lambda folder: shutil.copy(
            own_form(folder), folder / "provenance" / "statements" / f"{'0' * 64}.json"
        ),
        "added after publication",
    ),
    "a form of another statement": (_swap, "the payload is of type"),
    "a form signed by somebody": (_sign_as_somebody, "not by --key"),
    "signature gone": (lambda folder: (folder / "provenance" / "model.sig").unlink(), "gone"),
    "signature edited": (
        _replace("provenance/model.sig", b'"sig":"M', b'"sig":"N'),
        "does not fit",
    ),
}


@pytest.mark.attack
@pytest.mark.parametrize("how", TAMPERING)
def test_everything_that_was_changed_after_publication_is_a_finding(copy, how, monkeypatch):
    monkeypatch.setenv(KEY_VARIABLE, str(public_path()).removesuffix(".pub"))
    tamper, problem = TAMPERING[how]
    tamper(copy)

    findings = audited(copy).findings

    assert any(re.search(problem, one.problem) for one in findings), findings


@pytest.mark.attack
def test_a_form_of_another_statement_is_not_the_release(copy):
    (released,) = (path for path in statements(copy) if stage_of(path) == "release")
    shutil.copy(own_form(copy), released)

    with pytest.raises(TamperError, match="0 statements of a release"):
        audited(copy)


@pytest.mark.attack
def test_other_lists_of_files_are_no_release_and_a_stranger_s_key_proves_nothing(copy, tmp_path):
    stranger = tmp_path / "stranger.pem"
    subprocess.run(
        ["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", stranger],
        check=True,
    )
    public = tmp_path / "stranger.pub"
    subprocess.run(["openssl", "pkey", "-in", stranger, "-pubout", "-out", public], check=True)
    report = audit_published(copy, read_public_keys(public))
    problems = [one.problem for one in report.findings]
    assert len(statements(copy)) + 1 == sum("not by --key" in one for one in problems)

    for path in (copy / "provenance" / "objects").glob("*/MANIFEST.json"):
        path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(TamperError, match="0 statements of a release made what"):
        audited(copy)


def test_a_folder_without_proof_is_refused(tmp_path):
    with pytest.raises(SettingsError, match="has no provenance/statements"):
        audited(tmp_path)


@pytest.mark.attack
def test_a_store_takes_no_statement_in_the_form_of_a_publication(copy):
    path = own_form(copy)

    with pytest.raises(DataError, match="the payload is of type"):
        open_statement(path.read_bytes(), path.stem, str(copy / "provenance"))


def leaving(folder: Path) -> dict[str, str]:
    """Everything that leaves, with what stands in envelopes and bundles."""
    texts = {}
    for path in folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            inner = [base64.b64decode(one) for one in re.findall(rb'"payload":"([^"]+)"', content)]
            texts[path.relative_to(folder).as_posix()] = b"\n".join([content, *inner]).decode(
                errors="replace"
            )
    return texts


def test_nothing_that_leaves_names_the_publishers_machine(original, published):
    texts = leaving(published)
    report = audit(RELEASED, original.tracking_uri, original.uri)
    texts |= {kind: paper(kind, report, original.uri) for kind in PAPERS}

    words = (TELLING, "My Tables", "My%20Tables", "file://", str(Path.home()) + "/", str(ROOT))
    found = [(name, word) for name, text in texts.items() for word in words if word in text]
    assert [] == found
    # Origins are still named, with their digests.
    raw = json.loads(texts["manifest.json"].partition("\n")[0])["raw_files"]
    assert {"base", "gsm8k.jsonl"} <= {name.partition("@")[0] for name in raw}
    assert all("gsm8k.jsonl@" in texts[name] for name in ("README.md", "bom.cdx.json"))


def test_a_release_that_names_a_place_is_not_published(original, tmp_path, monkeypatch):
    """As one of an earlier version does, or one with a template that was written by hand."""
    monkeypatch.setattr("tasks.provenance.release.publish.ALWAYS", (b'"released":',))
    with pytest.raises(SettingsError, match=r"gate\.json .* names a place of this machine"):
        publish_release(RELEASED, original, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_no_two_names_of_a_published_release_differ_in_case_only(published):
    names = [path.relative_to(published).as_posix() for path in published.rglob("*")]

    assert len(names) == len({name.lower() for name in names})
    assert {0o644} == {(published / name).stat().st_mode & 0o777 for name in leaving(published)}


def card_commands(folder: Path) -> list[str]:
    section = (folder / "README.md").read_text().split("## Verification")[1]
    assert VERIFY in section
    return re.sub(r"\\\n\s+", "", VERIFY).strip().splitlines()


@pytest.mark.slow
def test_the_command_of_the_card_proves_the_folder_in_an_empty_place(copy, tmp_path):
    ours, _ = card_commands(copy)
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path / "home"),
        "PYTHONPATH": str(ROOT),
    }
    before = leaving(copy)

    done = subprocess.run(
        ours, shell=True, cwd=copy, env=environment, capture_output=True, text=True, check=False
    )

    assert (0, True) == (done.returncode, "PROVED: " in done.stdout), done.stdout + done.stderr
    assert before == leaving(copy)
    (copy / "model.safetensors").write_bytes(b"other")
    done = subprocess.run(
        ours, shell=True, cwd=copy, env=environment, capture_output=True, text=True, check=False
    )
    assert (1, True) == (done.returncode, "BROKEN: 1 finding" in done.stderr), done.stderr


@pytest.mark.tools
@pytest.mark.parametrize("layout", ["as published", "as the hub has it", "a cache of links"])
def test_model_signing_proves_the_folder_as_the_card_says(copy, layout):
    _, theirs = card_commands(copy)
    folder = copy
    if layout != "as published":
        (copy / ".gitattributes").write_text("*.safetensors filter=lfs")
        (copy / ".cache" / "huggingface").mkdir(parents=True)
        (copy / ".cache" / "huggingface" / "CACHEDIR.TAG").write_text("c")
        (copy / "README.md").write_text("edited on the hub")
    if layout == "a cache of links":
        folder = to_cache(copy)
        theirs += " --allow_symlinks"

    def verify() -> tuple[int, str]:
        done = subprocess.run(
            theirs,
            shell=True,
            cwd=folder,
            env={"PATH": f"{ROOT}/.venv-tools/bin:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    code, output = verify()
    assert (0, True) == (code, "Verification succeeded" in output), output
    (folder / "modeling_x.py").write_text("")
    code, output = verify()
    assert (1, True) == (code, "Extra files found" in output), output


def test_a_folder_needs_no_store_and_takes_no_model_beside_it(copy, tmp_path):
    typed = {"folder": str(copy), "store": str(tmp_path / "no_store")}
    check("audit", typed, None)

    with pytest.raises(SettingsError, match="leave out --model"):
        check("audit", typed | {"model": "models:/tiny@released"}, None)
