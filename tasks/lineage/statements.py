"""Statements on disk: the chain of inputs and outputs.

A statement lies at `<store>/statements/<digest>.json` and is named by the sha256 of
its bytes, which contain the digests of its inputs' statements: nobody can change a
link without changing every name after it. `<store>/executions/<execution>/` records
when and where a stage ran; it is for information and is not evidence.
"""

import functools
import hashlib
import importlib.metadata
import json
from collections.abc import Iterable, Mapping, Sequence

from pydantic import BaseModel, ValidationError

from data_schemas.statements import ExecutionRecord, Statement
from tasks.errors import DataError, TamperError
from tasks.store.files import canonical_json, sha256_bytes
from tasks.store.interface import store_at


@functools.cache
def environment_digest() -> str:
    """Hash the names and versions of all installed distributions."""
    installed = {
        f"{distribution.name}=={distribution.version}"
        for distribution in importlib.metadata.distributions()
    }
    return hashlib.sha256("\n".join(sorted(installed)).encode()).hexdigest()


def statement_uri(store: str, digest: str) -> str:
    """Return the uri of a statement."""
    return f"{store}/statements/{digest}.json"


def statement_digest(statement: Statement) -> str:
    """Name a statement by its content."""
    return sha256_bytes(canonical_json(statement))


def save_statement(store: str, statement: Statement) -> str:
    """Store a statement write-once and return its digest.

    Raises:
        TamperError: something else lies under its name.
    """
    payload = canonical_json(statement)
    digest = sha256_bytes(payload)
    place = store_at(statement_uri(store, digest))
    if not place.create_bytes(payload) and place.read_bytes() != payload:
        raise TamperError(f"{place.uri}: not the statement it is named after; restore or delete it")
    return digest


def load_statement(store: str, digest: str) -> Statement:
    """Read a statement and check that it is the one it is named after.

    Raises:
        DataError: it is gone.
        TamperError: its bytes were changed.
    """
    uri = statement_uri(store, digest)
    payload = store_at(uri).read_bytes()
    if (found := sha256_bytes(payload)) != digest:
        raise TamperError(f"{uri}: sha256 is {found}, recorded {digest}")
    try:
        return Statement.model_validate_json(payload)
    except ValidationError as error:
        raise DataError(f"{uri} is not a statement of this version: {error}") from error


def chain(store: str, roots: Iterable[str]) -> dict[str, Statement]:
    """Load every statement that led to `roots`, keyed by digest, each after its producers.

    Raises:
        DataError: one of them is gone.
        TamperError: one of them was changed.
    """
    found: dict[str, Statement] = {}
    opened: dict[str, Statement] = {}
    # Not recursive: a model that was retrained every night has a very long chain.
    waiting = list(roots)
    while waiting:
        current = waiting.pop()
        if current in found or not current:
            continue
        if current in opened:
            found[current] = opened[current]
            continue
        opened[current] = load_statement(store, current)
        waiting.append(current)
        waiting += [item.statement for item in opened[current].inputs]
    return found


def save_execution(store: str, record: ExecutionRecord) -> None:
    """Store when and where a stage ran; a retried stage replaces its record."""
    name = f"{record.stage.replace('/', '.')}.json"
    store_at(f"{store}/executions/{record.execution}/{name}").write_bytes(canonical_json(record))


def load_executions(store: str, execution: str) -> list[ExecutionRecord]:
    """Read what one workflow execution really ran, oldest first; cached stages have no record."""
    folder = store_at(f"{store}/executions/{execution}")
    records = [
        ExecutionRecord.model_validate_json(folder.read_bytes(name)) for name in folder.list_files()
    ]
    return sorted(records, key=lambda record: record.started)


def run_key(execution: str, stage: str) -> str:
    """Name the run of a stage in MLflow; all attempts at it in one execution share the name."""
    return f"{execution}.{stage.replace('/', '.')}"


def run_tags(execution: str, stage: str, code: Sequence[str], store_id: str) -> dict[str, str]:
    """Return the tags of a stage's run in MLflow."""
    return {
        "eachprompt.execution": execution,
        "eachprompt.stage": stage,
        "eachprompt.code": ",".join(code),
        "eachprompt.store": store_id,
    }


def flat_settings(settings: BaseModel) -> dict[str, str]:
    """Name every leaf of a settings model with dots, as text."""
    return flat_values(settings.model_dump(mode="json"))


def flat_values(values: Mapping[str, object]) -> dict[str, str]:
    """Name every leaf of nested settings with dots, as text."""
    flat: dict[str, str] = {}

    def visit(prefix: str, value: object) -> None:
        if isinstance(value, Mapping) and value:
            for key, inner in value.items():
                visit(f"{prefix}.{key}" if prefix else str(key), inner)
        else:
            flat[prefix] = value if isinstance(value, str) else json.dumps(value, sort_keys=True)

    visit("", values)
    return flat
