"""The results of a finished stage, which later runs use without a step.

    <store>/state/<work>.json      the committed results, signed for this work

Used where a stage trains for hours: fine-tuning, merge, and every phase of RL. Its work is named
by everything that determines the results. They are recorded before the working state is removed.
If an attempt is cut before Flyte has its outputs, the next one returns them without a step; so
does a run that waited for another, also where Flyte's cache does not know of either.

The file is no evidence by itself: what it names is used only if a trusted key signed it for this
work, and if the statement it names is signed as well and says that this stage, with this code,
settings and inputs, made these objects. Otherwise the work is done again.
"""

import logging
from collections.abc import Iterable
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from data_schemas.artifacts import CheckpointRef, ReportRef
from data_schemas.frozen_model import FrozenModel
from tasks.errors import DataError
from tasks.provenance.lineage.origins import object_uri
from tasks.provenance.lineage.signatures.keys import trusted_keys
from tasks.provenance.lineage.signatures.working import seal, unseal
from tasks.provenance.lineage.statements import (
    load_executions,
    load_statement,
    open_statement,
    statement_uri,
)
from tasks.store.files import canonical_json, sha256_bytes
from tasks.store.interface import store_at
from tasks.store.manifest import MANIFEST

logger = logging.getLogger(__name__)

_KIND = "results"
Ref = TypeVar("Ref", CheckpointRef, ReportRef)


class Results(FrozenModel):
    """What a finished stage committed, and what it followed from besides its name."""

    stage: str
    code: str
    execution: str
    model: CheckpointRef
    report: ReportRef | None = None


def find(
    uri: str, stage: str, code: str, settings: BaseModel, inputs: Iterable[str]
) -> Results | None:
    """Read the results of this work if it was finished under the same name and code.

    Args:
        uri: of the work in the store.
        stage: 'rl/one', 'merge'.
        code: source digest of this program.
        settings: of the stage, as its statement has them.
        inputs: digests of artifacts that the stage has to have read.
    """
    place = store_at(f"{uri}.json")
    try:
        content = place.read_bytes()
    except DataError:
        return None
    try:
        payload = unseal(_KIND, _name(uri), content, place.uri)
        results = Results.model_validate_json(payload)
        if (results.stage, results.code) != (stage, code):
            return None
        store = uri.rpartition("/state/")[0]
        results = results.model_copy(
            update={
                "model": _here(results.model, store),
                "report": results.report and _here(results.report, store),
            }
        )
        for ref in (results.model, results.report):
            if ref:
                _check(store, ref, stage, code, settings, set(inputs))
    except (DataError, ValidationError) as error:
        logger.warning("the results at %s are not used, the work is done again: %s", uri, error)
        return None
    logger.warning("%s was finished by %s; its results are used", stage, results.execution)
    return results


def find_report(
    store: str, execution: str, stage: str, code: str, settings: BaseModel, inputs: Iterable[str]
) -> ReportRef | None:
    """Find a report that this execution made of the same inputs under another name.

    Args:
        store: of the execution.
        execution: id.
        stage: 'evaluate/merged'; the other one is 'evaluate/...' too.
        code: source digest of this program.
        settings: of the stage.
        inputs: digests of the artifacts it reads.
    """
    for one in load_executions(store, execution):
        if one.stage == stage or one.stage.partition("/")[0] != stage.partition("/")[0]:
            continue
        statement = load_statement(store, one.statement)
        for output in statement.outputs:
            ref = ReportRef(uri=output.uri, digest=output.digest, statement=one.statement)
            try:
                _check(store, ref, one.stage, code, settings, set(inputs))
            except DataError:
                continue
            return ref
    return None


def record(
    uri: str,
    stage: str,
    code: str,
    execution: str,
    model: CheckpointRef,
    report: ReportRef | None = None,
) -> None:
    """Record what a stage committed. Call it before its working state is removed."""
    results = Results(stage=stage, code=code, execution=execution, model=model, report=report)
    store_at(f"{uri}.json").write_bytes(seal(_KIND, _name(uri), canonical_json(results)))


def _here(ref: Ref, store: str) -> Ref:
    """Return the reference in this store, which may have been moved or copied since."""
    return ref.model_copy(update={"uri": object_uri(store, ref.uri, ref.digest)})


def _check(
    store: str,
    ref: CheckpointRef | ReportRef,
    stage: str,
    code: str,
    settings: BaseModel,
    inputs: set[str],
) -> None:
    """Check that an object is there, and that its statement says this work made it.

    Raises:
        DataError: it is gone, or the statement is gone, not signed, or about something else.
    """
    if ref.uri != f"{store}/objects/{ref.digest[:16]}":
        raise DataError(f"{ref.uri} is no object of {store}")
    if sha256_bytes(store_at(ref.uri).read_bytes(MANIFEST)) != ref.digest:
        raise DataError(f"{ref.uri} is not the object {ref.digest}")
    where = statement_uri(store, ref.statement)
    attested = open_statement(store_at(where).read_bytes(), ref.statement, store)
    trusted = trusted_keys(store)
    if trusted and not any(trusted[key].last is None for key in attested.signers if key in trusted):
        raise DataError(f"{where} is not signed by a key that this run trusts")
    statement = attested.statement
    if statement.stage != stage or code not in statement.code:
        raise DataError(f"{where} is of {statement.stage}, or of other code")
    if statement.settings != canonical_json(settings).decode():
        raise DataError(f"{where} has other settings")
    if missing := inputs - {item.digest for item in statement.inputs}:
        raise DataError(f"{where} does not name the input {sorted(missing)[0]}")
    if ref.digest not in {output.digest for output in statement.outputs}:
        raise DataError(f"{where} did not make {ref.digest}")


def _name(uri: str) -> str:
    return uri.rpartition("/")[2]
