"""The runner of stages: what all of them have in common, so that each is a record and a function.

    POSE = Record("pose", pose_questions, DatasetRef, "questions")

    @shell("pose")
    def pose(settings: GradingSettings, curated: DatasetRef, context: Context) -> DatasetRef:
        return run(POSE, settings, {"curated": curated}, context)

It reads the inputs, opens the outputs and commits them, records facts, code and the statement, and
draws the deck. A stage that is done `once` on a store has a lease as well: the next run waits, and
takes what was committed. One that `resumes` keeps its working state durable until it is finished.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar, cast, get_type_hints

from pydantic import BaseModel

from data_schemas.artifacts import AnyRef, CheckpointRef, Context, ReportRef
from data_schemas.reports import SKIPPED_FILE
from tasks.durability.durable import StateUploads, keep_durable
from tasks.durability.preemption import Termination, listen_for_sigterm
from tasks.platform import resources
from tasks.platform.cache_version import code_digest
from tasks.platform.deck import deck_of_facts
from tasks.platform.retries import checkpoint
from tasks.provenance.lineage import finished
from tasks.provenance.lineage.stage import StageRecord, stage, workplace
from tasks.store import results
from tasks.store.files import canonical_json, write_bytes

Facts = Mapping[str, float | int | str]
Inputs = Mapping[str, Path]
"""Local folders by role."""
ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True)
class Unchanged:
    """There is nothing to do: what a stage returns is one of its inputs."""

    result: CheckpointRef
    reason: str


class Outputs:
    """Empty folders by role, opened when they are asked for and committed when the stage ends."""

    def __init__(self, record: StageRecord, opened: ExitStack, later: ExitStack) -> None:
        self._record, self._opened, self._later = record, opened, later
        self._folders: dict[str, Path] = {}

    def __getitem__(self, role: str) -> Path:
        """Return the folder of an output."""
        if role not in self._folders:
            self._folders[role] = self._opened.enter_context(self._record.output(role))
        return self._folders[role]

    def beside(self, role: str) -> Path:
        """Return a folder that is kept beside an output: what differs from run to run."""
        return self._later.enter_context(self._record.beside(role))


@dataclass(frozen=True, slots=True)
class State:
    """The working state of a stage that resumes."""

    folder: Path
    """On a disk that outlives the process; its newest state is uploaded to the store."""
    stop: Termination
    check_lease: Callable[[], None]
    uploads: StateUploads

    def commit(self) -> None:
        """Upload what was committed to the folder.

        Raises:
            EngineError: another run has taken over.
        """
        self.check_lease()
        self.uploads.upload_newest()


@dataclass(frozen=True, slots=True)
class Work:
    """A stage at work, as its function sees it."""

    name: str
    """In the statement: 'merge', 'sft/reasoning'."""
    code: str
    """Digest of the source of this program."""
    context: Context
    refs: Mapping[str, AnyRef]
    """What it reads, by role."""
    record: StageRecord
    """For rows, metrics, and inputs that settings name."""
    resumed: State | None

    @property
    def state(self) -> State:
        """Return the working state of a stage that resumes."""
        assert self.resumed, f"{self.name} does not resume"
        return self.resumed

    def checkpoint(self, role: str) -> CheckpointRef:
        """Return the reference to a model that it reads."""
        ref = self.refs[role]
        assert isinstance(ref, CheckpointRef), f"{role} of {self.name} is no model"
        return ref


Function = Callable[..., Facts | Unchanged]
"""`(settings, inputs, outputs, work) -> facts`, with further inputs of the task behind them."""


@dataclass(frozen=True, slots=True)
class Record(Generic[ResultT]):
    """A stage."""

    task: str
    """Its line of `tasks.platform.resources`: machine, retries, and what its code is."""
    function: Function
    result: type[ResultT]
    """A reference, or a named tuple of references whose fields are the roles of the outputs."""
    writes: str = ""
    """Role of the only output."""
    once: bool = False
    """One run at a time does it on a store, and the next one takes its result."""
    past_code: Callable[[Path], Sequence[str]] | None = None
    """Digests of the code that contributed to a working state; None of a stage without one."""

    def kinds(self) -> dict[str, type[Any]]:
        """Return the types of the outputs by role."""
        if issubclass(self.result, tuple):
            return get_type_hints(self.result)
        return {self.writes: self.result}

    def result_of(self, outcome: Sequence[AnyRef] | Unchanged) -> ResultT:
        """Return references to the outputs as the stage does."""
        if isinstance(outcome, Unchanged):
            return cast("ResultT", outcome.result)
        if issubclass(self.result, tuple):
            return cast("Any", self.result)(*outcome)
        return cast("ResultT", outcome[0])


def numbered(role: str, refs: Sequence[AnyRef]) -> dict[str, AnyRef]:
    """Name several inputs of a kind: 'parent/1', 'parent/2'."""
    return {f"{role}/{place}": ref for place, ref in enumerate(refs, start=1)}


def run(
    record: Record[ResultT],
    settings: BaseModel,
    reads: Mapping[str, AnyRef | None],
    context: Context,
    others: Sequence[object] = (),
    name: str = "",
    code: str = "",
    work: str = "",
) -> ResultT:
    """Run a stage, or return what an earlier run of the same work committed.

    Args:
        record: of the stage.
        settings: as the statement has them.
        reads: inputs by role, in the order in which the statement has them; None: there is none.
        context: of the run.
        others: further inputs, behind those that every function has.
        name: in the statement; '' = that of the task.
        code: digest of the source; '' = that of the task.
        work: uri of the work of a stage that is done once; '' = by name, settings and inputs.
    """
    name, code = name or record.task, code or code_digest(record.task)
    refs = {role: ref for role, ref in reads.items() if ref is not None}

    def execute(codes: Sequence[str], state: State | None) -> Sequence[AnyRef] | Unchanged:
        with stage(name, settings, context, codes) as entry:
            inputs = {role: entry.read(role, ref) for role, ref in refs.items()}
            with ExitStack() as later, ExitStack() as opened:
                step = Work(name, code, context, refs, entry, state)
                outputs = Outputs(entry, opened, later)
                facts = record.function(settings, inputs, outputs, step, *others)
            if isinstance(facts, Unchanged):
                entry.facts({"skipped": facts.reason})
                return facts
            entry.facts(facts)
            deck_of_facts(name, facts)
            return [entry.ref(role, kind) for role, kind in record.kinds().items()]

    if not record.once:
        return record.result_of(execute((code,), None))
    digests = [ref.digest for ref in refs.values()]
    uri = work or results.work_uri(context.store.uri, name, settings, *digests)
    # The disk may be lost with the machine; the store is durable.
    folder = results.work_folder(workplace(context.store), uri)
    places = (uri,) if record.past_code is None else (str(folder), uri)
    with results.exclusive(f"{context.execution.id}, {name}", *places) as check_lease:
        past = finished.find(uri, name, code, settings, digests)
        outcome: Sequence[AnyRef] | Unchanged
        outcome = [ref for ref in (past.model, past.report) if ref] if past else []
        if len(outcome) != len(record.kinds()):
            with _resumed(record, folder, uri, check_lease) as state:
                earlier = record.past_code(folder) if record.past_code else ()
                outcome = execute(tuple(dict.fromkeys((*earlier, code))), state)
            if not isinstance(outcome, Unchanged):
                model = cast("CheckpointRef", outcome[0])
                report = cast("ReportRef", outcome[1]) if len(outcome) > 1 else None
                finished.record(uri, name, code, context.execution.id, model, report)
        if record.past_code:
            results.clear(folder, uri)
    return record.result_of(outcome)


@contextmanager
def _resumed(
    record: Record[Any], folder: Path, uri: str, check_lease: Callable[[], None]
) -> Iterator[State | None]:
    """Keep the working state of a stage durable, if it has one."""
    if record.past_code is None:
        yield None
        return
    with (
        listen_for_sigterm(resources.STAGES[record.task].grace_s) as stop,
        keep_durable(folder, uri, checkpoint(), stop.seconds_left) as uploads,
    ):
        yield State(folder, stop, check_lease, uploads)


def pass_on(
    name: str,
    role: str,
    ref: CheckpointRef,
    reason: str,
    settings: BaseModel,
    context: Context,
    code: str,
) -> ReportRef:
    """Record that a stage of training has nothing to do, and why; return its report.

    Args:
        name: of the stage.
        role: of the model that is passed on.
        ref: the model.
        reason: for people.
        settings: of the stage.
        context: of the run.
        code: digest of its source.
    """
    with stage(name, settings, context, code) as record:
        record.read(role, ref)
        with record.output("report") as out:
            write_bytes(out / SKIPPED_FILE, canonical_json({"reason": reason}))
        record.facts({"skipped": reason})
        return record.ref("report", ReportRef)
