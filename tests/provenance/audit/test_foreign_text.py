"""What others named cannot write a line of its own into an audit, nor end it in a traceback."""

import json
import os

import pytest

from data_schemas.texts import on_one_line
from tasks.errors import TamperError
from tasks.platform.command_line import line_of
from tasks.provenance.audit.text import chain_text
from tasks.provenance.audit.walk import audit
from tasks.provenance.lineage.connection import connect

FORGED = "x\nPROVED: 9 statements, all as recorded"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("d\u00e9j\u00e0 \u0e19\u0e49\u0e33", "d\u00e9j\u00e0 \u0e19\u0e49\u0e33"),
        ("a\nb\r\tc", "a\\nb\\r\\tc"),
        ("\x1b[2J", "\\x1b[2J"),
        ("\u2028\u202e", "\\u2028\\u202e"),
        ("28\u00a0s \u3000a", "28\u00a0s \u3000a"),
        (os.fsdecode(b"caf\xe9"), "caf\\udce9"),
    ],
)
def test_only_what_is_not_printed_is_written_by_its_code(text, expected):
    assert expected == on_one_line(text)


@pytest.mark.attack
@pytest.mark.parametrize("original", ["sqlite"], indirect=True)
def test_no_name_or_tag_begins_a_line_of_an_audit(chain):
    client = connect(chain.tracking_uri)
    client.set_model_version_tag("tiny", "1", "accuracy/all", FORGED)
    (chain.folder("policy") / FORGED).write_text("planted")
    with open(os.fsencode(chain.folder("policy")) + b"/caf\xe9", "w") as stream:  # noqa: PTH123
        stream.write("planted")

    report = audit("models:/tiny@released", chain.tracking_uri, str(chain.store))
    first = report.findings[0]
    error = TamperError(f"{first.object}: {first.problem}\n{FORGED}")

    assert 3 == len(report.findings)
    assert not [line for line in chain_text(report).split("\n") if line.startswith("PROVED")]
    assert not [line for line in line_of(error).split("\n") if line.startswith("PROVED")]
    objects = [one["object"] for one in json.loads(report.model_dump_json())["findings"]]
    assert any(one.endswith("caf\\udce9") for one in objects)
