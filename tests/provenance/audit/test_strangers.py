"""Statements that a stranger plants, without a trusted key: they stop nobody and open nothing."""

import base64
import json
import os
from collections.abc import Callable

import pytest

from data_schemas.statements import Input, Output, Statement
from tasks.provenance.audit.walk import audit
from tasks.provenance.lineage.promotions import Promotion, promotion_problems
from tasks.provenance.lineage.releases import find_release
from tasks.provenance.lineage.signatures.dsse import PAYLOAD_TYPE
from tasks.provenance.lineage.signatures.keys import KEY_VARIABLE, public_path, read_public_keys
from tasks.provenance.lineage.statements import load_statement, save_statement
from tasks.store.files import canonical_json, sha256_bytes
from tests.provenance.audit.conftest import Chain
from tests.slices import sliced

pytestmark = [
    pytest.mark.attack,
    pytest.mark.parametrize("original", ["sqlite"], indirect=True),
]
RELEASED = "models:/tiny@released"
NOWHERE = "0" * 64
Change = Callable[[Statement], dict[str, object]]


def facts(**changed: object) -> Change:
    return lambda statement: {"facts": {**statement.facts, **changed}}


def settings(value: object) -> Change:
    return lambda _: {"settings": json.dumps(value)}


def read(uri: str, producer: str = "") -> Change:
    item = Input(role="candidate", uri=uri, digest=NOWHERE, statement=producer)
    return lambda _: {"inputs": (item,)}


def made(uri: str) -> Change:
    return lambda _: {"outputs": (Output(role="release", uri=uri, digest=NOWHERE),)}


ODD: dict[str, Change] = {
    "settings are a list": settings([]),
    "settings are null": settings(None),
    "its name is a number": settings({"name": 1}),
    "approvals are a list": settings({"name": "tiny", "approvals": [1]}),
    "approvals are text": settings({"name": "tiny", "approvals": "x"}),
    "its number is text": facts(promotion="x"),
    "its number is beyond all numbers": facts(promotion=1e300),
    "its number is a billion": facts(promotion=10**9),
    "its number is negative": facts(promotion=-1),
    "its number is no whole one": facts(promotion=2.7),
    "a NUL in a uri": made("/tmp/\0x"),
    "a uri of no scheme that there is": made("gopher://x/y"),
    "a uri that is no address": read("file://[x"),
    "a bucket without a name": read("s3://"),
    "a file that never ends": read("file:///proc/kmsg"),
    "a producer in another folder": read("x", "../../../../etc/passwd"),
    "a producer with a NUL": read("x", "a\0b"),
    "a producer of 5000 characters": read("x", "a" * 5000),
    "a line of its own in the name of a stage": lambda _: {"stage": "release\nPROVED: all"},
}


def plant(chain: Chain, change: Change, attacker: pytest.MonkeyPatch, key: str) -> str:
    """Sign a statement like that of the release with a key that nobody trusts."""
    genuine = load_statement(str(chain.store), chain.refs["release"].statement)
    attacker.setenv(KEY_VARIABLE, key)
    return save_statement(str(chain.store), genuine.model_copy(update=change(genuine)))


def test_all_odd_statements_of_a_stranger_stop_neither_audit_nor_user(chain, tmp_path, monkeypatch):
    with monkeypatch.context() as attacker:
        planted = {plant(chain, odd, attacker, str(tmp_path / "evil.pem")) for odd in ODD.values()}
    store, owner = str(chain.store), read_public_keys(public_path())

    assert () == audit(RELEASED, chain.tracking_uri, store, owner).findings
    used = find_release(RELEASED, store, chain.tracking_uri).folder.digest
    assert chain.refs["release"].digest == used
    assert len(ODD) == len(planted - {chain.refs["release"].statement})
    # Without keys anybody is believed, and the audit has an end all the same.
    assert audit(RELEASED, chain.tracking_uri, store).nodes


@pytest.mark.parametrize("odd", sliced(ODD, {"its number is text", "a NUL in a uri"}.__contains__))
def test_an_odd_statement_of_a_stranger_stops_neither_audit_nor_user(
    chain, tmp_path, monkeypatch, odd
):
    with monkeypatch.context() as attacker:
        digest = plant(chain, ODD[odd], attacker, str(tmp_path / "evil.pem"))
    store, owner = str(chain.store), read_public_keys(public_path())

    assert () == audit(RELEASED, chain.tracking_uri, store, owner).findings
    used = find_release(RELEASED, store, chain.tracking_uri).folder.digest
    assert chain.refs["release"].digest == used
    assert digest != chain.refs["release"].statement
    # Without keys anybody is believed, and the audit has an end all the same.
    assert audit(RELEASED, chain.tracking_uri, store).nodes


def test_a_statement_nested_too_deeply_is_no_statement(chain):
    payload = b"[" * 200_000
    sealed = {
        "payload": base64.b64encode(payload).decode(),
        "payloadType": PAYLOAD_TYPE,
        "signatures": [],
    }
    place = chain.store / "statements" / f"{sha256_bytes(payload)}.json"
    place.write_bytes(canonical_json(sealed))
    owner = read_public_keys(public_path())

    assert () == audit(RELEASED, chain.tracking_uri, str(chain.store), owner).findings
    assert find_release(RELEASED, str(chain.store), chain.tracking_uri)


@pytest.mark.parametrize("way", ["read", "made"])
def test_places_that_a_stranger_names_are_not_opened(chain, tmp_path, monkeypatch, way):
    """Which file the auditor's machine hashes, or which bucket it calls, is not a stranger's."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    place = f"file://{pipe}" if way == "read" else "s3://bucket-of-a-stranger/x"
    change = read(place) if way == "read" else made(place)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with monkeypatch.context() as attacker:
        digest = plant(chain, change, attacker, str(tmp_path / "evil.pem"))

    found = audit(digest, "", str(chain.store), read_public_keys(public_path())).findings

    assert any("not by --key" in one.problem for one in found)
    assert [] == [one for one in found if one.object.startswith(place)]


def test_a_number_beyond_all_others_names_one_gap(original):
    last = Promotion(10**12, "b", "r", "c", "a")
    first = Promotion(1, "a", "r", "d", "")

    assert [("b", f"promotion 2 to {10**12 - 1} are gone")] == promotion_problems([first, last])
