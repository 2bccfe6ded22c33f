"""An audit while others write, and chains whose clock jumps: the verdict is about content."""

import threading
import time

import pytest

from data_schemas.artifacts import StoreRef
from tasks.pages.publisher import Publisher, page_name
from tasks.provenance.audit.walk import audit
from tasks.provenance.lineage.signatures.keys import PublicKey, find_signer
from tasks.store.interface import store_at
from tests.provenance.audit.conftest import Maker

pytestmark = [pytest.mark.attack, pytest.mark.parametrize("original", ["sqlite"], indirect=True)]
DAY_S = 86400.0


def maker_of(chain, execution: str) -> Maker:
    """Make more of the chain's stages in its own store."""
    identity = store_at(str(chain.store)).open()
    store = StoreRef(uri=str(chain.store), id=identity, tracking_uri=chain.tracking_uri)
    maker = Maker(store, chain.outside)
    maker.refs = dict(chain.refs)
    maker.execution = maker.execution.model_copy(update={"id": execution})
    return maker


@pytest.mark.slow
def test_an_audit_beside_a_run_finds_nothing_that_is_not_there(chain):
    """The newest release stays that of the chain; a run writes below and beside it meanwhile."""
    maker, ended, failed = maker_of(chain, "e2"), threading.Event(), []
    page = Publisher(str(chain.store), page_name("e2", "rl/0"), show=lambda _: None)
    signer = find_signer()
    assert signer

    def work() -> None:
        try:
            for number in range(6):
                maker.step(
                    f"rl/{number}", f"policy{number}", type(chain.refs["policy"]), ["merged"]
                )
                page.publish(lambda: f"step {number}", last=True)  # noqa: B023 - called at once
        except Exception as error:  # noqa: BLE001 - shown below
            failed.append(error)
        finally:
            ended.set()

    thread = threading.Thread(target=work)
    thread.start()
    reports = []
    while not ended.is_set() or not reports:
        keys = {signer.public: PublicKey("owner")}
        reports.append(audit("models:/tiny@released", chain.tracking_uri, str(chain.store), keys))
    thread.join()

    assert not failed
    assert [] == [finding for report in reports for finding in report.findings]


def test_a_clock_that_jumps_by_days_changes_no_verdict(chain, monkeypatch):
    maker, asked = maker_of(chain, "e2"), []
    wall = time.time

    def jumping() -> float:
        asked.append(None)
        return wall() + (len(asked) // 3 % 3 - 1) * 3 * DAY_S

    monkeypatch.setattr(time, "time", jumping)
    maker.step("rl/two", "policy", type(chain.refs["policy"]), ["merged", "curated"])
    maker.step("evaluate", "report", type(chain.refs["report"]), ["policy", "curated"], "a.json")
    maker.release()
    monkeypatch.undo()
    report = audit("models:/tiny@released", chain.tracking_uri, str(chain.store))

    assert 9 < len(asked)  # it jumped in both directions
    assert "2" == report.version
    assert () == report.findings
