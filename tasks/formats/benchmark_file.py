"""Suites and groups of them as data: read from files, and the suites of a curated set."""

import json
from collections.abc import Iterable
from pathlib import Path

from pydantic import ValidationError

from data_schemas.mappings import SUFFIXES, template_parts
from data_schemas.rows import Message, Problem, Role
from data_schemas.suites import SUITES_FILE, Suite, SuiteGroup
from tasks.errors import DataError, SettingsError
from tasks.formats.yaml_file import check, parse_yaml
from tasks.store.files import canonical_json, write_bytes

SHIPPED = Path(__file__).parent / "benchmarks"
"""Suites of public benchmarks; a suite's name is that of its file."""
_ONLY_SUITES = ("rows", "mapping")
"""A YAML file with one of these keys is a suite, not a mapping."""


def parse_suite(text: bytes | str, where: str) -> Suite | None:
    """Read a suite; None if the file is a mapping of columns or a group of suites.

    Raises:
        SettingsError: names the key and what is allowed.
    """
    fields = parse_yaml(text, where)
    if not isinstance(fields, dict) or not any(key in fields for key in _ONLY_SUITES):
        return None
    return check(fields, Suite, "suite", where)


def suite_of(name: str) -> Suite | None:
    """Return the suite that a benchmark names, by path or as one of the project; None if neither.

    Raises:
        SettingsError: the file cannot be read or is malformed.
    """
    content = _read(name)
    return None if content is None else parse_suite(*content)


def _read(name: str) -> tuple[bytes, str] | None:
    """Return the text of a file and its path; None if the project has no file of that name."""
    path = Path(name).expanduser() if name.endswith(SUFFIXES) else SHIPPED / f"{name}.yaml"
    if path.parent == SHIPPED and not path.is_file():
        return None
    try:
        return path.read_bytes(), str(path)
    except OSError as error:
        raise SettingsError(f"suite {path} cannot be read: {error.strerror}") from error


def shipped_suites() -> dict[str, Suite]:
    """Read every suite of the project, by name."""
    suites = {path.stem: suite_of(path.stem) for path in sorted(SHIPPED.glob("*.yaml"))}
    return {name: suite for name, suite in suites.items() if suite is not None}


def group_of(name: str) -> SuiteGroup | None:
    """Return the group of suites of that name, by path or as one of the project; None if neither.

    A file that is not there is no group: what reads the sources says so.

    Raises:
        SettingsError: the file cannot be read or is malformed.
    """
    if name.endswith(SUFFIXES) and not Path(name).expanduser().is_file():
        return None
    file = _read(name)
    if file is None:
        return None
    text, where = file
    content = parse_yaml(text, where)
    if not isinstance(content, dict) or "members" not in content:
        return None
    return check(content, SuiteGroup, "group of suites", where)


def shipped_groups() -> dict[str, SuiteGroup]:
    """Read every group of the project, by name."""
    groups = {path.stem: group_of(path.stem) for path in sorted(SHIPPED.glob("*.yaml"))}
    return {name: group for name, group in groups.items() if group is not None}


def as_asked(problem: Problem, suite: Suite) -> Problem:
    """Return a problem in the suite's form: its last question in `prompt`, with `system`.

    Its gold is joined with `gold`.
    """
    *before, last = problem.messages
    text = "".join(
        literal + (last.content if column else "")
        for literal, column in template_parts(suite.prompt)
    ).strip()
    messages = (*before, last.model_copy(update={"content": text}))
    if suite.system:
        messages = (Message(role=Role.SYSTEM, content=suite.system), *messages)
    answer = problem.answer
    if suite.gold:
        answer = canonical_json({**json.loads(answer), **suite.gold}).decode()
    return problem.model_copy(update={"messages": messages, "answer": answer})


def write_suites(folder: Path, suites: Iterable[Suite | None]) -> None:
    """Write the suites of a curated set, if it has any."""
    dumped = {suite.name: suite.model_dump(mode="json") for suite in suites if suite is not None}
    if dumped:
        write_bytes(folder / SUITES_FILE, canonical_json(dumped))


def read_suites(folder: Path) -> dict[str, Suite]:
    """Read the suites of a curated set by the source of their problems.

    Raises:
        DataError: the file is malformed.
    """
    path = folder / SUITES_FILE
    if not path.is_file():
        return {}
    try:
        entries = json.loads(path.read_bytes())
        return {name: Suite.model_validate(entry) for name, entry in entries.items()}
    except (ValueError, AttributeError, ValidationError) as error:
        raise DataError(f"{path} is no list of suites: {error}") from error
