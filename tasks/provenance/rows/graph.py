"""Which model was made from which: the statements of a store as a graph of checkpoints.

A checkpoint is an output with the role `model`. What a stage learned reaches another stage only
with such an output: reports, curated sets and evaluations carry no weights.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from data_schemas.row_lineage import TracedCheckpoint
from data_schemas.statements import Output, Statement
from tasks.errors import SettingsError

MODEL = "model"
"""Role of a checkpoint among the outputs of its stage."""
SHORTEST_PREFIX = 8
"""Characters of a digest that a person has to type."""


@dataclass(frozen=True, slots=True)
class Graph:
    """The statements of a store, and how checkpoints follow from each other."""

    statements: Mapping[str, Statement]
    """By digest."""
    _next: Mapping[str, list[str]] = field(init=False)
    _before: Mapping[str, list[str]] = field(init=False)
    _place: Mapping[str, int] = field(init=False)

    def __post_init__(self) -> None:
        before: dict[str, list[str]] = {}
        after: dict[str, list[str]] = defaultdict(list)
        for digest, statement in self.statements.items():
            if checkpoint_of(statement) is None:
                continue
            before[digest] = [
                item.statement
                for item in statement.inputs
                if item.statement in self.statements
                and item.digest == _digest(self.statements[item.statement])
            ]
            for producer in before[digest]:
                after[producer].append(digest)
        object.__setattr__(self, "_before", before)
        object.__setattr__(self, "_next", after)
        object.__setattr__(self, "_place", _places(self.statements))

    def made_from(self, roots: Iterable[str]) -> list[str]:
        """List the statements of all checkpoints that follow from these, themselves included."""
        return self._reach(roots, self._next)

    def made_of(self, roots: Iterable[str]) -> list[str]:
        """List the statements of all checkpoints that led to these, themselves included."""
        return self._reach(roots, self._before)

    def behind(self, roots: Iterable[str]) -> list[str]:
        """List every statement that led to these: data, reports and evaluations as well."""
        inputs = {
            digest: [item.statement for item in statement.inputs]
            for digest, statement in self.statements.items()
        }
        return self._reach(roots, inputs)

    def find(self, digest: str) -> list[str]:
        """Find the statements that made a checkpoint, by its digest or by that of a statement.

        Args:
            digest: the whole of it, or its first characters.

        Raises:
            SettingsError: it names no checkpoint, or several.
        """
        checkpoints = {
            name: checkpoint.digest
            for name, statement in self.statements.items()
            if (checkpoint := checkpoint_of(statement))
        }
        results = [name for name in checkpoints if _begins(digest, name, checkpoints[name])]
        if not results:
            raise SettingsError(
                f"--model {digest!r} is no checkpoint of this store. Use models:/NAME@released, or "
                f"at least {SHORTEST_PREFIX} characters of the digest of a checkpoint."
            )
        if len({checkpoints[name] for name in results}) > 1:
            raise SettingsError(
                f"--model {digest!r} begins the digests of {len(results)} checkpoints; type more"
            )
        return results

    def describe(self, digest: str) -> TracedCheckpoint:
        """Describe the checkpoint of a statement."""
        statement = self.statements[digest]
        is_release = {"manifest_sha256", "released"} <= statement.facts.keys()
        return TracedCheckpoint(
            stage=statement.stage,
            statement=digest,
            checkpoint=_digest(statement),
            release=str(json.loads(statement.settings).get("name", "")) if is_release else "",
            version=str(statement.facts.get("version", "")) if is_release else "",
            passed=bool(statement.facts["released"]) if is_release else False,
        )

    def describe_all(self, digests: Iterable[str]) -> tuple[TracedCheckpoint, ...]:
        return tuple(self.describe(digest) for digest in digests)

    def _reach(self, roots: Iterable[str], edges: Mapping[str, list[str]]) -> list[str]:
        # Not recursive: a model that was retrained every night has a very long chain.
        results: dict[str, None] = {}
        waiting = [root for root in roots if root in self.statements]
        while waiting:
            current = waiting.pop()
            if current not in results and current in self.statements:
                results[current] = None
                waiting += edges.get(current, [])
        return self.in_order(results)

    def in_order(self, digests: Iterable[str]) -> list[str]:
        """Sort statements, each after those that it follows from."""
        return sorted(digests, key=self._place.__getitem__)


def checkpoint_of(statement: Statement) -> Output | None:
    """Return the model that a stage made; None if it made none."""
    return next((output for output in statement.outputs if output.role == MODEL), None)


def _digest(statement: Statement) -> str:
    output = checkpoint_of(statement)
    return output.digest if output else ""


def _begins(text: str, *digests: str) -> bool:
    return len(text) >= SHORTEST_PREFIX and any(digest.startswith(text) for digest in digests)


def _places(statements: Mapping[str, Statement]) -> dict[str, int]:
    """Number statements, each after its producers."""
    numbers: dict[str, int] = {}
    waiting = [*statements][::-1]
    # Not recursive: a model that was retrained every night has a very long chain.
    while waiting:
        current = waiting[-1]
        producers = [item.statement for item in statements[current].inputs]
        missing = [one for one in producers if one in statements and one not in numbers]
        if missing and current not in numbers:
            waiting += missing
        else:
            numbers.setdefault(waiting.pop(), len(numbers))
    return numbers
