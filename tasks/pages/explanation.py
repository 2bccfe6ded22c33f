"""Why a stage ran or was served from the cache.

A stage that was not executed was served from the cache: its statement already existed. A
stage that was executed is compared with the most recent earlier statement of the same name.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from data_schemas.statements import ExecutionRecord, Statement

_MAX_CHANGES = 3
_MAX_VALUE = 40
"""Characters of a settings value that are shown."""


@dataclass(frozen=True, slots=True)
class StatementExecution:
    """A statement with one execution that made it."""

    statement: Statement
    record: ExecutionRecord


def explain(current: Statement, executed_now: bool, earlier: Sequence[StatementExecution]) -> str:
    """Explain in one line why a stage ran or was served from the cache.

    Args:
        current: the statement that this execution used as the stage's result.
        executed_now: False if it was served from the cache.
        earlier: statements of other executions in this store, any stage, any order.
    """
    same_stage = sorted(
        (earlier_run for earlier_run in earlier if earlier_run.statement.stage == current.stage),
        key=lambda earlier_run: earlier_run.record.started,
    )
    if not executed_now:
        return _explain_cached(current, same_stage)
    if not same_stage:
        return "first time in this store"
    last = same_stage[-1]
    changes = differences(last.statement, current)
    if not changes:
        return f"ran again; nothing changed since {_when(last.record)}"
    return "; ".join(changes)


def differences(before: Statement, after: Statement) -> list[str]:
    """List what changed between two statements of one stage, causes only."""
    changes = []
    if before.code != after.code:
        changes.append("code changed")
    changes.extend(_settings_changes(before.settings, after.settings))
    changes.extend(_input_changes(before, after))
    if before.environment != after.environment:
        changes.append("installed packages changed")
    return changes


def _explain_cached(current: Statement, same_stage: Sequence[StatementExecution]) -> str:
    makers = [earlier_run for earlier_run in same_stage if earlier_run.statement == current]
    if not makers:
        return "same code, settings and inputs as an execution not recorded in this store"
    return f"same code, settings and inputs as {_when(makers[-1].record)}"


def _when(record: ExecutionRecord) -> str:
    date = datetime.fromtimestamp(record.started, UTC).strftime("%Y-%m-%d")
    return f"execution {record.execution} on {date}"


def _settings_changes(before: str, after: str) -> list[str]:
    old, new = flat(json.loads(before)), flat(json.loads(after))
    changed = [
        f"{name} {value_text(old, name)} -> {value_text(new, name)}"
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name) or (name in old) != (name in new)
    ]
    if not changed:
        return []
    more = len(changed) - _MAX_CHANGES
    listed = ", ".join(changed[:_MAX_CHANGES])
    return [f"settings changed: {listed}" + (f" and {more} more" if more > 0 else "")]


def flat(value: object, prefix: str = "") -> dict[str, object]:
    """Nested settings as dotted names; lists stay whole."""
    if not isinstance(value, Mapping):
        return {prefix: value}
    if not value:
        return {prefix: {}} if prefix else {}
    return {
        name: leaf
        for key, inner in value.items()
        for name, leaf in flat(inner, f"{prefix}.{key}" if prefix else str(key)).items()
    }


def value_text(settings: Mapping[str, object], name: str) -> str:
    """Write a value of flat settings in one line, or that there is none."""
    if name not in settings:
        return "(none)"
    text = json.dumps(settings[name], ensure_ascii=False)
    return text if len(text) <= _MAX_VALUE else text[: _MAX_VALUE - 3] + "..."


def _input_changes(before: Statement, after: Statement) -> list[str]:
    old = {item.role: item for item in before.inputs}
    new = {item.role: item for item in after.inputs}
    changes = []
    for role in sorted(old.keys() | new.keys()):
        if role not in old:
            changes.append(f"input '{role}' is new")
        elif role not in new:
            changes.append(f"input '{role}' is no longer read")
        elif old[role].digest != new[role].digest:
            changes.append(f"input '{role}' changed")
        elif old[role].statement != new[role].statement:
            changes.append(f"input '{role}' was made anew, with the same bytes")
    more = len(changes) - _MAX_CHANGES
    return changes[:_MAX_CHANGES] + ([f"{more} more inputs changed"] if more > 0 else [])
