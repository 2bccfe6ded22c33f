"""A statement as in-toto and SLSA have it."""

import json
import re

import pytest

from data_schemas.statements import Input, Output, Statement
from tasks.errors import DataError
from tasks.provenance.lineage.attestation import from_payload, to_payload
from tasks.store.files import canonical_json
from tests.records import filled

A, B = "a" * 64, "b" * 64
IMAGE = f"registry/cpu:1@sha256:{'9' * 64}"
WHOLE = filled(
    Statement,
    stage="rl/one",
    settings='{"steps":8,"temperature":0.1}',
    code=("c" * 64, "d" * 64),
    lock="f" * 64,
    container=IMAGE,
    inputs=(
        Input(role="start", uri=f"/store/objects/{A[:16]}", digest=A, statement=B),
        Input(role="shipped", uri=f"file:///elsewhere/objects/{B[:16]}", digest=B, statement=""),
    ),
    outputs=(Output(role="model", uri=f"/store/objects/{B[:16]}", digest=B),),
    facts={"rows": 3, "share": 1.0, "chosen": "step-2"},
)


def test_inputs_outputs_settings_and_what_ran_are_where_slsa_has_them():
    content = json.loads(to_payload(WHOLE))
    predicate = content["predicate"]

    assert "https://in-toto.io/Statement/v1" == content["_type"]
    assert "https://slsa.dev/provenance/v1" == content["predicateType"]
    assert [{"name": "model", "uri": f"objects/{B[:16]}", "digest": {"sha256": B}}] == content[
        "subject"
    ]
    assert {
        "buildType": "urn:eachprompt:stage:v1",
        "externalParameters": {"stage": "rl/one", "settings": {"steps": 8, "temperature": 0.1}},
        "resolvedDependencies": [
            {
                "name": "start",
                "uri": f"objects/{A[:16]}",
                "digest": {"sha256": A},
                "annotations": {"statement": B},
            },
            {
                "name": "shipped",
                "uri": f"file:///elsewhere/objects/{B[:16]}",
                "digest": {"sha256": B},
                "annotations": {"statement": ""},
            },
            {"name": "source", "digest": {"sha256": "c" * 64}},
            {"name": "source", "digest": {"sha256": "d" * 64}},
            {"name": "packages", "digest": {"sha256": "e" * 64}},
            {"name": "lock", "digest": {"sha256": "f" * 64}},
            {"name": "container", "uri": IMAGE, "digest": {"sha256": "9" * 64}},
        ],
    } == predicate["buildDefinition"]
    assert "urn:eachprompt:builder:flyte" == predicate["runDetails"]["builder"]["id"]
    assert WHOLE.facts == predicate["runDetails"]["byproducts"][0]["annotations"]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"container": "", "lock": ""},
        {"container": "registry/cpu:1"},
        {"inputs": (), "code": ()},
        {"outputs": ()},
        {"outputs": (), "facts": {}},
    ],
)
def test_what_is_written_is_read_back(changes):
    statement = WHOLE.model_copy(update=changes)

    assert statement == from_payload(to_payload(statement), "/store", "here")


def test_artifacts_are_found_in_the_store_that_is_read():
    read = from_payload(to_payload(WHOLE), "s3://bucket/moved", "here")

    assert f"s3://bucket/moved/objects/{A[:16]}" == read.inputs[0].uri
    assert WHOLE.inputs[1].uri == read.inputs[1].uri


@pytest.mark.parametrize(
    "change",
    [
        {"_type": "https://in-toto.io/Statement/v2"},
        {"predicateType": "https://slsa.dev/provenance/v2"},
        {"subject": None},
        {"predicate": {}},
        {"more": 1},
    ],
)
def test_a_statement_that_says_more_or_other_than_this_version_is_refused(change):
    payload = canonical_json(json.loads(to_payload(WHOLE)) | change)

    with pytest.raises(DataError, match="here is not a statement of this version"):
        from_payload(payload, "/store", "here")


def test_a_statement_of_a_later_version_is_named_and_not_misread():
    later = to_payload(WHOLE).replace(b"urn:eachprompt:stage:v1", b"urn:eachprompt:stage:v9")

    with pytest.raises(DataError, match=r"is a statement of urn:eachprompt:stage:v9, and this ver"):
        from_payload(later, "/store", "here")


def is_resource(descriptor, *required: str) -> bool:
    """in-toto v1, "ResourceDescriptor": uri, digest or content at least; hexadecimal digests."""
    known = {"name", "uri", "digest", "content", "downloadLocation", "mediaType", "annotations"}
    digests = descriptor.get("digest", {"sha256": "00"}).items()
    return (
        descriptor.keys() <= known
        and bool(descriptor.keys() & {"uri", "digest", "content"})
        and descriptor.keys() >= set(required)
        and all(name == "sha256" and re.fullmatch(r"([0-9a-f]{2})+", one) for name, one in digests)
        and isinstance(descriptor.get("annotations", {}), dict)
    )


@pytest.mark.parametrize("statement", [WHOLE, WHOLE.model_copy(update={"outputs": ()})])
def test_a_statement_has_what_in_toto_and_slsa_require(statement):
    """in-toto v1, "Statement", "Fields"; SLSA provenance v1, "BuildDefinition", "RunDetails"."""
    content = json.loads(to_payload(statement))

    assert {"_type", "subject", "predicateType", "predicate"} == content.keys()
    assert content["subject"], "a statement is about something"
    assert all(is_resource(one, "digest") for one in content["subject"])
    names = [one["name"] for one in content["subject"]]
    assert len(names) == len({*names}), "names are unique within subject"
    build, details = (content["predicate"][name] for name in ("buildDefinition", "runDetails"))
    assert re.match(r"[a-z][a-z0-9+.-]*:", build["buildType"]), "a TypeURI"
    assert isinstance(build["externalParameters"], dict)
    assert all(is_resource(one) for one in build["resolvedDependencies"])
    assert re.match(r"[a-z][a-z0-9+.-]*:", details["builder"]["id"]), "a TypeURI"
    assert all(is_resource(one) for one in details["byproducts"])
