"""Numbers in documents, rendered from evidence files.

    python -m tasks.lab.study.documents          # make docs

A region of a page has its text as a template in a comment, and below it what was rendered:

    <!-- evidence
    Accuracy ends at {{ value("ladder", "default/accuracy/rl/two") }}.
    -->
    Accuracy ends at 77.1 % [74.9, 79.2].
    <!-- end of evidence -->

A page that is read before it is rendered, as on a hub, keeps its template outside of it:
README.md is rendered whole from docs/templates/README.md.j2, which places `{{ origins() }}` itself.

Behind every region stands when its numbers were measured and what has changed since then: nobody
has to remember that a number is old. What a command wrote that is no study is read by path:
`facts("tests/examiner/cost.json")`. A test renders all pages and compares, and another one finds
numbers that stand outside of a region and name no commit.
"""

import argparse
import functools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
import yaml
from pydantic import Field

from data_schemas.frozen_model import FrozenModel
from data_schemas.study import EvidenceCell, StudyEvidence
from tasks.errors import DataError, SettingsError
from tasks.lab.study import evidence_file, report
from tasks.lab.study.declaration import read_study
from tasks.platform.cache_version import ROOT
from tasks.platform.command_line import run
from tasks.platform.tables import markdown_table
from tasks.store.files import write_bytes

TEMPLATES = ROOT / "docs" / "templates"
CLAIMS = ROOT / "tasks" / "lab" / "study" / "claims.yaml"
REGION = re.compile(
    r"<!-- evidence\n(?P<template>.*?)\n-->\n(?P<text>.*?)<!-- end of evidence -->", re.DOTALL
)
_FOLDERS = ("", "docs", "tasks", "workflows", "containers", "data_schemas")
NOT_MEASURED = "not measured"
LEAST_SHARE = 0.01
"""Share of the tokens: a method that acts on less is not tested by its arm."""


class ClaimLine(FrozenModel):
    """One line of the page of claims; its number is in an evidence file or there is none."""

    claim: str
    paper: str = Field(default="", description="its number")
    study: str = Field(default="", description="that measures it; '' = cannot be measured here")
    number: str = Field(default="", description="name of the cell; a positive value is the claim")
    less: bool = Field(default=False, description="a negative value is the claim")
    turned: bool = Field(
        default=False, description="the cell is the other minus this: shown with the sign turned"
    )
    acts: str = Field(
        default="", description="name of the cell with the share of the tokens the method acts on"
    )
    share: float = Field(
        default=0.0, description="that share by the arm's own settings, where no cell has it"
    )
    because: str = Field(default="", description="why it cannot be measured")

    @property
    def arms(self) -> list[str]:
        """Variants of the study that are compared, the one of the claim first."""
        arms = self.number.partition("/")[0].split(" minus ")
        return arms[::-1] if self.turned else arms


def pages() -> list[Path]:
    """Every page that has regions, or a template below docs/templates."""
    files = {
        path
        for folder in _FOLDERS
        for path in (ROOT.glob("*.md") if not folder else (ROOT / folder).rglob("*.md"))
    }
    regions = {path for path in files if "<!-- evidence\n" in path.read_text()}
    wholes = {
        ROOT / path.relative_to(TEMPLATES).with_suffix("") for path in TEMPLATES.rglob("*.j2")
    }
    return sorted(regions | wholes)


def render_page(path: Path, folder: Path = evidence_file.FOLDER) -> str:
    """Render a page from its template, or its regions if it has none.

    Raises:
        DataError: a template names a study or a number that there is none of.
    """
    template = TEMPLATES / f"{path.relative_to(ROOT)}.j2"
    if template.exists():
        return render_whole(template.read_text(), folder)
    return render(path.read_text(), folder)


def render_whole(template: str, folder: Path = evidence_file.FOLDER) -> str:
    """Render a page whose template stands outside of it.

    Raises:
        DataError: as `render`, and numbers stand in it without `origins()` behind the last of them.
    """
    text, origin = _fill(template, folder)
    if origin not in text:
        raise DataError(
            "a page has numbers and does not say where they are from: "
            "write {{ origins() }} behind the last one"
        )
    return text


def render(text: str, folder: Path = evidence_file.FOLDER) -> str:
    """Render all regions of a page.

    Args:
        text: of the page.
        folder: of the evidence files.

    Raises:
        DataError: a region names a study or a number that there is none of.
    """
    return REGION.sub(lambda match: _rendered(match["template"], folder), text)


def measured(evidence: StudyEvidence, folder: Path) -> str:
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
        text = path.read_text() if path.exists() else ""
        new = render_page(path)
        if new != text and options.check:
            raise DataError(f"{path.relative_to(ROOT)} is not what its evidence says; make docs")
        if new != text:
            write_bytes(path, new.encode())


def claim_rows(
    read: Callable[[str], StudyEvidence], claims: Sequence[ClaimLine]
) -> list[tuple[str, ...]]:
    """Return (claim, paper, arm, load, seeds, here, verdict) of every claim.

    What was measured against a claim stands first, then what was measured, then what cannot be; a
    method that acts on less than LEAST_SHARE of the tokens was not tested by its arm.
    """
    ranked = [_claim_row(read, one) for one in claims]
    return [row for _, row in sorted(ranked, key=lambda pair: pair[0])]


def _claim_row(read: Callable[[str], StudyEvidence], one: ClaimLine) -> tuple[int, tuple[str, ...]]:
    """Return the place of a claim among others, from 0, and its row."""
    nothing = ("", "", "", "")
    if not one.study:
        return 4, (one.claim, one.paper, *nothing, f"cannot be shown here: {one.because}")
    try:
        evidence = read(one.study)
    except DataError:
        verdict = f"{NOT_MEASURED}: `make evidence NAME={one.study}`"
        return 3, (one.claim, one.paper, *nothing, verdict)
    cell = _cell(evidence, one.number)
    if one.turned:
        cell = _turned(cell)
    claimed = cell.value is not None and (cell.value < 0.0 if one.less else cell.value > 0.0)
    certain = cell.low is not None and cell.high is not None and cell.low * cell.high > 0.0
    verdict = "shown" if cell.shown and claimed else "not shown"
    rank = 1 if certain and not claimed else 2
    if cell.shown and not claimed:
        rank, verdict = 0, "the opposite is shown"
    acts = _cell(evidence, one.acts).value if one.acts else one.share or None
    if acts is not None and acts < LEAST_SHARE:
        rank, verdict = 2, f"not tested: the method acts on {acts:.2%} of the tokens"
    note = f" ({cell.note})" if cell.note else ""
    here = f"{report.number(cell, one.number)}, `{one.study}`"
    arm = " against ".join(one.arms)
    seeds = str(len(evidence.seeds))
    load = _load(evidence, one.arms[0], acts)
    return rank, (one.claim, one.paper, arm, load, seeds, here, f"{verdict}{note}")


def _load(evidence: StudyEvidence, arm: str, acts: float | None) -> str:
    """Describe what a loss had to bear in an arm: '' where the arm has no phase of RL."""
    parts = list[str]()
    if updates := _updates(evidence.source, arm):
        parts.append(f"{updates} update{'s' if updates > 1 else ''} a step")
    for name, form in (("staleness", "{:.1f} versions behind"), ("clipped", "{:.1%} clipped")):
        cell = evidence.cells.get(f"{arm}/{name}")
        if cell is not None and cell.value is not None:
            parts.append(form.format(cell.value))
    clipped = evidence.cells.get(f"{arm}/clipped")
    if acts is not None and (clipped is None or clipped.value != acts):
        parts.append(f"acts on {acts:.2%}")
    return ", ".join(parts)


@functools.cache
def _updates(source: str, arm: str) -> int:
    """Return the optimizer updates per step of an arm's last phase of RL, as declared; 0 without.

    A study that is gone, or that has no such arm any more, says nothing.
    """
    try:
        plan = read_study(source if Path(source).is_absolute() else str(ROOT / source))
    except (DataError, SettingsError):
        return 0
    for cell in plan.cells:
        if cell.variant == arm:
            settings = json.loads(cell.settings)
            groups = settings.get("pipeline", settings)
            phases = [groups[name] for name in ("rl_two", "rl_one") if name in groups]
            return next((one["num_mini_batches"] for one in phases if one["steps"]), 0)
    return 0


def read_claims() -> list[ClaimLine]:
    """Read the claims of the papers."""
    return [ClaimLine.model_validate(one) for one in yaml.safe_load(CLAIMS.read_text())]


def _rendered(template: str, folder: Path) -> str:
    text, origin = _fill(template, folder)
    ending = f"\n\n<sub>{origin}</sub>" if origin else ""
    return f"<!-- evidence\n{template}\n-->\n{text}{ending}\n<!-- end of evidence -->"


def _fill(template: str, folder: Path) -> tuple[str, str]:
    """Render a template; return it with where its numbers are from, '' if it has none."""
    numbers = _Numbers(folder)
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, autoescape=False, keep_trailing_newline=True
    )
    names = {name: getattr(numbers, name) for name in _NAMES}
    try:
        text = environment.from_string(template).render(names)
    except jinja2.TemplateError as error:
        raise DataError(f"the region {template.strip()[:60]!r}: {error}") from error
    return text, numbers.origins()


_NAMES = ("value", "verdict", "table", "gains", "claims", "facts", "origins")
"""What a template can call."""


class _Numbers:
    """The numbers that one template takes, with where they are from."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._evidence: dict[str, StudyEvidence] = {}
        self._files: dict[str, str] = {}

    def value(self, study: str, name: str) -> str:
        return report.number(_cell(self._read(study), name), name)

    def verdict(self, study: str, name: str) -> str:
        return "shown" if _cell(self._read(study), name).shown else "not shown"

    def table(self, study: str) -> str:
        return markdown_table(*report.rows_of(self._read(study)))

    def gains(self, study: str) -> str:
        return markdown_table(*report.gains_of(self._read(study)))

    def claims(self) -> str:
        header = ("claim", "paper", "arm", "load", "seeds", "here", "verdict")
        return markdown_table(header, claim_rows(self._read, read_claims()))

    def facts(self, path: str) -> Any:
        try:
            content = json.loads((ROOT / path).read_bytes())
        except (OSError, ValueError) as error:
            raise DataError(
                f"a region reads {path}, which no command has written: {error}"
            ) from error
        self._files[path] = f"`{path}`{_written(content)}"
        return content

    def origins(self) -> str:
        """Say where the numbers are from that the template has taken so far."""
        studies = [measured(evidence, self._folder) for evidence in self._evidence.values()]
        return "; ".join([*studies, *self._files.values()])

    def _read(self, name: str) -> StudyEvidence:
        self._evidence[name] = evidence_file.read(name, self._folder)
        return self._evidence[name]


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


def _cell(evidence: StudyEvidence, name: str) -> EvidenceCell:
    if name not in evidence.cells:
        near = [one for one in evidence.cells if one.split("/")[-1] == name.split("/")[-1]][:5]
        raise DataError(f"the evidence of {evidence.name!r} has no {name!r}; near it: {near}")
    return evidence.cells[name]


if __name__ == "__main__":
    run(main)
