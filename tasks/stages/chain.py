"""Chains: stages in their order, each with where its inputs come from.

    TUNING = (
        link("starts", ingest_parents, "base", "context", settings="fitted.sft"),
        link("merged", merge, "base", "context", settings="fitted.merge", ...),
    )

    wire(TUNING, fitted=settings, base=base, context=context)["merged"]

A workflow is a slice of a chain (`leading_to`), a chain under other names (`renamed`), or two of
them behind each other. Flyte checks the types where it compiles what is wired.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Link:
    """A stage in its place: what of the values before it is which of its inputs."""

    result: str
    """Name of what it returns, for the links behind it."""
    stage: Callable[..., Any]
    """A Flyte task, a workflow, or a function that wires several."""
    reads: Mapping[str, str | Sequence[str]]
    """Input -> value: 'curated', an attribute of one such as 'fitted.sft', or a list of values."""
    constants: Mapping[str, object]
    """Inputs that are the same in every execution."""

    @property
    def values(self) -> set[str]:
        """Return the names of the values that it reads."""
        return {path.partition(".")[0] for path in _paths(self.reads.values())}


Chain = tuple[Link, ...]


def link(
    result: str,
    stage: Callable[..., Any],
    *same: str,
    constants: Mapping[str, object] | None = None,
    reads: Mapping[str, str | Sequence[str]] | None = None,
    **others: str | Sequence[str],
) -> Link:
    """Put a stage into a chain.

    Args:
        result: name of what it returns.
        stage: a task or workflow.
        same: inputs that are called as the value is.
        constants: inputs that no other link makes.
        reads: input -> value.
        others: likewise.
    """
    own = {name: name for name in same} | dict(reads or {}) | others
    return Link(result, stage, own, constants or {})


def wire(chain: Iterable[Link], **values: Any) -> dict[str, Any]:
    """Call the stages of a chain in their order, and return all values by name.

    An attribute of a promise is taken anew for every input: flytekit resolves it in place, so that
    one promise of an attribute cannot be the input of two tasks.

    Args:
        chain: of links.
        values: what the chain begins with.
    """
    for one in chain:
        inputs: dict[str, Any] = {}
        for name, path in one.reads.items():
            listed = not isinstance(path, str)
            parts = [_value(part, values, one) for part in (path if listed else (path,))]
            inputs[name] = parts if listed else parts[0]
        assert one.result not in values, f"two values of a chain are called {one.result!r}"
        values[one.result] = one.stage(**inputs, **one.constants)
    return values


def leading_to(chain: Sequence[Link], *results: str) -> Chain:
    """Return the part of a chain that some of its results need, in its order."""
    missing, part = set(results), list[Link]()
    for one in reversed(chain):
        if one.result in missing:
            part.append(one)
            missing |= one.values
    return tuple(reversed(part))


def renamed(chain: Iterable[Link], **names: str) -> Chain:
    """Return a chain that reads other values.

    Args:
        chain: of links.
        names: value -> the one to read instead, or an attribute of it: `curated="lesson.curated"`.
    """

    def rename(path: str) -> str:
        value, dot, attribute = path.partition(".")
        return f"{names.get(value, value)}{dot}{attribute}"

    return tuple(
        replace(
            one,
            reads={
                name: rename(path) if isinstance(path, str) else [*map(rename, path)]
                for name, path in one.reads.items()
            },
        )
        for one in chain
    )


def _paths(reads: Iterable[str | Sequence[str]]) -> list[str]:
    return [path for read in reads for path in ((read,) if isinstance(read, str) else read)]


def _value(path: str, values: Mapping[str, Any], reader: Link) -> Any:
    name, *attributes = path.split(".")
    assert name in values, f"nothing before {reader.result!r} in its chain is called {name!r}"
    value = values[name]
    for attribute in attributes:
        value = getattr(value, attribute)
    return value
