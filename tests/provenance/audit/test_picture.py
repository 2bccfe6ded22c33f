"""The chain for people: as text and as one page without anything from outside."""

import json
import re

from data_schemas.audits import AuditNode, AuditReport, Finding, NodeKind, SignerCount
from tasks.provenance.audit.catalogue_check import COMPARED, NOT_COMPARED
from tasks.provenance.audit.picture import picture_html
from tasks.provenance.audit.text import chain_text, verdict
from tasks.provenance.audit.walk import audit

BAD = Finding(object="/store/<b>.bin", problem="sha256 is 1, recorded 2 </script>")


def node(name: str, *parents: str, findings: tuple[Finding, ...] = ()) -> AuditNode:
    return AuditNode(
        id=name * 12,
        kind=NodeKind.STAGE,
        title=name,
        details=(("made model", "d" * 64),),
        parents=tuple(parent * 12 for parent in parents),
        findings=findings,
    )


def report(*findings: Finding) -> AuditReport:
    model = AuditNode(
        id="model",
        kind=NodeKind.MODEL,
        title="tiny version 1",
        details=(("aliases", "released"),),
        parents=("m" * 12,),
        findings=(),
    )
    origin = AuditNode(
        id="origin",
        kind=NodeKind.ORIGIN,
        title="1 raw file",
        details=(("/data/gsm8k.jsonl", "f" * 64),),
        parents=(),
        findings=(),
    )
    base = node("b").model_copy(update={"parents": ("origin",)})
    return AuditReport(
        model="models:/tiny@released",
        version="1",
        nodes=(
            model,
            node("m", "s", "t"),
            node("s", "b", findings=findings),
            node("t", "b"),
            base,
            origin,
        ),
        findings=findings,
        statements=4,
        objects=4,
        raw_files=1,
        rehashed_bytes=3 * 2**20,
        signers=(SignerCount(fingerprint="8" * 64, statements=4, known=True),),
        unsigned=0,
        has_catalogue=True,
        has_key=True,
    )


def test_the_text_is_a_tree_from_the_model_to_the_raw_files():
    expected = f"""tiny version 1
└─ m [mmmmmmmmmmmm] -> model dddddddddddd
   ├─ s [ssssssssssss] -> model dddddddddddd
   │  └─ b [bbbbbbbbbbbb] -> model dddddddddddd
   │     └─ 1 raw file
   │          ffffffffffff  /data/gsm8k.jsonl
   └─ t [tttttttttttt] -> model dddddddddddd, also from b

PROVED: 4 statements, 4 objects and 1 raw files re-hashed (3.0 MiB), all as recorded, \
and MLflow agrees in: {COMPARED} (not compared: {NOT_COMPARED}). \
Executions: not compared. Pages: not compared. \
Statements: 4 signed by key 8888888888888888 of --key."""

    assert expected == chain_text(report())


def test_a_finding_stands_under_its_stage_and_in_the_verdict():
    lines = chain_text(report(BAD)).splitlines()
    (place,) = [index for index, line in enumerate(lines) if "s [ss" in line]

    assert "├─ ✗ s" in lines[place]
    assert lines[place + 1].endswith("✗ /store/<b>.bin: sha256 is 1, recorded 2 </script>")
    assert verdict(report(BAD)).startswith("BROKEN: 1 finding;")


def test_the_page_needs_nothing_from_outside():
    page = picture_html(report(BAD))

    assert [] == re.findall(r"(?:src|href|url)\s*[=(]", page)
    assert "http" not in page
    assert "@import" not in page


def test_the_page_marks_the_broken_node_and_only_that():
    page = picture_html(report(BAD))

    assert ["s" * 12] == re.findall(r'class="node stage broken" data-id="(\w+)"', page)
    assert 6 == len(re.findall(r'<g class="node ', page))
    assert 6 == len(re.findall(r'<path class="edge" ', page))


def test_what_was_found_cannot_break_out_of_the_page():
    page = picture_html(report(BAD))
    data = re.search(r'id="nodes">(.*?)</script>', page, re.DOTALL)

    assert data is not None
    assert [[BAD.object, BAD.problem]] == json.loads(data[1])["s" * 12]["findings"]
    assert "<b>.bin" not in page.split("<script")[0]


def test_a_narrow_screen_gets_its_own_width_and_the_panel_below_the_graph():
    page = picture_html(report())

    assert '<meta name="viewport" content="width=device-width,initial-scale=1">' in page
    assert "@media(max-width:760px){main{display:block}" in page
    assert "@media(prefers-color-scheme:dark)" in page


def lines_of(page: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", page)


def test_the_name_of_a_version_and_its_number_have_a_line_each():
    model = report().nodes[0]
    long = model.model_copy(update={"title": "eachprompt-tiny-seed-7 version 12"})
    page = picture_html(report().model_copy(update={"nodes": (long, *report().nodes[1:])}))

    assert ["eachprompt-tiny-seed-7", "version 12: released"] == lines_of(page)[:2]


def test_an_artifact_without_version_is_drawn():
    model = report().nodes[0]
    details = (("asked for", "3f2a"), ("artifact", "3f2a" * 16))
    other = model.model_copy(update={"title": "artifact 3f2a3f2a3f2a", "details": details})
    page = picture_html(report().model_copy(update={"nodes": (other, *report().nodes[1:])}))

    assert ["artifact 3f2a3f2a3f2a", ""] == lines_of(page)[:2]


def test_a_real_chain_is_drawn_with_its_digests(chain):
    found = audit("models:/tiny@released", chain.tracking_uri, str(chain.store))
    page = picture_html(found)

    assert all(chain.refs[name].digest in page for name in chain.refs)
    assert "<b>PROVED</b>: 9 statements, 9 objects and 3 raw files" in page
    assert 12 == len(re.findall(r'<g class="node ', page))


def test_no_name_ends_the_data_of_the_page_or_keeps_it_from_ending():
    """After `<!--<script` a browser looks for another `</script>`, and the page has no data."""
    bad = Finding(object="<!--<script>", problem="</script><!--")
    html = picture_html(report(bad))
    (data,) = re.findall(
        r'<script type="application/json" id="nodes">(.*?)</script>', html, re.DOTALL
    )

    assert "<" not in data
    assert [["<!--<script>", "</script><!--"]] == json.loads(data)["s" * 12]["findings"]


def test_a_model_behind_an_address_is_named_as_not_proved_and_one_in_a_folder_is_not():
    settings = {
        "rewards": {"judge": {"kind": "http", "address": "http://judge:8000/v1", "model": "j"}},
        "teachers": [{"address": "/models/teacher"}],
        "publisher": {"url": "https://example.com"},
    }
    asked = node("j").model_copy(update={"details": (("settings", json.dumps(settings)),)})
    sound = report()
    with_judge = sound.model_copy(update={"nodes": (*sound.nodes, asked)})

    assert "Not proved" not in verdict(sound)
    assert verdict(with_judge).startswith("PROVED: ")
    assert "Not proved: which model answered at http://judge:8000/v1." in verdict(with_judge)
