"""Papers are filled in from statements alone, and say what nobody stated."""

import re

import pytest

from data_schemas.audits import Finding
from data_schemas.settings import ReleaseSettings
from tasks.platform.console import COMMANDS, MODULES
from tasks.provenance.audit.aisvs import CRITERIA
from tasks.provenance.audit.papers import BLANK, paper
from tasks.provenance.audit.walk import audit
from tests.test_layout import ROOT


@pytest.fixture(scope="module")
def chain(make_original):
    return make_original("sqlite")


def written(chain, kind: str, store: str = "") -> dict[str, str]:
    """Read the text below each heading."""
    found = audit("models:/tiny@released", chain.tracking_uri, str(chain.store))
    text = paper(kind, found, store or str(chain.store))
    parts = re.split(r"^## ", text, flags=re.MULTILINE)
    return {"": parts[0]} | {
        head: body for head, _, body in (one.partition("\n\n") for one in parts[1:])
    }


@pytest.mark.parametrize("kind", ["annex-iv", "training-summary"])
def test_every_fact_names_its_statement_and_everything_else_is_a_blank(chain, kind):
    fields = written(chain, kind)
    head, statements = fields.pop(""), fields.pop("Statements")

    assert "tiny version 1" in head
    assert "Audit: PROVED" in head
    known = set(re.findall(r"`([0-9a-f]{64})`", statements))
    assert {chain.refs[name].statement for name in ("raw", "policy", "release")} <= known
    for field, text in fields.items():
        lines = [line for line in text.splitlines() if line.startswith("- ")]
        cited = {digits for line in lines for digits in re.findall(r"\[([0-9a-f]{12})\]", line)}
        assert cited <= {digest[:12] for digest in known}, field
        assert lines or BLANK in text or field in ("1.3 Modalities", *NONES), field


NONES = ("2.1 Publicly available data sets", "2.5 Synthetic data")


def test_the_technical_documentation_has_what_the_chain_knows(chain):
    fields = written(chain, "annex-iv")

    assert BLANK == fields["5 Risk management system"].strip()
    assert "gsm8k.jsonl" in fields["2 (d) Data: provenance, selection, cleaning"]
    assert "accuracy/all 0.6" in fields["3 Capabilities and limitations, accuracy"]
    assert chain.refs["release"].digest in fields["1 (d) Forms in which it is placed on the market"]
    base = fields["2 (a) Pre-trained systems of third parties"]
    assert "`base@" in base
    assert str(chain.outside) not in base


def test_the_training_summary_names_every_file_and_asks_what_kind_it_is(chain):
    fields = written(chain, "training-summary")
    files = fields["2.2 Private, 2.3 crawled, 2.4 users' and 2.6 other data"]

    assert "gsm8k.jsonl" in files
    assert ", licence MIT" in files
    assert f"Of which kind each is: {BLANK}" in files
    assert "Read on 20" in fields["1.3 Latest date of acquisition"]


def test_each_criterion_of_aisvs_is_met_by_a_statement_or_says_why_not(chain):
    fields = written(chain, "aisvs")
    count = fields.pop("Criteria")
    statements = fields.pop("Statements")
    fields.pop("")
    verdicts = {
        head.partition(" ")[0]: re.match(r"\*\*([^.]+)\.\*\*\s+(.*)", text.strip(), re.DOTALL)
        for head, text in fields.items()
    }

    assert count.startswith(f"{len(verdicts)}: ")
    assert not [head for head, text in fields.items() if ".** - " in text], "a list in a line"
    assert not re.search(r"\d\.\d{6}", "".join(fields.values())), "digits that nobody reads"
    for number, match in verdicts.items():
        assert match, number
        for digits in re.findall(r"\[([0-9a-f]{12})\]", match[2]):
            assert f"`{digits}" in statements
    of = {number: match[1] for number, match in verdicts.items() if match}
    # Everything was hashed again, nobody named a key, no guard and no watermark exist.
    assert ("Met", "Partly met", "Not met", "Not met") == tuple(
        of[number] for number in ("3.5.3", "3.1.2", "1.3.4", "1.1.5")
    )


def test_a_chain_that_is_broken_meets_no_criterion_of_integrity(chain):
    found = audit("models:/tiny@released", chain.tracking_uri, str(chain.store))
    damage = Finding(object="objects/x", problem="sha256 is another one")
    text = paper("aisvs", found.model_copy(update={"findings": (damage,)}), str(chain.store))

    for number in ("1.1.3", "1.2.2", "3.5.3", "3.5.4", "6.1.3", "6.2.2"):
        assert re.search(rf"^## {number} .*\n\n\*\*Not met\.", text, re.MULTILINE), number


def test_every_criterion_of_the_list_has_its_line_in_the_guide():
    guide = (ROOT / "docs/audit.md").read_text()
    lines = dict(re.findall(r"^\| (\d\.\d\.\d) \| (.+) \|$", guide, re.MULTILINE))

    assert [one.number for one in CRITERIA] == list(lines)
    commands = re.findall(r"`eachprompt ([a-z-]+)", " ".join(lines.values()))
    assert set() == set(commands) - {*COMMANDS, *MODULES}
    release = re.findall(r"`release\.(\w+)", " ".join(lines.values()))
    assert set() == set(release) - ReleaseSettings.model_fields.keys()
