"""Papers are filled in from statements alone, and say what nobody stated."""

import re

import pytest

from tasks.provenance.audit.papers import BLANK, PAPERS, paper
from tasks.provenance.audit.walk import audit


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


@pytest.mark.parametrize("kind", PAPERS)
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
    assert f"Of which kind each is: {BLANK}" in files
    assert "Read on 20" in fields["1.3 Latest date of acquisition"]
