"""Flyte shell of the audit: walk back from a registered model and verify every step."""

import logging
import os
import time
from pathlib import Path

from data_schemas.audits import AuditReport
from tasks.errors import EngineError, SettingsError, TamperError
from tasks.platform.deck import deck
from tasks.platform.shell import shell
from tasks.platform.tables import Screen, json_line, print_line
from tasks.provenance.audit.papers import PAPERS, paper, paper_html
from tasks.provenance.audit.picture import picture_html
from tasks.provenance.audit.published import audit_published
from tasks.provenance.audit.target import store_of
from tasks.provenance.audit.text import chain_text, verdict
from tasks.provenance.audit.walk import audit as walk_back
from tasks.provenance.lineage.lookup import parse_model_uri
from tasks.provenance.lineage.signatures.keys import TrustedKeys, read_public_keys, require_outside
from tasks.provenance.lineage.signatures.time_stamps import read_authorities
from tasks.provenance.lineage.versions import record_audit
from tasks.store import location
from tasks.store.interface import store_at

logger = logging.getLogger(__name__)

FORMATS = ("text", "json", *PAPERS)


@shell("audit")
def audit(model: str, store: str, format: str = "text", key: str = "", folder: str = "") -> str:
    """Re-hash everything a model was made from, print the chain, and draw it.

    Args:
        model: 'models:/NAME@released' or 'models:/NAME/3'; digest of an artifact or a statement; or
            folder or s3:// prefix of an artifact.
        store: folder or s3:// prefix the artifacts lie in.
        format: 'text', 'json' for the report as one line, or a paper in Markdown: 'annex-iv',
            'training-summary', 'aisvs'.
        key: file with the public keys that have to vouch for every statement, and the certificates
            of time stamp services, if a promotion has to have a stamp; '' = nobody has to.
        folder: of a published release, which is audited where its store is not; '' = none.

    Returns:
        Location of the picture, or of a paper as a page to print, in the store's audits/; '' if
        nothing can be written there.

    Raises:
        SettingsError: there is no such model, store, format or key.
        TamperError: something differs from the record; the message names it.
    """
    if format not in FORMATS:
        raise SettingsError(f"--format {format!r} is none of {', '.join(FORMATS)}")
    keys = read_public_keys(Path(key)) if key else None
    if folder:
        return _audit_folder(Path(folder), format, keys)
    uri = store_of(model, store)
    if key:
        require_outside(Path(key), uri, "--key")
    tracking = location.tracking_uri(uri, os.environ.get("MLFLOW_TRACKING_URI", ""))
    authorities = read_authorities(Path(key)) if key else ()
    report = walk_back(model, tracking, uri, keys, authorities)
    # The verdict first: an auditor may not be allowed to write into the store.
    if format in PAPERS:
        text = paper(format, report, uri)
    else:
        text = json_line(report) if format == "json" else chain_text(report)
    _print(text, format)
    page = _write_page(paper_html(text) if format in PAPERS else picture_html(report), uri)
    if report.version.isdecimal():
        record_audit(parse_model_uri(model)[0], report.version, verdict(report), tracking)
    if page and format == "text":
        print_line("")
        print_line(f"Picture: {page}")
    _check_proved(report)
    return page


def _audit_folder(folder: Path, format: str, keys: TrustedKeys | None) -> str:
    """Audit what was published; nothing is written into the folder."""
    if format in PAPERS:
        raise SettingsError(
            f"--format {format} is written from a store; --folder has 'text' and 'json'"
        )
    report = audit_published(folder, keys)
    _print(json_line(report) if format == "json" else chain_text(report), format)
    deck(picture_html(report))
    _check_proved(report)
    return ""


def _print(text: str, format: str) -> None:
    """JSON stays one line on a terminal, too: a line that is divided is no JSON."""
    if format == "json":
        Screen().print(text, soft_wrap=True)
    else:
        Screen(soft_wrap=True).print(text)


def _check_proved(report: AuditReport) -> None:
    if not report.proved:
        first = report.findings[0]
        raise TamperError(f"{first.object}: {first.problem}\n{verdict(report)}")


def _write_page(html: str, store: str) -> str:
    deck(html)
    page = f"{store}/audits/{time.strftime('%Y%m%d-%H%M%S')}.html"
    try:
        store_at(page).write_bytes(html.encode())
    except (OSError, EngineError) as error:
        logger.warning("the page is not kept, %s cannot be written: %s", page, error)
        return ""
    return page
