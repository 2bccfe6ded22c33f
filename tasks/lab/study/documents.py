"""Numbers in documents, rendered from evidence files.

    python -m tasks.lab.study.documents          # make docs

A region of a page has its text as a template in a comment, and below it what was rendered:

    <!-- evidence
    Accuracy ends at {{ value("ladder", "default/accuracy/rl/two") }}.
    -->
    Accuracy ends at 77.1 % [74.9, 79.2].
    <!-- end of evidence -->

Behind every region stands when its numbers were measured and what has changed since then: nobody
has to remember that a number is old. What a command wrote that is no study is read by path:
`facts("tests/examiner/cost.json")`. A test renders all pages and compares, and another one finds
numbers that stand outside of a region and name no commit.
"""

import argparse
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
import yaml
from pydantic import BaseModel, ConfigDict, Field

from data_schemas.study import Evidence, EvidenceCell
from tasks.errors import DataError
from tasks.lab.study import evidence_file, report
from tasks.platform.cache_version import ROOT
from tasks.platform.command_line import run
from tasks.platform.progress import markdown_table
from tasks.store.files import write_bytes

CLAIMS = ROOT / "tasks" / "lab" / "study" / "claims.yaml"
REGION = re.compile(
    r"<!-- evidence\n(?P<template>.*?)\n-->\n(?P<text>.*?)<!-- end of evidence -->", re.DOTALL
)
_FOLDERS = ("", "tasks", "workflows", "containers", "data_schemas")
NOT_MEASURED = "not measured"


class Claim(BaseModel):
    """One line of the page of claims; its number is in an evidence file or there is none."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    claim: str
    paper: str = Field(default="", description="its number")
    study: str = Field(default="", description="that measures it; '' = cannot be measured here")
    number: str = Field(default="", description="name of the cell; a positive value is the claim")
    less: bool = Field(default=False, description="a negative value is the claim")
    turned: bool = Field(
        default=False, description="the cell is the other minus this: shown with the sign turned"
    )
    because: str = Field(default="", description="why it cannot be measured")


def pages() -> list[Path]:
    """Every page that may have regions."""
    files = {
        path
        for folder in _FOLDERS
        for path in (ROOT.glob("*.md") if not folder else (ROOT / folder).rglob("*.md"))
    }
    return sorted(path for path in files if "<!-- evidence\n" in path.read_text())


def render(text: str, folder: Path = evidence_file.FOLDER) -> str:
    """Render all regions of a page.

    Args:
        text: of the page.
        folder: of the evidence files.

    Raises:
        DataError: a region names a study or a number that there is none of.
    """
    return REGION.sub(lambda match: _rendered(match["template"], folder), text)


def measured(evidence: Evidence, folder: Path) -> str:
    """Say where and when numbers were measured, and what has changed since then."""
    changed = evidence_file.changes_since(evidence.name, folder)
    since = f"; since then changed: {', '.join(changed)}" if changed else ""
    runs = f"{len(evidence.seeds)} seed{'s' if len(evidence.seeds) > 1 else ''}"
    return f"`{evidence.name}`: {runs}, measured at {evidence.commit}{since}"


def main(arguments: Sequence[str]) -> None:
    """Render all pages, or say which are not up to date.

    Raises:
        DataError: with --check, a page is not.
    """
    parser = argparse.ArgumentParser(
        prog="python -m tasks.lab.study.documents", description="Render the numbers of all pages."
    )
    parser.add_argument("--check", action="store_true", help="change nothing; fail if one would be")
    options = parser.parse_args(arguments)
    for path in pages():
        text = path.read_text()
        new = render(text)
        if new != text and options.check:
            raise DataError(f"{path.relative_to(ROOT)} is not what its evidence says; make docs")
        if new != text:
            write_bytes(path, new.encode())


def claim_rows(
    read: Callable[[str], Evidence], claims: Sequence[Claim]
) -> list[tuple[str, str, str, str]]:
    """Return (claim, paper, here, verdict) of every claim."""
    rows = []
    for one in claims:
        if not one.study:
            rows.append((one.claim, one.paper, "", f"cannot be shown here: {one.because}"))
            continue
        try:
            evidence = read(one.study)
        except DataError:
            rows.append(
                (one.claim, one.paper, "", f"{NOT_MEASURED}: `make evidence NAME={one.study}`")
            )
            continue
        cell = _cell(evidence, one.number)
        if one.turned:
            cell = _turned(cell)
        claimed = cell.value is not None and (cell.value < 0.0 if one.less else cell.value > 0.0)
        verdict = "shown" if cell.shown and claimed else "not shown"
        if cell.shown and not claimed:
            verdict = "the opposite is shown"
        note = f" ({cell.note})" if cell.note else ""
        here = f"{report.number(cell, one.number)}, `{one.study}`"
        rows.append((one.claim, one.paper, here, f"{verdict}{note}"))
    return rows


def read_claims() -> list[Claim]:
    """Read the claims of the papers."""
    return [Claim.model_validate(one) for one in yaml.safe_load(CLAIMS.read_text())]


def _rendered(template: str, folder: Path) -> str:
    used: dict[str, Evidence] = {}
    files: dict[str, str] = {}

    def read(name: str) -> Evidence:
        used[name] = evidence_file.read(name, folder)
        return used[name]

    def facts(path: str) -> Any:
        try:
            content = json.loads((ROOT / path).read_bytes())
        except (OSError, ValueError) as error:
            raise DataError(
                f"a region reads {path}, which no command has written: {error}"
            ) from error
        files[path] = f"`{path}`{_written(content)}"
        return content

    def value(study: str, name: str) -> str:
        return report.number(_cell(read(study), name), name)

    def verdict(study: str, name: str) -> str:
        return "shown" if _cell(read(study), name).shown else "not shown"

    def table(study: str) -> str:
        return markdown_table(*report.rows_of(read(study)))

    def gains(study: str) -> str:
        return markdown_table(*report.gains_of(read(study)))

    def claims() -> str:
        header = ("claim", "paper", "here", "verdict")
        return markdown_table(header, claim_rows(read, read_claims()))

    names: Mapping[str, object] = {
        "value": value,
        "verdict": verdict,
        "table": table,
        "gains": gains,
        "claims": claims,
        "facts": facts,
    }
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False)
    try:
        text = environment.from_string(template).render(names)
    except jinja2.TemplateError as error:
        raise DataError(f"the region {template.strip()[:60]!r}: {error}") from error
    origins = [measured(evidence, folder) for evidence in used.values()]
    origin = "; ".join([*origins, *files.values()])
    ending = f"\n\n<sub>{origin}</sub>" if origin else ""
    return f"<!-- evidence\n{template}\n-->\n{text}{ending}\n<!-- end of evidence -->"


def _written(content: Mapping[str, Any]) -> str:
    """Say by what and when a file was written, and what has changed since then.

    What was only summed up from another file is as old as that one.
    """
    if "evidence" in content:
        source = json.loads((ROOT / content["evidence"]).read_bytes())
        return f" of `{content['evidence']}`{_written(source)}"
    by = f", written by `{content['command']}`" if "command" in content else ""
    at = f" at {content['commit']}" if "commit" in content else ""
    changed = evidence_file.modules_changed(content.get("code", {}))
    return by + at + (f"; since then changed: {', '.join(changed)}" if changed else "")


def _turned(cell: EvidenceCell) -> EvidenceCell:
    """The same difference, seen from the other arm."""

    def minus(value: float | None) -> float | None:
        return None if value is None else -value

    return cell.model_copy(
        update={"value": minus(cell.value), "low": minus(cell.high), "high": minus(cell.low)}
    )


def _cell(evidence: Evidence, name: str) -> EvidenceCell:
    if name not in evidence.cells:
        near = [one for one in evidence.cells if one.split("/")[-1] == name.split("/")[-1]][:5]
        raise DataError(f"the evidence of {evidence.name!r} has no {name!r}; near it: {near}")
    return evidence.cells[name]


if __name__ == "__main__":
    run(main)
