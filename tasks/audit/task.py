"""Flyte shell of the audit: walk back from a registered model and verify every step."""

import os
import time

from rich.console import Console

from tasks.audit.picture import picture_html
from tasks.audit.text import chain_text, verdict
from tasks.audit.walk import audit as walk_back
from tasks.errors import TamperError
from tasks.platform.deck import deck
from tasks.platform.shell import shell
from tasks.store import location
from tasks.store.interface import store_at


@shell("audit")
def audit(model: str, store: str) -> str:
    """Re-hash everything a model was made from, print the chain, and draw it.

    Args:
        model: 'models:/NAME@released' or 'models:/NAME/3'.
        store: folder or s3:// prefix the artifacts lie in.

    Returns:
        Location of the picture, in the store's audits/.

    Raises:
        TamperError: something differs from the record; the message names it.
    """
    uri = location.absolute_store(store)
    tracking = location.tracking_uri(uri, os.environ.get("MLFLOW_TRACKING_URI", ""))
    report = walk_back(model, tracking, uri)
    html = picture_html(report)
    page = f"{uri}/audits/{time.strftime('%Y%m%d-%H%M%S')}.html"
    store_at(page).write_bytes(html.encode())
    deck(html)
    text = f"{chain_text(report)}\n\nPicture: {page}"
    Console(soft_wrap=True, highlight=False).print(text, markup=False)
    if not report.proved:
        first = report.findings[0]
        raise TamperError(f"{first.object}: {first.problem}\n{verdict(report)}")
    return page
