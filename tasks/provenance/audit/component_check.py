"""Comparison of a release's bill of materials with what the audit re-hashed.

The bill's own bytes are those of the release. Here every claim in it is looked up: each digest
among the objects, files and raw files that were hashed again, each step among the statements,
each accuracy among the facts of the release, and the software in the lock files, where this
version of the project has them.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from data_schemas.statements import Statement
from tasks.provenance.lineage.origins import public_settings
from tasks.provenance.release.bom import software

Json = dict[str, Any]


def bom_problems(
    bill: bytes, hashed: set[str], statements: Mapping[str, Statement], facts: Mapping[str, object]
) -> Iterator[str]:
    """Yield every claim that the evidence does not support.

    Args:
        bill: the file's content.
        hashed: sha256 of everything that was hashed again, from object to raw file.
        statements: of the chain, by digest.
        facts: of the release.
    """
    try:
        yield from _problems(json.loads(bill), hashed, statements, facts)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        yield f"is no bill of materials of this version: {error!r:.200}"


def _problems(
    bill: Json, hashed: set[str], statements: Mapping[str, Statement], facts: Mapping[str, object]
) -> Iterator[str]:
    model = bill["metadata"]["component"]
    hashed = hashed | {one.lock for one in statements.values()}
    yield from _software(bill, statements)
    for component in (model, *model["components"], *bill["components"]):
        for entry in component["hashes"]:
            if entry["alg"] != "SHA-256" or entry["content"] not in hashed:
                digest = f"{entry['alg']} {entry['content']}"
                yield f"{component['bom-ref']} has {digest}, which nothing has"
    for metric in model["modelCard"]["quantitativeAnalysis"]["performanceMetrics"]:
        fact = facts.get(f"{metric['type']}/{metric['slice']}")
        if repr(fact) != metric["value"]:
            about = f"{metric['type']} on {metric['slice']}"
            yield f"{about} is {metric['value']}, the release has {fact}"
    listed = {one["uid"]: one for one in bill["formulation"][0]["workflows"]}
    for uid, workflow in listed.items():
        statement = statements.get(uid)
        if statement is None:
            yield f"the step {workflow['name']} has the statement {uid}, which the chain lacks"
        elif _claims(workflow) not in (_recorded(statement), _published(statement)):
            yield f"the step {workflow['name']} is not as in its statement {uid}"


def _software(bill: Json, statements: Mapping[str, Statement]) -> Iterator[str]:
    """Compare lock files with those of this version of the project; others by their digest only."""
    claimed = [one for one in bill["components"] if one["bom-ref"].startswith("lock:")]
    for one in software(statements):
        if "components" in one and claimed and one not in claimed:
            yield f"{one['name']} pins other software than {one['bom-ref']} lists"


def _claims(workflow: Json) -> Json:
    return {"stage": workflow["name"]} | {
        one["name"].removeprefix("eachprompt:"): one["value"] for one in workflow["properties"]
    }


def _published(statement: Statement) -> Json:
    """Settings stand in a bill without places; in one of an earlier version, as recorded."""
    return _recorded(statement.model_copy(update={"settings": public_settings(statement)}))


def _recorded(statement: Statement) -> Json:
    values = {
        "stage": statement.stage,
        "settings": statement.settings,
        "code": " ".join(statement.code),
        "packages": statement.environment,
        "lock": statement.lock,
        "container": statement.container,
    }
    return {name: value for name, value in values.items() if value}
