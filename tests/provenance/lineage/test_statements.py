"""The chain on disk: named by content, write-once, walked from the end."""

import base64
import hashlib
import json

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from data_schemas.settings import MergeSettings
from data_schemas.statements import ExecutionRecord, Input, Output, Statement
from tasks.errors import DataError, TamperError
from tasks.provenance.lineage.attestation import to_payload
from tasks.provenance.lineage.signatures.dsse import seal, signer_of
from tasks.provenance.lineage.signatures.keys import KEY_VARIABLE, find_signer
from tasks.provenance.lineage.statements import (
    AttestedStatement,
    chain,
    flat_settings,
    load_executions,
    load_statement,
    open_statement,
    save_execution,
    save_statement,
)
from tasks.store.files import canonical_json, sha256_bytes
from tests.records import filled


def statement(stage: str, *parents: str, **facts: float | int | str) -> Statement:
    return filled(
        Statement,
        code=("c",),
        environment="e",
        stage=stage,
        inputs=tuple(Input(role="in", uri="u", digest="d", statement=name) for name in parents),
        outputs=(Output(role="out", uri="u", digest="d"),),
        facts=dict(facts),
    )


def test_a_statement_lies_in_a_signed_envelope_and_is_named_by_its_payload(tmp_path):
    digest = save_statement(str(tmp_path), statement("curate", rows=3))
    envelope = json.loads((tmp_path / "statements" / f"{digest}.json").read_bytes())
    payload = base64.b64decode(envelope["payload"])

    assert {"payload", "payloadType", "signatures"} == envelope.keys()
    assert "application/vnd.in-toto+json" == envelope["payloadType"]
    assert digest == hashlib.sha256(payload).hexdigest()
    assert to_payload(statement("curate", rows=3)) == payload
    assert statement("curate", rows=3) == load_statement(str(tmp_path), digest)


def test_a_statement_of_version_0_1_0_is_read_and_signed_by_nobody(tmp_path):
    payload = (
        b'{"code":["c"],"environment":"e","facts":{"rows":3},"inputs":[],'
        b'"outputs":[{"digest":"d","role":"out","uri":"u"}],"settings":"{}","stage":"curate"}'
    )
    digest = hashlib.sha256(payload).hexdigest()

    assert AttestedStatement(statement("curate", rows=3), ()) == open_statement(payload, digest, "")


def test_another_key_adds_its_signature_to_the_same_statement(tmp_path, monkeypatch):
    store = tmp_path / "store"
    keys = []
    for name in ("a.pem", "b.pem", "a.pem"):
        monkeypatch.setenv(KEY_VARIABLE, str(tmp_path / name))
        digest = save_statement(str(store), statement("curate"))
        signer = find_signer()
        assert signer
        keys.append(signer.public)
    (path,) = (store / "statements").iterdir()

    assert tuple(keys[:2]) == open_statement(path.read_bytes(), digest, str(store)).signers


def test_a_moved_store_has_the_same_statements(tmp_path):
    digest = "a" * 64
    there, here = (
        statement("curate").model_copy(
            update={
                "outputs": (Output(role="out", uri=f"{store}/objects/{'a' * 16}", digest=digest),)
            }
        )
        for store in ("/there", str(tmp_path))
    )
    name = save_statement(str(tmp_path), there)

    assert name == save_statement(str(tmp_path), here)
    assert here == load_statement(str(tmp_path), name)


def test_the_same_work_with_the_same_key_is_the_same_bytes(tmp_path):
    paths = []
    for store in ("one", "two"):
        digest = save_statement(str(tmp_path / store), statement("curate", rows=3))
        paths.append(tmp_path / store / "statements" / f"{digest}.json")

    assert paths[0].read_bytes() == paths[1].read_bytes()


def _signature_of_another(content: bytes, _: bytes) -> bytes:
    envelope = json.loads(content)
    other = signer_of(ec.generate_private_key(ec.SECP256R1())).sign(b"something else")
    return canonical_json(envelope | {"signatures": [other.model_dump()]})


EDITS = {
    "a flipped bit in the payload": lambda content, _: content.replace(
        b'"payload":"e', b'"payload":"f'
    ),
    "a space": lambda content, _: content.replace(b",", b", ", 1),
    "an edited fact": lambda content, payload: content.replace(
        base64.b64encode(payload), base64.b64encode(payload.replace(b'"rows":3', b'"rows":4'))
    ),
    "a changed signature": lambda content, _: content.replace(b'"sig":"M', b'"sig":"N'),
    "a changed key": lambda content, _: content.replace(b'"keyid":"0', b'"keyid":"1'),
    "a signature of something else": _signature_of_another,
    "another envelope": lambda *_: b"{}",
    "no envelope": lambda _, payload: payload,
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_changed_statement_is_named_and_never_overwritten(tmp_path, edit):
    made = statement("curate", rows=3)
    digest = save_statement(str(tmp_path), made)
    path = tmp_path / "statements" / f"{digest}.json"
    before = path.read_bytes()
    path.write_bytes(EDITS[edit](before, to_payload(made)))

    assert before != path.read_bytes()
    with pytest.raises(DataError, match=digest):
        load_statement(str(tmp_path), digest)
    with pytest.raises(TamperError, match="not the statement it is named after"):
        save_statement(str(tmp_path), made)


def test_the_same_work_twice_is_one_statement(tmp_path):
    first = save_statement(str(tmp_path), statement("curate"))

    assert first == save_statement(str(tmp_path), statement("curate"))
    assert 1 == len(list((tmp_path / "statements").iterdir()))


def test_a_statement_that_is_gone_is_named(tmp_path):
    with pytest.raises(DataError, match=r"statements/abc\.json"):
        load_statement(str(tmp_path), "abc")


def test_the_chain_lists_producers_before_their_readers_once(tmp_path):
    store = str(tmp_path)
    base = save_statement(store, statement("base"))
    left = save_statement(store, statement("sft/reasoning", base))
    right = save_statement(store, statement("sft/commerce", base))
    merged = save_statement(store, statement("merge", left, right))
    report = save_statement(store, statement("evaluate", merged, base))
    found = chain(store, [merged, report, ""])
    order = [made.stage for made in found.values()]

    assert {base, left, right, merged, report} == found.keys()
    assert "base" == order[0]
    assert ["merge", "evaluate"] == order[-2:]


def test_a_chain_may_be_longer_than_the_stack(tmp_path):
    digest = ""
    (tmp_path / "statements").mkdir()
    for step in range(1200):
        payload = to_payload(statement("rl", *([digest] if digest else []), n=step))
        digest = sha256_bytes(payload)
        envelope = canonical_json(seal(payload, []))
        (tmp_path / "statements" / f"{digest}.json").write_bytes(envelope)

    assert 1200 == len(chain(str(tmp_path), [digest]))


def test_executions_come_back_oldest_first(tmp_path):
    for stage, started in (("rl/one", 20.0), ("curate", 10.0)):
        record = filled(ExecutionRecord, execution="e1", stage=stage, started=started)
        save_execution(str(tmp_path), record)

    assert ["curate", "rl/one"] == [record.stage for record in load_executions(str(tmp_path), "e1")]
    assert (tmp_path / "executions" / "e1" / "rl.one.json").exists()
    assert [] == load_executions(str(tmp_path), "e2")


def test_settings_become_dotted_names():
    assert {
        "method": "ties",
        "scale": "0.9",
        "weights": "[1.0, 1.0]",
        "copied": "{}",
    } == flat_settings(MergeSettings())
