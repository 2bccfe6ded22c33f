"""What a version of a registered model shows beside its card: links, scores, files."""

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from data_schemas.events import FileAttached
from tasks.provenance.lineage.catalogue import mlflow_name
from tasks.provenance.lineage.descriptions import EXECUTION, FLYTE_EXECUTION
from tasks.provenance.lineage.registry import CARD_FILE, GATE_FILE, MANIFEST_FILE
from tasks.store.interface import store_at

MODEL = "model"
"""Role of the checkpoint, read or made, that the facts of a stage are about."""
ROLLBACK = "rollback"
APPROVAL = "approve/release"
"""Stage in which somebody says yes to a release."""
"""Stage that releases an earlier version again."""
REPORT_FILE = "report.html"
ACCURACY = "accuracy/"
_SHOWN = ("all", "domain:", "language:")


def reports_uri(store: str) -> str:
    """Return the folder of all reports."""
    return f"{store}/reports"


def report_uri(store: str, execution: str) -> str:
    """Return where the report of an execution lies, or will."""
    return f"{reports_uri(store)}/{execution}.html"


def version_tags(
    store: str,
    model: str,
    run_tags: Mapping[str, str],
    facts: Mapping[str, float | int | str],
) -> dict[str, str]:
    """Return the tags that link a version to its card, report, BOM, execution, and its scores.

    Args:
        store: uri.
        model: uri of the release folder.
        run_tags: of the run that registers it.
        facts: of its statement.
    """
    tags = {name: run_tags[name] for name in (EXECUTION, FLYTE_EXECUTION) if name in run_tags}
    if EXECUTION in tags:
        tags["report"] = report_uri(store, tags[EXECUTION])
    names = {CARD_FILE: "card", **dict.fromkeys(_boms(model), "bom")}
    present = store_at(model).list_files()
    tags |= {tag: f"{model}/{file}" for file, tag in names.items() if file in present}
    for name, value in facts.items():
        suite = name.removeprefix(ACCURACY)
        if name.startswith(ACCURACY) and suite.startswith(_SHOWN):
            tags[mlflow_name(name)] = f"{value:.4f}"
    return tags


def attachments(model: str) -> Iterator[FileAttached]:
    """Yield the files of a release folder that MLflow keeps as artifacts of its run."""
    present = store_at(model).list_files()
    for name in (CARD_FILE, MANIFEST_FILE, GATE_FILE, *_boms(model)):
        if name in present:
            yield FileAttached(uri=f"{model}/{name}", name=name)
    if CARD_FILE in present:
        yield FileAttached(uri=f"{model}/{CARD_FILE}", name=CARD_FILE, to_execution=True)


def _boms(model: str) -> list[str]:
    """Bills of materials in a release folder."""
    names = [PurePosixPath(name) for name in store_at(model).list_files()]
    return [str(name) for name in names if name.suffix == ".json" and "bom" in name.stem.lower()]
