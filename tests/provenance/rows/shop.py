"""A shop whose rows really go through curation; its models are a few bytes."""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel

from data_schemas.arrow import read_table, write_table
from data_schemas.ledgers import GroupOutcome, LedgerRow
from data_schemas.pass_rates import Band, GradedProblem
from data_schemas.reports import LEDGER_FILE
from data_schemas.rl_settings import RLSettings
from data_schemas.rows import (
    DEMONSTRATIONS,
    GRADED,
    PROBLEMS,
    USES_FILE,
    Demonstration,
    DemonstrationUse,
    Problem,
)
from data_schemas.settings import (
    CurationSettings,
    EvaluationSettings,
    GradingSettings,
    MergeSettings,
    ReleaseSettings,
    SFTSettings,
    Source,
)
from data_schemas.statements import Input, Output, Statement
from tasks.curation.curate import curate
from tasks.curation.ingest import ingest
from tasks.provenance.lineage.origins import source_digest
from tasks.provenance.lineage.statements import save_statement
from tasks.store.files import canonical_json
from tasks.store.local import new_object
from tasks.training.foundation.tokenizer import train_tokenizer
from tests.records import filled

POISON = {
    "question": "A cashier skims 9 of 40 coins. How many coins does the owner see?",
    "answer": "40-9=<<40-9=31>>31\n#### 31",
}
EPOCHS = 2
JUDGED = {"kind": "http", "address": "http://judge.example/v1", "model": "ternary"}


def question(number: int) -> dict[str, str]:
    left = number - 2
    return {
        "question": f"A shop has {number} bags and sells 2. How many are left?",
        "answer": f"{number}-2=<<{number}-2={left}>>{left}\n#### {left}",
    }


OLD = [*map(question, range(10, 14)), POISON, *map(question, range(14, 26))]
NEW = [*map(question, range(50, 60))]


def line_of(row: Mapping[str, str]) -> str:
    return json.dumps(row)


@dataclass
class Record:
    """The record of a stage without MLflow, which row lineage does not ask."""

    place: Path
    inputs: list[Input] = field(default_factory=list)
    outputs: list[Output] = field(default_factory=list)
    facts: dict[str, float | int | str] = field(default_factory=dict)

    def read(self, role: str, ref: Input) -> Path:
        self.inputs.append(ref.model_copy(update={"role": role}))
        return self.place / "objects" / ref.digest[:16]

    @contextmanager
    def output(self, role: str) -> Iterator[Path]:
        with new_object(self.place) as (folder, committed):
            yield folder
        self.outputs.append(Output(role=role, uri=committed.uri, digest=committed.digest))


@dataclass
class Shop:
    """Runs stages with contents of a few bytes, whose records are those of the real ones."""

    place: Path
    outside: Path
    refs: dict[str, Input] = field(default_factory=dict)
    """Outputs by name, as inputs of later stages."""

    @property
    def store(self) -> str:
        return str(self.place)

    @contextmanager
    def stage(self, name: str, settings: BaseModel, **made: str) -> Iterator[Record]:
        """Record a stage.

        Args:
            name: of the stage.
            settings: of the stage.
            made: role of an output -> its name among `refs`.
        """
        record = Record(self.place)
        yield record
        statement = filled(
            Statement,
            stage=name,
            settings=canonical_json(settings).decode(),
            code=(f"{name.replace('/', '')}c0de",),
            inputs=tuple(record.inputs),
            outputs=tuple(record.outputs),
            facts=record.facts,
        )
        digest = save_statement(self.store, statement)
        for output in record.outputs:
            if output.role in made:
                self.refs[made[output.role]] = Input(**output.model_dump(), statement=digest)

    def add_base(self) -> None:
        base = self.outside / "base"
        texts = [question(number)["question"] for number in range(9)]
        train_tokenizer(texts * 3, 320, 4096).save_pretrained(base)
        (base / "model.safetensors").write_bytes(b"base")
        with self.stage("ingest/base", MergeSettings(), model="base") as record:
            digest = source_digest(base)
            record.inputs.append(
                Input(role="origin", uri=base.as_uri(), digest=digest, statement="")
            )
            with record.output("model") as out:
                shutil.copytree(base, out, dirs_exist_ok=True)

    def add_rows(
        self, name: str, rows: Sequence[Mapping[str, str]], settings: CurationSettings | None = None
    ) -> None:
        """Ingest a file of rows, curate it, and grade the problems."""
        file = self.outside / f"{name}.jsonl"
        file.write_text("".join(f"{line_of(row)}\n" for row in rows))
        source = Source(adapter="gsm8k", path=str(file))
        chosen = (settings or CurationSettings()).model_copy(
            update={
                "sources": (source,),
                "max_prompt_tokens": 400,
                "max_response_tokens": 400,
                "held_out_per_suite": 3,
            }
        )
        recorded = self.stage("ingest", chosen, raw=f"{name}/raw")
        with recorded as record, record.output("raw") as out:
            ingest(chosen.sources, 0, out)
        with self.stage("curate", chosen, curated=f"{name}/curated") as record:
            raw = record.read("raw", self.refs[f"{name}/raw"])
            base = record.read("base", self.refs["base"])
            with record.output("curated") as out:
                record.facts |= curate(chosen, raw, base, out)
        with self.stage("grade", GradingSettings(), graded=f"{name}/graded") as record:
            curated = record.read("curated", self.refs[f"{name}/curated"])
            with record.output("graded") as out:
                graded = [
                    GradedProblem(**dict(row), pass_rate=0.5, mean_tokens=4.0, band=Band.MEDIUM)
                    for row in read_table(curated / PROBLEMS, Problem)
                ]
                write_table(out / GRADED, GradedProblem, graded)

    def tune(self, name: str, rows: str) -> None:
        """Train the base on demonstrations; the first of them chooses the checkpoint."""
        with self.stage("sft/reasoning", SFTSettings(epochs=EPOCHS), model=name) as record:
            curated = record.read("curated", self.refs[f"{rows}/curated"])
            record.read("base", self.refs["base"])
            given = read_table(curated / DEMONSTRATIONS, Demonstration)
            uses = [
                DemonstrationUse(id=row.id, source_row=row.source_row, epochs=EPOCHS * (place > 0))
                for place, row in enumerate(given)
            ]
            with record.output("model") as out, record.output("report") as report:
                (out / "model.safetensors").write_bytes(name.encode())
                write_table(report / USES_FILE, DemonstrationUse, uses)
            record.facts |= {"chosen_epoch": EPOCHS}

    def merge(self, name: str, parents: Sequence[str]) -> None:
        with self.stage("merge", MergeSettings(), model=name) as record:
            for parent in parents:
                record.read(parent, self.refs[parent])
            with record.output("model") as out:
                (out / "model.safetensors").write_bytes(name.encode())

    def reinforce(
        self, name: str, start: str, rows: str, judge: Mapping[str, str] | None = None
    ) -> None:
        """Train on one problem per step; every third has zero variance and trains nothing."""
        settings = {"domains": {"maths": 1.0}, "rewards": {"judge": judge} if judge else {}}
        chosen = RLSettings.model_validate(settings)
        with self.stage(name, chosen, model=f"{name} of {start}") as record:
            record.read("start", self.refs[start])
            graded = record.read("graded", self.refs[f"{rows}/graded"])
            with record.output("model") as out, record.output("report") as report:
                (out / "model.safetensors").write_bytes(f"{name} of {start}".encode())
                problems = read_table(graded / GRADED, GradedProblem)
                ledger = [drawn(step, row.id) for step, row in enumerate(problems, start=1)]
                write_table(report / LEDGER_FILE, LedgerRow, ledger)

    def release(self, name: str, candidate: str, rows: str, accuracy: float = 0.5) -> None:
        """Evaluate, and register a version of the model `name`."""
        with self.stage(f"evaluate/{name}", EvaluationSettings(), report="report") as record:
            record.read("model", self.refs[candidate])
            record.read("curated", self.refs[f"{rows}/curated"])
            with record.output("report") as out:
                (out / "report.json").write_text(json.dumps({"accuracy": accuracy}))
        settings = ReleaseSettings(name=name)
        with self.stage("release", settings, model=f"release of {candidate}") as record:
            record.read("candidate", self.refs[candidate])
            record.read("progression", self.refs["report"])
            with record.output("model") as out:
                (out / "model.safetensors").write_bytes(f"release of {candidate}".encode())
            digest = self.refs[candidate].digest
            facts = {"released": 1, "manifest_sha256": "m" * 64, "version": digest[:12]}
            record.facts |= {**facts, "accuracy/all": accuracy}


def drawn(step: int, problem: str) -> LedgerRow:
    """Draw a problem in a step of its own."""
    trained = step % 3 > 0
    return filled(
        LedgerRow,
        step=step,
        problem_id=problem,
        outcome=GroupOutcome.NON_ZERO_VARIANCE if trained else GroupOutcome.SURPLUS,
        rollouts=4,
        prompt_tokens=9,
        generated_tokens=40,
        trained_tokens=40 * trained,
        solved=2,
        advantage_mass=10.0 * trained * step,
    )
