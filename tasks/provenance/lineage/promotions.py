"""Promotions of a registered model, by the statements alone: which release was made current when.

Every release that passed its gate, and every rollback, says in its signed statement which number it
is and which promotion it follows. So whoever moves an alias, deletes a part of MLflow's history or
copies a release under another name is contradicted, and a stolen key cannot insert a promotion
between two others.
"""

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from data_schemas.statements import Statement
from tasks.errors import DataError
from tasks.provenance.lineage.signatures.keys import TrustedKeys
from tasks.provenance.lineage.statements import AttestedStatement, open_statement, statement_uri
from tasks.provenance.lineage.version_details import MODEL, ROLLBACK
from tasks.store.interface import store_at
from tasks.store.location import identity

NUMBER = "promotion"
"""Fact of a statement: the first promotion of a name is 1."""
AFTER = "promotion_before"
"""Fact of a statement: digest of the statement of the promotion before; the first has none."""
STORE = "store"
"""Fact of a statement: id of the store that it is of. The same key may sign in several."""
RELEASE = "release"
"""Stage that makes a release."""
Facts = dict[str, float | int | str]


@dataclass(frozen=True, slots=True)
class Promotion:
    """A version became the released one."""

    number: int
    statement: str
    """Of the release or of the rollback."""
    release: str
    """Statement of the release that became current."""
    checkpoint: str
    """Digest of its folder."""
    before: str
    """Statement of the promotion before, '' for the first."""
    store: str = ""
    """Id of its store; '' in one of an earlier version."""


def promotions(name: str, store: str, keys: TrustedKeys | None) -> list[Promotion]:
    """List the promotions of a name, the current one last.

    Args:
        name: of the registered model.
        store: folder or s3:// uri.
        keys: one of them has to have signed; None or empty = anybody.

    A statement that is damaged, or that nobody trusted signed, counts as if it were not there; so
    does what a key signed behind the statement that its file limits it to, and what was promoted
    in another store: a statement without the id of its store counts before the first with it only,
    and not at all where all that have one are of other stores.
    """
    sound: dict[str, AttestedStatement] = {}
    for file in store_at(f"{store}/statements").list_files():
        digest = file.removesuffix(".json")
        try:
            content = store_at(statement_uri(store, digest)).read_bytes()
            sound[digest] = open_statement(content, digest, store)
        except DataError:
            continue
    limits = {key.last for key in (keys or {}).values() if key.last is not None}
    read = {digest: one.statement for digest, one in sound.items()}.get
    before = {last: led_to(last, read) for last in limits}
    results = []
    for digest, attested in sound.items():
        trusted = [keys[signer].last for signer in attested.signers if keys and signer in keys]
        if keys and not any(last is None or digest in before[last] for last in trusted):
            continue
        if promotion := _promotion(name, digest, attested.statement):
            results.append(promotion)
    own = identity(store)
    # Without any of this id, but some of others, the id was replaced.
    unknown = 0 if any(one.store for one in results) else math.inf
    first = min((one.number for one in results if one.store == own != ""), default=unknown)
    return sorted(
        (one for one in results if (one.store == own if one.store else one.number < first)),
        key=lambda one: (one.number, one.statement),
    )


def led_to(last: str, read: Callable[[str], Statement | None]) -> frozenset[str]:
    """List a statement, its ancestors, and those of the promotions before it.

    Args:
        last: digest of the statement.
        read: returns the statement of a digest, None if it is not sound.
    """
    results: set[str] = set()
    waiting = [last]
    while waiting:
        current = waiting.pop()
        if current and current not in results and (statement := read(current)) is not None:
            results.add(current)
            waiting += before_it(statement)
    return frozenset(results)


def before_it(statement: Statement) -> list[str]:
    """List the statements that a statement follows from, the promotion before included."""
    return [*(item.statement for item in statement.inputs), str(statement.facts.get(AFTER, ""))]


def next_promotion(name: str, store: str, keys: TrustedKeys, checkpoint: str) -> Facts:
    """Return the facts of the promotion that follows the current one.

    The same release that is made current again at once, as a task that is tried again does, is the
    same promotion.

    Args:
        name: of the registered model.
        store: folder or s3:// uri.
        keys: of this run.
        checkpoint: digest of the folder of the release.
    """
    result = promotions(name, store, keys)
    own: Facts = {STORE: identity(store)}
    if not result:
        return own | {NUMBER: 1}
    current = result[-1]
    if current.checkpoint == checkpoint:
        own |= {NUMBER: current.number}
        return own | ({AFTER: current.before} if current.before else {})
    return own | {NUMBER: current.number + 1, AFTER: current.statement}


def promotion_problems(history: Iterable[Promotion]) -> list[tuple[str, str]]:
    """Name (statement, problem) for every promotion that does not follow from the one before."""
    problems = []
    by_number: dict[int, Promotion] = {}
    for one in history:
        other = by_number.setdefault(one.number, one)
        if other.checkpoint != one.checkpoint:
            problem = f"is promotion {one.number}, as {other.statement} is; one of them was forged"
            problems.append((one.statement, problem))
    statements = {one.statement: one for one in history}
    last = max(by_number, default=0)
    for number in range(1, last + 1):
        if number not in by_number:
            problems.append((by_number[last].statement, f"promotion {number} is gone"))
            continue
        before = by_number[number].before
        if number > 1 and before not in statements:
            problems.append((by_number[number].statement, f"follows {before}, which is gone"))
    return problems


def _promotion(name: str, digest: str, statement: Statement) -> Promotion | None:
    facts = statement.facts
    if NUMBER not in facts or json.loads(statement.settings).get("name") != name:
        return None
    if statement.stage == ROLLBACK:
        releases = [item for item in statement.inputs if item.role == MODEL]
        if len(releases) != 1:
            return None
        release, checkpoint = releases[0].statement, releases[0].digest
    elif statement.stage == RELEASE and statement.outputs:
        release, checkpoint = digest, statement.outputs[0].digest
    else:
        return None
    before, store = str(facts.get(AFTER, "")), str(facts.get(STORE, ""))
    return Promotion(int(facts[NUMBER]), digest, release, checkpoint, before, store)
