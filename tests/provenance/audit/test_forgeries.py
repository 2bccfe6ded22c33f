"""Forgeries by whoever has the disk and MLflow, but not the key: the audit names each of them."""

import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from data_schemas.artifacts import CheckpointRef, Context, Execution, StoreRef
from data_schemas.drift import Drift, NightDetails
from data_schemas.settings import MergeSettings
from data_schemas.statements import ExecutionRecord
from tasks.formats.nights import save
from tasks.provenance.audit.evidence import Evidence
from tasks.provenance.audit.text import verdict
from tasks.provenance.audit.walk import audit
from tasks.provenance.lineage.attestation import to_payload
from tasks.provenance.lineage.connection import connect
from tasks.provenance.lineage.promotions import AFTER, NUMBER, promotion_problems, promotions
from tasks.provenance.lineage.registry import logged_model, register_release
from tasks.provenance.lineage.signatures.dsse import fingerprint, seal, signer_of
from tasks.provenance.lineage.signatures.keys import (
    KEY_VARIABLE,
    PublicKey,
    TrustedKeys,
    find_signer,
    public_path,
    read_public_keys,
)
from tasks.provenance.lineage.signatures.pages import write_page
from tasks.provenance.lineage.signatures.time_stamps import (
    SERVICE_VARIABLE,
    read_authorities,
    stamp_uri,
)
from tasks.provenance.lineage.stage import stage
from tasks.provenance.lineage.statements import load_statement, statement_uri
from tasks.provenance.release import evidence as release_evidence
from tasks.store.files import canonical_json, sha256_bytes
from tasks.store.interface import store_at
from tasks.store.local import new_object
from tests.provenance.audit.conftest import Chain, Maker
from tests.time_stamp_service import TimeStampService

pytestmark = [
    pytest.mark.attack,
    pytest.mark.parametrize("original", ["sqlite"], indirect=True),
]
RELEASED = "models:/tiny@released"
UNSIGNED = "is not a page that was signed; one of an earlier version may be moved out of the store"


@pytest.fixture
def owner() -> TrustedKeys:
    """The public key of whoever made the chain."""
    signer = find_signer()
    assert signer
    return {signer.public: PublicKey("owner")}


def problems(chain: Chain, owner: TrustedKeys, model: str = RELEASED) -> list[str]:
    report = audit(model, chain.tracking_uri, str(chain.store), owner)
    return [one.problem for one in report.findings]


def store_of(chain: Chain) -> StoreRef:
    return StoreRef(uri=str(chain.store), id="x", tracking_uri=chain.tracking_uri)


def foreign_object(chain: Chain) -> CheckpointRef:
    """Put foreign weights into the store, as whoever has the disk can."""
    with new_object(chain.store) as (folder, committed):
        (folder / "model.safetensors").write_bytes(b"foreign weights")
        (folder / "config.json").write_text("{}")
    return CheckpointRef(uri=committed.uri, digest=committed.digest, statement="")


def train_on(chain: Chain, start: CheckpointRef) -> str:
    """An honest run trains on what it was handed; the digest of its statement."""
    run = Execution(id="e9", started=9.0)
    with stage("rl/two", MergeSettings(), Context(store_of(chain), run), "c2") as record:
        record.read("start", start)
        with record.output("model") as out:
            (out / "model.safetensors").write_bytes(b"trained on")
        return record.ref("model", CheckpointRef).statement


def test_an_object_of_the_store_that_no_statement_made_is_no_root(chain, owner):
    root = train_on(chain, foreign_object(chain))
    found = Evidence(str(chain.store), owner)
    found.visit(root)

    (finding,) = found.findings[root]
    assert "of which no statement says what made it" in finding.problem


@pytest.mark.parametrize("scheme", ["file://", "an earlier place of the store"])
def test_an_object_of_the_store_is_no_source_under_another_scheme(chain, owner, scheme, tmp_path):
    start = foreign_object(chain)
    run = Execution(id="e9", started=9.0)
    folder = Path(start.uri)
    if scheme != "file://":
        folder = tmp_path / "before" / "objects" / start.digest[:16]
        shutil.copytree(start.uri, folder)
    with stage("rl/two", MergeSettings(), Context(store_of(chain), run), "c2") as record:
        record.source("start", folder)
        with record.output("model") as out:
            (out / "model.safetensors").write_bytes(b"trained on")
        root = record.ref("model", CheckpointRef).statement
    found = Evidence(str(chain.store), owner)
    found.visit(root)

    (finding,) = found.findings[root]
    assert "of which no statement says what made it" in finding.problem


def test_a_release_audits_its_own_chain_with_its_own_key(chain):
    root = train_on(chain, foreign_object(chain))
    honest = release_evidence.audited(str(chain.store), [chain.refs["policy"].statement])
    forged = release_evidence.audited(str(chain.store), [root])

    assert () == honest.problems
    assert (1, 2) == (forged.statements, forged.objects)
    (problem,) = forged.problems
    assert "of which no statement says what made it" in problem


def test_a_statement_of_another_key_in_the_chain_stops_a_release(chain):
    digest = chain.refs["merged"].statement
    payload = to_payload(load_statement(str(chain.store), digest))
    attacker = signer_of(ec.generate_private_key(ec.SECP256R1()))
    chain.statement("merged").write_bytes(canonical_json(seal(payload, [attacker.sign(payload)])))

    (problem,) = release_evidence.audited(
        str(chain.store), [chain.refs["policy"].statement]
    ).problems
    assert f"{digest}.json: signed by key" in problem


def release_again(chain: Chain) -> Maker:
    """Release other weights under the same name."""
    maker = Maker(store_of(chain), chain.outside)
    maker.execution = Execution(id="e2", started=2.0)
    maker.refs = dict(chain.refs)
    maker.step("rl/one", "policy", CheckpointRef, ["merged", "curated", "raw"])
    maker.release()
    return maker


@pytest.mark.slow
def test_an_alias_that_was_moved_back_is_named(chain, owner):
    release_again(chain)
    assert [] == problems(chain, owner)
    connect(chain.tracking_uri).set_registered_model_alias("tiny", "released", "1")

    (problem,) = problems(chain, owner)
    assert "version 1 has the alias 'released', but promotion 2, the last one, is of " in problem
    assert "lacks the alias 'released'" in problems(chain, owner, "models:/tiny/2")[0]


def test_a_promotion_that_was_deleted_is_named(chain, owner):
    release_again(chain)
    chain.statement("release").unlink()

    assert any("promotion 1 is gone" in one for one in problems(chain, owner))


def test_a_release_that_was_copied_under_another_name_is_named(chain, owner):
    client = connect(chain.tracking_uri)
    version = client.get_model_version_by_alias("tiny", "released")
    number = register_release(
        client,
        name="other",
        model_id=logged_model(version),
        folder=str(version.source),
        run_id=str(version.run_id),
        tags=dict(version.tags),
    )
    client.set_registered_model_alias("other", "released", number)

    assert "is a copy of a release of tiny under another name" in problems(
        chain, owner, "models:/other@released"
    )


def test_two_promotions_of_one_number_are_a_fork(chain, owner):
    first = load_statement(str(chain.store), chain.refs["release"].statement)
    other = first.model_copy(
        update={"outputs": (first.outputs[0].model_copy(update={"digest": "a" * 64}),)}
    )
    signer = find_signer()
    assert signer
    payload = to_payload(other)
    digest = sha256_bytes(payload)
    envelope = canonical_json(seal(payload, [signer.sign(payload)]))
    store_at(statement_uri(str(chain.store), digest)).write_bytes(envelope)

    ((_, problem),) = promotion_problems(promotions("tiny", str(chain.store), owner))
    assert "is promotion 1, as " in problem


def test_a_promotion_behind_the_limit_of_a_revoked_key_does_not_count(chain):
    release_again(chain)
    signer = find_signer()
    assert signer
    last = chain.refs["release"].statement
    limited = {signer.public: PublicKey("stolen", last)}

    assert [last] == [one.statement for one in promotions("tiny", str(chain.store), limited)]


def test_promotions_are_counted_and_name_the_one_before(chain, owner):
    maker = release_again(chain)
    second = load_statement(str(chain.store), maker.refs["release"].statement)

    assert (2, chain.refs["release"].statement) == (second.facts[NUMBER], second.facts[AFTER])


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("openssl"), reason="no openssl")
def test_a_promotion_without_the_stamp_of_the_auditors_service_is_named(
    chain, owner, tmp_path, monkeypatch
):
    with TimeStampService(tmp_path / "service", "ec") as service:
        monkeypatch.setenv(SERVICE_VARIABLE, service.address)
        maker = release_again(chain)
    known = read_authorities(service.certificate)
    stamp = Path(stamp_uri(str(chain.store), maker.refs["release"].statement))
    proved = audit(RELEASED, chain.tracking_uri, str(chain.store), owner, known)
    assert "Stamped 20" in verdict(proved)
    assert "UTC by CN=test service. Statements: " in verdict(proved)

    stamp.unlink()
    (found,) = audit(RELEASED, chain.tracking_uri, str(chain.store), owner, known).findings
    assert (str(stamp), "gone") == (found.object, found.problem)
    stamp.write_bytes(b"yesterday")
    (found,) = audit(RELEASED, chain.tracking_uri, str(chain.store), owner, known).findings
    assert "is no time stamp" in found.problem


def test_a_forged_user_or_time_in_an_execution_record_is_named(chain, owner):
    path = chain.store / "executions" / "e1" / "merge.json"
    record = ExecutionRecord.model_validate_json(path.read_bytes())
    path.write_bytes(canonical_json(record.model_copy(update={"started": 1.0})))

    assert ["is not what its attestation says"] == problems(chain, owner)

    (chain.store / "attestations" / "e1" / "merge.json").write_bytes(path.read_bytes())
    assert {
        "no attestation of it is signed by --key",
        "gone: no signed record says who ran this stage, and when",
    } == set(problems(chain, owner))


def test_records_that_were_deleted_are_named_and_counted(chain, owner):
    proved = audit(RELEASED, chain.tracking_uri, str(chain.store), owner)
    assert "Executions: 9 of 9 signed." in verdict(proved)
    shutil.rmtree(chain.store / "executions")

    assert ["gone, while its attestation is here"] * 9 == problems(chain, owner)
    shutil.rmtree(chain.store / "attestations")

    assert ["gone: no signed record says who ran this stage, and when"] * 9 == problems(
        chain, owner
    )


def test_a_part_of_the_store_that_lies_elsewhere_and_a_key_inside_are_named(chain, owner, tmp_path):
    places = ("statements", "mlflow.db", "objects", "signatures", "beside")
    for name in places:
        if (chain.store / name).exists():
            (chain.store / name).rename(tmp_path / name)
        (chain.store / name).symlink_to(tmp_path / name)
    keys = ("notes.txt", "reports/e1.night.json", "spool/deep/x")
    for name in keys:
        (chain.store / name).parent.mkdir(parents=True, exist_ok=True)
        (chain.store / name).write_text("-----BEGIN PRIVATE KEY-----\n")
    report = audit(RELEASED, chain.tracking_uri, str(chain.store), owner)
    named = [
        (Path(one.object).relative_to(chain.store).as_posix(), one.problem)
        for one in report.findings
    ]

    link = "is a link; its content lies outside the store"
    key = "is a private key; whoever can read the store can sign"
    assert {(name, link) for name in places} == {one for one in named if one[1] == link}
    assert {(name, key) for name in keys} == {one for one in named if one[1] == key}


def test_a_file_that_has_another_name_outside_is_named(chain, owner, tmp_path):
    statement = chain.statement("merged")
    (statement.parent / ".left.by-a-killed_writer").hardlink_to(statement)
    assert [] == problems(chain, owner)
    files = [statement, chain.store / "mlflow.db", *sorted(chain.folder("policy").iterdir())]
    for number, path in enumerate(files):
        (tmp_path / str(number)).hardlink_to(path)

    problem = "has another name outside of the store (hard link), under which it can be changed"
    # a name within the store counts as well: it is the same file
    assert [f"{problem}, as {len(files)} more"] == problems(chain, owner)


def test_a_page_that_was_edited_moved_planted_or_deleted_is_named(chain, owner):
    place = str(chain.store)
    for name in ("reports/a.html", "reports/b.html", "live/e1/rl-one.html", "index.html"):
        write_page(place, name, "solved")
    drift = Drift(known=0, new=0, fields=(), unknown_words=0.0)
    save(place, "e1", NightDetails(drift=drift, refused={}))  # no page, and nobody signs it
    assert "Pages: 4 of 4 as signed." in verdict(audit(RELEASED, chain.tracking_uri, place, owner))

    (chain.store / "reports" / "a.html").write_text("better")
    (chain.store / "reports" / "b.html").rename(chain.store / "live" / "b.html")
    (chain.store / "live" / "planted.html").write_text("solved")
    (chain.store / "live" / "e1" / "rl-one.html").unlink()  # nothing in live/ has to be kept
    for name in ("reports/e1.HTM", "reports/e2.night.json", "live/e1/picture.svg"):
        (chain.store / name).write_text("<script>better()</script>")
    (chain.store / "index.html").unlink()
    found = audit(RELEASED, chain.tracking_uri, place, owner).findings
    assert {
        "reports/a.html": UNSIGNED,
        "reports/b.html": "gone; if that was meant, delete pages/reports/b.html too",
        "live/b.html": UNSIGNED,
        "live/planted.html": UNSIGNED,
        "reports/e1.HTM": UNSIGNED,
        "reports/e2.night.json": UNSIGNED,
        "live/e1/picture.svg": UNSIGNED,
        "index.html": "gone; if that was meant, delete pages/index.html too",
    } == {one.object.removeprefix(f"{place}/"): one.problem for one in found}


def test_a_page_that_somebody_else_signed_is_named_with_the_key(
    chain, owner, tmp_path, monkeypatch
):
    monkeypatch.setenv(KEY_VARIABLE, str(tmp_path / "other.pem"))
    write_page(str(chain.store), "reports/a.html", "better")

    signer = find_signer()
    assert signer
    who = fingerprint(signer.public)[:16]
    assert [f"is signed by key {who}, not by --key"] == problems(chain, owner)


def test_a_forged_user_in_mlflow_is_named(chain, owner):
    with closing(sqlite3.connect(chain.database, timeout=60)) as database:
        command = "UPDATE tags SET value = 'mallory' WHERE key = 'mlflow.user'"
        assert database.execute(command).rowcount > 0
        database.commit()

    found = problems(chain, owner)
    assert 9 == len(found)
    assert all(one.startswith("mlflow.user is mallory, signed as ") for one in found)


@pytest.mark.parametrize(
    ("limit", "refused"),
    [
        ("", set()),
        ("## of the old build machine\n# expires 2999-01-01\n", set()),
        ("# revoked\n", {"release", "policy", "merged"}),
        ("# revoked after {policy}\n", {"release"}),
        ("# revoked after {release}\n", set()),
        ("# expires {yesterday}\n# revoked after {policy}\n", {"release"}),
        ("# expires {yesterday}\n", {"release", "policy", "merged"}),
    ],
)
def test_a_key_vouches_as_far_as_its_file_says(chain, tmp_path, limit, refused):
    signer = find_signer()
    assert signer
    digests = {name: chain.refs[name].statement for name in ("policy", "release", "merged")}
    yesterday = (datetime.now(UTC) - timedelta(days=1)).date().isoformat()
    file = tmp_path / "keys.pem"
    file.write_text(limit.format(yesterday=yesterday, **digests) + public_path().read_text())
    found = Evidence(str(chain.store), read_public_keys(file))
    found.visit(digests["release"])

    named = {name for name, digest in digests.items() if digest in found.findings}
    assert refused == named
    revoked = [one.problem for findings in found.findings.values() for one in findings]
    assert all("was revoked or has expired" in one for one in revoked)
