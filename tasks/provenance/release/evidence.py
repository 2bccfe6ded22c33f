"""What a release knows about its data and its tokens, from the artifacts of its chain."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import yaml

from data_schemas.arrow import distinct_values, read_table
from data_schemas.ledgers import TRAINED, TokenUse
from data_schemas.reports import LEDGER_FILE
from data_schemas.rows import (
    GRADED,
    HELD_OUT,
    PROBLEMS,
    REPLAYED,
    TRAINED_TOKENS,
    Demonstration,
    MixReport,
    Problem,
)
from data_schemas.rows import REPORT as MIX_REPORT
from data_schemas.statements import Statement
from tasks.algorithms.token_uses import token_uses
from tasks.formats.ledgers import read_ledger
from tasks.formats.licences import lacks_licence
from tasks.provenance.audit.evidence import Evidence
from tasks.provenance.lineage import origins
from tasks.provenance.lineage.registry import CARD_FILE
from tasks.provenance.lineage.signatures.keys import trusted_keys
from tasks.store.interface import store_at
from tasks.store.objects import localise

_TRAINED_ON = {"problems.parquet": Problem, "demonstrations.parquet": Demonstration}


@dataclass(frozen=True, slots=True)
class Contamination:
    """Held-out problems that training rows repeat."""

    held_out: int
    training_rows: int
    repeated: tuple[str, ...]
    """Their ids."""


@dataclass(frozen=True, slots=True)
class ChainAudit:
    """What an audit of the candidate's chain found; the same numbers for the same chain."""

    statements: int
    objects: int
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Waste:
    """Tokens that RL generated, how many of them it trained on, and those of fine-tuning."""

    generated: int
    """By grading and by all phases."""
    trained: int
    fine_tuned: int
    """Response tokens that fine-tuning before RL trained on, in all epochs."""
    uses: Mapping[TokenUse, int]
    """Uses of the generated tokens; the counts add up to all of them."""

    @property
    def trained_share(self) -> float:
        """Share of the generated tokens; 0 if there are none."""
        return self.trained / max(1, self.generated)

    @property
    def token_efficiency(self) -> float | None:
        """Trained tokens of RL per trained token of fine-tuning; None without fine-tuning.

        Source: Ring-lite (2506.14731), which finds moderate values best.
        """
        return self.trained / self.fine_tuned if self.fine_tuned else None


@dataclass(frozen=True, slots=True)
class PractisedRows:
    """Rows of the last night of a chain that changed weights, by what the ledgers say."""

    new: int
    """Problems of new files that RL trained on."""
    of_new: int
    """Those that were graded for it."""
    old: int
    of_old: int
    demonstrations: int
    """New ones that fine-tuning before RL trained on."""

    def explain(self) -> str:
        """Say it in one clause."""
        taught = (
            f", fine-tuning on {self.demonstrations} new demonstrations"
            if self.demonstrations
            else ""
        )
        return (
            f"RL trained on {self.new} of {self.of_new} new and {self.old} of {self.of_old} old "
            f"problems{taught}"
        )


def audited(store: str, roots: Iterable[str]) -> ChainAudit:
    """Hash a chain again and check its signatures with this run's own keys, before it is released.

    Files outside the store, which may be out of reach here, are left to the audit of a release.

    Args:
        store: of the chain.
        roots: statements of the candidate and of its evaluations.
    """
    evidence = Evidence(store, trusted_keys(store) or None, outside=False)
    for root in roots:
        evidence.visit(root)
    all_findings = [one for findings in evidence.findings.values() for one in findings]
    return ChainAudit(
        statements=len(evidence.statements) + len(evidence.damaged),
        objects=len(evidence.objects),
        problems=tuple(f"{PurePosixPath(one.object).name}: {one.problem}" for one in all_findings),
    )


def contamination(statements: Mapping[str, Statement], cache: Path) -> Contamination | None:
    """Look for held-out problems among all rows that a chain may have trained on.

    Those that curation let through; of a curated set that only a night's mixture read, those of
    the mixture, which lacks the slice that it held out. A row repeats a problem if it is the same
    raw row or asks the same. A row that names an environment has many tasks, which count one by
    one. None without a curation in the chain.
    """
    sets = {
        output.digest: localise(output.uri, output.digest, cache)
        for statement in statements.values()
        if statement.stage in ("curate", "mix")
        for output in statement.outputs
    }
    if not sets:
        return None
    mixed, read_as_it_is = set[str](), set[str]()
    for statement in statements.values():
        for one in statement.inputs:
            if statement.stage != "mix":
                read_as_it_is.add(one.digest)
            elif one.role == "curated":
                mixed.add(one.digest)
    folders = list(sets.values())
    held_out = {
        problem.id: problem
        for folder in folders
        if (folder / HELD_OUT).exists()
        for problem in read_table(folder / HELD_OUT, Problem)
    }
    rows, tasks, num_rows = set[str](), set[str](), 0
    for row in _training_rows([sets[key] for key in sets.keys() - (mixed - read_as_it_is)]):
        if not (isinstance(row, Problem) and row.is_outside):
            rows.add(row.source_row)
        tasks.add(row.asked)
        num_rows += 1
    repeated = [
        id_
        for id_, problem in held_out.items()
        if problem.source_row in rows or problem.asked in tasks
    ]
    return Contamination(len(held_out), num_rows, tuple(sorted(repeated)))


def verifiers(statements: Mapping[str, Statement], cache: Path) -> frozenset[str]:
    """Name the verifiers of all problems that a chain trained on or held out."""
    return frozenset(
        name
        for statement in statements.values()
        if statement.stage in ("curate", "mix")
        for output in statement.outputs
        for table in (PROBLEMS, HELD_OUT)
        if (path := localise(output.uri, output.digest, cache) / table).exists()
        for name in distinct_values(path, "verifier")
    )


def unlicensed(store: str, statements: Mapping[str, Statement]) -> tuple[str, ...]:
    """Name the raw files and base models of a chain under no licence that is recorded.

    The licence of a base model is what its card names.
    """
    listed = origins.listed_raw_files(store, statements.values())
    files = [name for name, raw in listed.items() if lacks_licence(raw)]
    bases = {digest: one for digest, one in statements.items() if one.stage.startswith("ingest/")}
    models = [
        origins.public_name(item.uri, item.digest)
        for digest, one in bases.items()
        if not base_license(store, {digest: one})
        for item in one.inputs
    ]
    return tuple(sorted({*files, *models}))


def base_license(store: str, statements: Mapping[str, Statement]) -> str:
    """Read the license that the card of the base model names; '' without one."""
    for statement in statements.values():
        for output in statement.outputs if statement.stage.startswith("ingest/") else ():
            place = store_at(origins.object_uri(store, output.uri, output.digest))
            if CARD_FILE not in place.list_files():
                continue
            _, fence, rest = place.read_bytes(CARD_FILE).decode(errors="replace").partition("---\n")
            try:
                front = yaml.safe_load(rest.partition("\n---")[0]) if fence else None
            except yaml.YAMLError:
                continue
            if isinstance(front, dict) and isinstance(front.get("license"), str):
                return front["license"]
    return ""


def waste(statements: Mapping[str, Statement], cache: Path) -> Waste | None:
    """Add up grading and the ledgers of all phases of RL; None without a phase that has one.

    A general fine-tuning after RL does not count.
    """
    ledgers = [
        localise(output.uri, output.digest, cache) / LEDGER_FILE
        for statement in statements.values()
        if statement.stage.startswith("rl/")
        for output in statement.outputs
        if output.role == "report"
    ]
    rows = [row for path in ledgers if path.exists() for row in read_ledger(path)]
    if not rows:
        return None
    grading = sum(
        int(statement.facts.get("generated_tokens", 0))
        for statement in statements.values()
        if statement.stage == "grade"
    )
    return Waste(
        generated=grading + sum(row.generated_tokens for row in rows),
        trained=sum(row.trained_tokens for row in rows),
        fine_tuned=sum(
            int(statement.facts.get(TRAINED_TOKENS, 0))
            for statement in statements.values()
            if statement.stage in ("sft/reasoning", "sft/commerce")
        ),
        uses=token_uses(rows, grading),
    )


def practised(statements: Mapping[str, Statement], cache: Path) -> PractisedRows | None:
    """Count what the last night of a chain trained on; None if no night led to it.

    A night of fine-tuning alone has no graded problems, one of RL alone no demonstrations.
    """
    nights = [one for one in statements.values() if one.stage == "mix"]
    if not nights:
        return None
    (mixture,) = nights[-1].outputs
    folder = localise(mixture.uri, mixture.digest, cache)
    replayed = set(json.loads((folder / REPLAYED).read_bytes()))
    offered, trained, is_taught = set[str](), set[str](), False
    graded = _read_by(statements, "grade", {mixture.digest})
    for statement in graded:
        for output in statement.outputs:
            path = localise(output.uri, output.digest, cache) / GRADED
            offered |= set(distinct_values(path, "id"))
    for statement in _read_by(statements, "rl/", {out.digest for s in graded for out in s.outputs}):
        for output in statement.outputs:
            path = localise(output.uri, output.digest, cache) / LEDGER_FILE
            if output.role == "report" and path.exists():
                trained |= {
                    row.problem_id
                    for row in read_ledger(path)
                    if row.trained_tokens or row.outcome in TRAINED
                }
    for statement in _read_by(statements, "sft/", {mixture.digest}):
        is_taught |= bool(statement.facts.get(TRAINED_TOKENS, 0))
    mixed = MixReport.model_validate_json((folder / MIX_REPORT).read_bytes())
    new, old = offered - replayed, offered & replayed
    return PractisedRows(
        new=len(trained & new),
        of_new=len(new),
        old=len(trained & old),
        of_old=len(old),
        demonstrations=mixed.demonstrations if is_taught else 0,
    )


def _read_by(
    statements: Mapping[str, Statement], stage: str, digests: Collection[str]
) -> list[Statement]:
    """Return the statements of a stage that read one of the objects."""
    return [
        one
        for one in statements.values()
        if one.stage.startswith(stage) and any(item.digest in digests for item in one.inputs)
    ]


def _training_rows(folders: list[Path]) -> Iterator[Problem | Demonstration]:
    for folder in folders:
        for name, record in _TRAINED_ON.items():
            if (folder / name).exists():
                yield from read_table(folder / name, record)
