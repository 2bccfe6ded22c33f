"""What a curated set says of its own tables is compared with what was hashed."""

import json

import pytest

from data_schemas.rows import CROISSANT, PROBLEMS
from data_schemas.statements import Output, Statement
from tasks.provenance.audit.evidence import Evidence, croissant_problems
from tasks.provenance.lineage.statements import save_statement
from tasks.store.files import sha256_bytes
from tasks.store.local import new_object
from tests.records import filled

TABLE = b"rows"
LISTED = {PROBLEMS: sha256_bytes(TABLE)}


def metadata(**changes: object) -> bytes:
    file = {"contentUrl": PROBLEMS, "sha256": LISTED[PROBLEMS]} | changes
    return json.dumps({"distribution": [file]}).encode()


def test_digests_that_are_those_of_the_files_are_no_problem():
    assert [] == list(croissant_problems(metadata(), LISTED))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (metadata(sha256="0" * 64), f"{PROBLEMS} has sha256 {'0' * 64}, its object's manifest "),
        (metadata(contentUrl="other"), "there is no such file"),
        (metadata(contentUrl=["x"]), "is no Croissant metadata"),
        (b"{}", "is no Croissant metadata"),
        (b"[]", "is no Croissant metadata"),
        (b"\xff", "is no Croissant metadata"),
    ],
    ids=["another digest", "no such file", "a list for a name", "no files", "a list", "no text"],
)
def test_what_the_object_does_not_hold_is_named(content, problem):
    (found,) = croissant_problems(content, LISTED)

    assert problem in found


@pytest.mark.parametrize("digest", [LISTED[PROBLEMS], "0" * 64], ids=["right", "wrong"])
def test_the_audit_reads_it_in_every_object_that_has_it(tmp_path, digest):
    with new_object(tmp_path) as (folder, committed):
        (folder / PROBLEMS).write_bytes(TABLE)
        (folder / CROISSANT).write_bytes(metadata(sha256=digest))
    statement = filled(
        Statement,
        stage="curate",
        outputs=(Output(role="curated", uri=committed.uri, digest=committed.digest),),
    )
    evidence = Evidence(str(tmp_path))

    evidence.visit(save_statement(str(tmp_path), statement))

    found = [one.object for findings in evidence.findings.values() for one in findings]
    assert ([] if digest != "0" * 64 else [f"{committed.uri}/{CROISSANT}"]) == found
