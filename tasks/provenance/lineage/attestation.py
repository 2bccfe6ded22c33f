"""A statement as an in-toto Statement v1 with an SLSA Provenance v1 predicate, and back.

    subject                 the outputs; the sha256 of an artifact is that of its MANIFEST.json
    externalParameters      stage and settings
    resolvedDependencies    the inputs with the digests of their statements, source, packages, lock,
                            container
    byproducts              the facts

An artifact's uri is relative to the store, so that a store can be moved, and the same work in two
stores is one statement. Times and machines are in the execution record: a stage that is run again
must write the same bytes.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

from data_schemas.statements import Input, Output, Statement
from tasks.errors import DataError
from tasks.provenance.lineage import origins
from tasks.store.files import canonical_json, sha256_bytes

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://slsa.dev/provenance/v1"
BUILD_TYPE = "urn:eachprompt:stage:v1"
_BUILDERS = {True: "urn:eachprompt:builder:flyte", False: "urn:eachprompt:builder:local"}
"""By whether the stage ran in a container."""
_FACTS = "facts"
_SOURCE = "source"
_PACKAGES = "packages"
_LOCK = "lock"
_CONTAINER = "container"
_STATEMENT = "statement"

Resource = dict[str, Any]
"""An in-toto ResourceDescriptor."""


def to_payload(statement: Statement) -> bytes:
    """Write a statement as canonical JSON."""
    facts = canonical_json(statement.facts)
    byproduct = {
        "name": _FACTS,
        "digest": {"sha256": sha256_bytes(facts)},
        "annotations": statement.facts,
    }
    # in-toto wants a subject even where a stage made nothing but facts.
    subject = [_artifact(item) for item in statement.outputs] or [
        {"name": _FACTS, "digest": byproduct["digest"]}
    ]
    return canonical_json(
        {
            "_type": STATEMENT_TYPE,
            "subject": subject,
            "predicateType": PREDICATE_TYPE,
            "predicate": {
                "buildDefinition": {
                    "buildType": BUILD_TYPE,
                    "externalParameters": {
                        "stage": statement.stage,
                        "settings": json.loads(statement.settings),
                    },
                    "resolvedDependencies": list(_dependencies(statement)),
                },
                "runDetails": {
                    "builder": {"id": _BUILDERS[bool(statement.container)]},
                    "byproducts": [byproduct],
                },
            },
        }
    )


def from_payload(payload: bytes, store: str, where: str) -> Statement:
    """Read a statement, by the version that it names; the artifacts it names lie in `store`.

    A new version of statements is a new reader and a new writer beside those that there are: stores
    that earlier releases wrote have to be audited as they are.

    Raises:
        DataError: it is not one that this version can read.
    """
    try:
        content = json.loads(payload)
        version = str(content["predicate"]["buildDefinition"]["buildType"])
        if version not in _VERSIONS:
            raise DataError(
                f"{where} is a statement of {version}, and this version reads "
                f"{', '.join(_VERSIONS)}. Use the release that wrote it, or a later one."
            )
        reader, writer = _VERSIONS[version]
        statement = reader(content, store)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{where} is not a statement of this version: {error!r}") from error
    check_parts(statement, where)
    if writer(statement) != payload:
        raise DataError(f"{where} is not a statement of this version: it says more than one")
    return statement


def check_parts(statement: Statement, where: str) -> None:
    """Refuse what no stage writes. Planted by anybody, it would stop whoever reads all statements.

    Raises:
        DataError: names it.
    """
    try:
        settings = json.loads(statement.settings)
    except (ValueError, RecursionError):
        settings = None
    if not isinstance(settings, dict):
        raise DataError(f"{where} is not a statement of this version: its settings are no object")
    items = (*statement.inputs, *statement.outputs)
    links = (item.statement for item in statement.inputs)
    if any("\0" in text for item in items for text in (item.role, item.uri, item.digest)) or any(
        "\0" in text for text in (statement.stage, *links)
    ):
        raise DataError(f"{where} is not a statement of this version: a name has a NUL in it")


def _parse(content: Any, store: str) -> Statement:
    build = content["predicate"]["buildDefinition"]
    resources: dict[str, list[Resource]] = {}
    inputs = []
    for item in build["resolvedDependencies"]:
        if "annotations" in item:
            place = _place(item, store)
            inputs.append(Input(**place, statement=item["annotations"][_STATEMENT]))
        else:
            resources.setdefault(item["name"], []).append(item)
    (facts,) = content["predicate"]["runDetails"]["byproducts"]
    return Statement(
        stage=build["externalParameters"]["stage"],
        settings=canonical_json(build["externalParameters"]["settings"]).decode(),
        code=tuple(item["digest"]["sha256"] for item in resources.get(_SOURCE, ())),
        environment=resources[_PACKAGES][0]["digest"]["sha256"],
        lock=resources[_LOCK][0]["digest"]["sha256"] if _LOCK in resources else "",
        container=resources[_CONTAINER][0]["uri"] if _CONTAINER in resources else "",
        inputs=tuple(inputs),
        outputs=tuple(
            Output(**_place(item, store)) for item in content["subject"] if "uri" in item
        ),
        facts=facts["annotations"],
    )


def _dependencies(statement: Statement) -> Iterator[Resource]:
    for item in statement.inputs:
        yield {**_artifact(item), "annotations": {_STATEMENT: item.statement}}
    for code in statement.code:
        yield {"name": _SOURCE, "digest": {"sha256": code}}
    yield {"name": _PACKAGES, "digest": {"sha256": statement.environment}}
    if statement.lock:
        yield {"name": _LOCK, "digest": {"sha256": statement.lock}}
    if statement.container:
        digest = statement.container.partition("@sha256:")[2]
        digests = {"digest": {"sha256": digest}} if digest else {}
        yield {"name": _CONTAINER, "uri": statement.container, **digests}


def _artifact(item: Input | Output) -> Resource:
    relative = _relative(item.digest)
    is_outside = isinstance(item, Input) and origins.is_source(item)
    is_inside = item.uri.endswith(f"/{relative}") and not is_outside
    uri = relative if is_inside else item.uri
    return {"name": item.role, "uri": uri, "digest": {"sha256": item.digest}}


def _place(resource: Resource, store: str) -> dict[str, str]:
    digest = resource["digest"]["sha256"]
    is_inside = resource["uri"] == _relative(digest)
    uri = f"{store}/{resource['uri']}" if is_inside else resource["uri"]
    return {"role": resource["name"], "uri": uri, "digest": digest}


def _relative(digest: str) -> str:
    return f"objects/{digest[:16]}"


_VERSIONS: dict[str, tuple[Callable[[Any, str], Statement], Callable[[Statement], bytes]]] = {
    BUILD_TYPE: (_parse, to_payload)
}
"""Version of statements -> its reader, and the writer that proves that it read everything."""
