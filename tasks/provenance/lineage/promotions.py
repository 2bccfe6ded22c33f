"""Promotions of a registered model, by the statements alone: which release was made current when.

Every release that passed its gate, and every rollback, says in its signed statement which number it
is and which promotion it follows. Where the settings of a release ask for approvals, the last of
them is the promotion, and without enough of them nothing is: each is signed by a key of its own,
other than that of the release. So whoever moves an alias, deletes a part of MLflow's history or
copies a release under another name is contradicted, and a stolen key cannot insert a promotion
between two others.
"""

import json
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from data_schemas.statements import Statement
from tasks.errors import DataError
from tasks.provenance.lineage.signatures.keys import TrustedKeys
from tasks.provenance.lineage.statements import AttestedStatement, open_statement, statement_uri
from tasks.provenance.lineage.version_details import APPROVAL, MODEL, ROLLBACK
from tasks.store.interface import store_at
from tasks.store.location import identity

NUMBER = "promotion"
"""Fact of a statement: the first promotion of a name is 1."""
AFTER = "promotion_before"
"""Fact of a statement: digest of the statement of the promotion before; the first has none."""
AWAITS = "awaits_approvals"
"""Fact of a release that passed its gate and is not promoted yet: approvals that it asks for."""
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
    """Digest of the statement of the release, of its last approval or of the rollback."""
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
    sound = _sound(store)
    believed = _believed(sound, keys)
    results = []
    for digest in believed:
        promotion = _promotion(name, digest, sound[digest].statement)
        if promotion is None:
            continue
        _, missing = _approvals(promotion.release, sound, believed)
        if not missing:
            results.append(promotion)
    own = identity(store)
    # Without any of this id, but some of others, the id was replaced.
    unknown = 0 if any(one.store for one in results) else math.inf
    first = min((one.number for one in results if one.store == own != ""), default=unknown)
    return sorted(
        (one for one in results if (one.store == own if one.store else one.number < first)),
        key=lambda one: (one.number, one.statement),
    )


def approvals(release: str, store: str, keys: TrustedKeys | None) -> tuple[frozenset[str], int]:
    """Return the keys that said yes to a release, and how many more it asks for.

    Args:
        release: digest of its statement.
        store: folder or s3:// uri.
        keys: that are believed; None or empty = anybody's.
    """
    sound = _sound(store)
    return _approvals(release, sound, _believed(sound, keys))


def _approvals(
    release: str,
    sound: Mapping[str, AttestedStatement],
    believed: Mapping[str, Collection[str]],
) -> tuple[frozenset[str], int]:
    """Keys that signed the release do not count, however often they say yes."""
    if release not in sound:
        return frozenset(), 0
    required = json.loads(sound[release].statement.settings).get("approvals", 0)
    if not isinstance(required, int):
        return frozenset(), 1  # no release of this program: nobody can approve it
    signers = {
        signer
        for digest, signers in (believed.items() if required else ())
        for signer in signers
        if _is_approval(sound[digest].statement, release)
    }
    others = frozenset(signers - set(sound[release].signers))
    return others, max(0, required - len(others))


def _is_approval(statement: Statement, release: str) -> bool:
    return statement.stage == APPROVAL and any(
        item.role == MODEL and item.statement == release for item in statement.inputs
    )


def _sound(store: str) -> dict[str, AttestedStatement]:
    """Open every statement of a store that is not damaged, by digest."""
    sound: dict[str, AttestedStatement] = {}
    for file in store_at(f"{store}/statements").list_files():
        digest = file.removesuffix(".json")
        try:
            content = store_at(statement_uri(store, digest)).read_bytes()
            sound[digest] = open_statement(content, digest, store)
        except DataError:
            continue
    return sound


def _believed(
    sound: Mapping[str, AttestedStatement], keys: TrustedKeys | None
) -> dict[str, tuple[str, ...]]:
    """Return the signers of each statement that are believed; without keys, all of them.

    A key that is limited to what led to a statement vouches for nothing else.
    """
    if not keys:
        return {digest: tuple(one.signers) for digest, one in sound.items()}
    limits = {key.last for key in keys.values() if key.last is not None}
    read = {digest: one.statement for digest, one in sound.items()}.get
    before = {last: led_to(last, read) for last in limits}
    results: dict[str, tuple[str, ...]] = {}
    for digest, attested in sound.items():
        signers = tuple(
            signer
            for signer in attested.signers
            if signer in keys and ((last := keys[signer].last) is None or digest in before[last])
        )
        if signers:
            results[digest] = signers
    return results


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


def pending(name: str, store: str, keys: TrustedKeys, approvals: int) -> Facts:
    """Return the facts of a release that waits: for how many, and the promotion it would follow.

    Args:
        name: of the registered model.
        store: folder or s3:// uri.
        keys: of this run.
        approvals: that its settings ask for.
    """
    history = promotions(name, store, keys)
    before: Facts = {AFTER: history[-1].statement} if history else {}
    return {AWAITS: approvals} | before


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
    expected = 1
    for number in sorted(by_number):
        if missing := number - expected:  # not each by its number: anybody may sign a billion
            gone = f"{expected} to {number - 1} are" if missing > 1 else f"{expected} is"
            problems.append((by_number[last].statement, f"promotion {gone} gone"))
        expected = number + 1
        before = by_number[number].before
        if number > 1 and before not in statements:
            problems.append((by_number[number].statement, f"follows {before}, which is gone"))
    return problems


def number_of(statement: Statement) -> int:
    """Return which promotion a statement is, 0 if it is none; anybody may have written it."""
    number = statement.facts.get(NUMBER, 0)
    return number if isinstance(number, int) and number > 0 else 0


def _promotion(name: str, digest: str, statement: Statement) -> Promotion | None:
    facts = statement.facts
    number = number_of(statement)
    if not number or json.loads(statement.settings).get("name") != name:
        return None
    if statement.stage in (ROLLBACK, APPROVAL):
        releases = [item for item in statement.inputs if item.role == MODEL]
        if len(releases) != 1:
            return None
        release, checkpoint = releases[0].statement, releases[0].digest
    elif statement.stage == RELEASE and statement.outputs:
        release, checkpoint = digest, statement.outputs[0].digest
    else:
        return None
    before, store = str(facts.get(AFTER, "")), str(facts.get(STORE, ""))
    return Promotion(number, digest, release, checkpoint, before, store)
