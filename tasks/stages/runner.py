"""The runner of stages: what all of them have in common, so that each is a record and a function.

    POSE = Record("pose", pose_questions, DatasetRef, "questions")

    @shell("pose")
    def pose(settings: GradingSettings, curated: DatasetRef, context: Context) -> DatasetRef:
        return run(POSE, settings, {"curated": curated}, context)

It reads the inputs, opens the outputs and commits them, records facts, code and the statement, and
draws the deck. Whether there is anything to do is its question too, and has two answers: `skip`
says that a stage changes nothing, `_find_earlier` that somebody has done the work. A stage that is
done `once` on a store has a lease as well: the next run waits, and takes what was committed. One
that resumes keeps its working state durable until it is finished.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar, cast, get_args, get_type_hints

from pydantic import BaseModel

from data_schemas.artifacts import AnyRef, Context
from data_schemas.reports import SKIPPED_FILE
from tasks.durability.durable import StateUploads, keep_durable
from tasks.durability.preemption import Termination, listen_for_sigterm
from tasks.platform import resources
from tasks.platform.cache_version import code_digest
from tasks.platform.deck import deck, deck_of_facts
from tasks.platform.retries import checkpoint
from tasks.provenance.lineage import finished, shipping
from tasks.provenance.lineage.stage import StageRecord, stage, workplace
from tasks.store import results
from tasks.store.files import canonical_json, write_bytes

Facts = Mapping[str, float | int | str]
Inputs = Mapping[str, Path]
"""Local folders by role."""
RefT = TypeVar("RefT", bound=AnyRef)
ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True)
class PassThrough:
    """There is nothing to do: the first output is an input, and every other one says why."""

    role: str
    """Role of the input that is passed on as the output."""
    reason: str


class Outputs:
    """Empty folders by role, opened when they are asked for and committed when the stage ends."""

    def __init__(self, entry: StageRecord, opened: ExitStack, later: ExitStack) -> None:
        self._entry, self._opened, self._later = entry, opened, later
        self._folders: dict[str, tuple[Path, ExitStack]] = {}

    def __getitem__(self, role: str) -> Path:
        """Return the folder of an output."""
        if role not in self._folders:
            own = self._opened.enter_context(ExitStack())
            self._folders[role] = own.enter_context(self._entry.output(role)), own
        return self._folders[role][0]

    def commit(self, role: str) -> str:
        """Commit an output before the stage ends, and return its digest."""
        self._folders[role][1].close()
        return self._entry.digest_of(role)

    def beside(self, role: str) -> Path:
        """Return a folder that is kept beside an output: what differs from run to run."""
        return self._later.enter_context(self._entry.beside(role))


@dataclass(frozen=True, slots=True)
class StageState:
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
    entry: StageRecord
    """The run's entry in the lineage: for rows, metrics, and inputs that settings name."""
    resumed: StageState | None

    def ref(self, role: str, kind: type[RefT]) -> RefT:
        """Return the reference to what it reads."""
        ref = self.refs[role]
        assert isinstance(ref, kind), f"{role} of {self.name} is a {type(ref).__name__}"
        return ref

    @property
    def state(self) -> StageState:
        """Return the working state of a stage that resumes."""
        assert self.resumed, f"{self.name} does not resume"
        return self.resumed


@dataclass(frozen=True, slots=True)
class StageResult:
    """The facts of a stage, with what else comes of it."""

    facts: Facts
    page: str = ""
    """HTML for the deck of the task, in place of a table of the facts."""
    values: Mapping[str, object] = field(default_factory=dict[str, object])
    """Fields of the named tuple that the stage returns, but for the references to its outputs."""
    then: Callable[[], object] = lambda: None
    """What follows when the outputs are committed and the statement is closed."""


Function = Callable[..., Facts | StageResult]
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
    skip: Callable[..., PassThrough | None] = lambda *_: None
    """`(settings, refs, store) -> why there is nothing to do`, with further inputs behind them."""
    once: bool = False
    """One run at a time does it on a store, and the next one takes its result."""
    shares: str = ""
    """Role under which it reads what this execution made of the same inputs under another name."""
    past_code: Callable[[Path], Sequence[str]] | None = None
    """Digests of the code that contributed to a working state; None of a stage without one."""
    code: Callable[[Any, str], str] = lambda _, code: code
    """`(settings, code of the task) -> code`, for one that runs more than its task's."""
    work: Callable[..., str] | None = None
    """`(settings, refs) -> name` of what is done once, with further inputs of the task behind them;
    None = by name, settings and inputs."""

    def kinds(self) -> dict[str, type[Any]]:
        """Return the types of the outputs by role."""
        if not issubclass(self.result, tuple):
            return {self.writes: self.result}
        kinds = get_type_hints(self.result).items()
        return {role: kind for role, kind in kinds if kind in get_args(AnyRef)}

    def result_of(self, values: Mapping[str, object]) -> ResultT:
        """Return what the stage returns, of the references and values by field."""
        if issubclass(self.result, tuple):
            return cast("Any", self.result)(**values)
        return cast("ResultT", values[self.writes])


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
) -> ResultT:
    """Run a stage, or return what an earlier run of the same work committed.

    Args:
        record: of the stage.
        settings: as the statement has them.
        reads: inputs by role, in the order in which the statement has them; None: there is none.
        context: of the run.
        others: further inputs, behind those that every function has.
        name: in the statement; '' = that of the task.

    Raises:
        SettingsError: its code is not the code that the settings were pinned to.
    """
    name, code = name or record.task, record.code(settings, code_digest(record.task))
    refs = {role: ref for role, ref in reads.items() if ref is not None}
    uri = _place(record, name, settings, refs, context, others)
    job = _Job(record, name, code, settings, refs, context, uri)
    if unchanged := record.skip(settings, refs, context.store, *others):
        passed = _pass_on(job, unchanged)
        shipping.end(context, record.task)
        return passed
    with _exclusive(job) as check_lease:
        outcome: Mapping[str, Any] = _find_earlier(job)
        if record.shares:
            refs, outcome = refs | outcome, {}
        if not outcome:
            with (
                _resumed(job, check_lease) as state,
                stage(name, settings, context, _all_code(job)) as entry,
            ):
                inputs = {role: entry.read(role, ref) for role, ref in refs.items()}
                with ExitStack() as later, ExitStack() as opened:
                    work = Work(name, code, context, refs, entry, state)
                    outputs = Outputs(entry, opened, later)
                    result = record.function(settings, inputs, outputs, work, *others)
                outcome = _close(job, entry, result)
            if record.once:
                finished.record(job.uri, name, code, context.execution.id, *outcome.values())
        if record.past_code:
            results.clear(job.folder, job.uri)
    shipping.end(context, record.task)
    return record.result_of(outcome)


@dataclass(frozen=True, slots=True)
class _Job(Generic[ResultT]):
    """A stage with what determines its result."""

    record: Record[ResultT]
    name: str
    code: str
    settings: BaseModel
    refs: Mapping[str, AnyRef]
    context: Context
    uri: str
    """Where the store has the result and the state of what is done once."""

    @property
    def digests(self) -> list[str]:
        """Digests of what it reads."""
        return [ref.digest for ref in self.refs.values()]

    @property
    def folder(self) -> Path:
        """Return the folder of the state, on a disk that may be lost with the machine."""
        return results.work_folder(workplace(self.context.store), self.uri)


def _place(
    record: Record[Any],
    name: str,
    settings: BaseModel,
    refs: Mapping[str, AnyRef],
    context: Context,
    others: Sequence[object],
) -> str:
    """Name the work of a stage by everything that determines its result but the code."""
    if record.work is None:
        digests = [ref.digest for ref in refs.values()]
        return results.work_uri(context.store.uri, name, settings, *digests)
    return f"{context.store.uri}/state/{record.work(settings, refs, *others)}"


def _exclusive(job: _Job[Any]) -> AbstractContextManager[Callable[[], None]]:
    """Let one run at a time do the work, if it is done once."""
    if not job.record.once:
        return nullcontext(lambda: None)
    places = (job.uri,) if job.record.past_code is None else (str(job.folder), job.uri)
    return results.exclusive(f"{job.context.execution.id}, {job.name}", *places)


def _find_earlier(job: _Job[Any]) -> dict[str, AnyRef]:
    """Return what was committed of this work, by any run on this store or in this execution.

    The one answer to "is it done already?": a signed statement says that this code made it of
    these settings and inputs. {} if there is none, or the record does not take it.
    """
    work, roles = (job.code, job.settings, job.digests), job.record.kinds()
    if role := job.record.shares:
        store, execution = job.context.store.uri, job.context.execution.id
        report = finished.find_report(store, execution, job.name, *work)
        return {role: report} if report else {}
    past = finished.find(job.uri, job.name, *work) if job.record.once else None
    outcome = [ref for ref in (past.model, past.report) if ref] if past else []
    return dict(zip(roles, outcome, strict=True)) if len(outcome) == len(roles) else {}


def _close(job: _Job[Any], entry: StageRecord, result: Facts | StageResult) -> dict[str, Any]:
    """Record facts, draw the deck and close the statement; return what the stage returns."""
    result = result if isinstance(result, StageResult) else StageResult(result)
    entry.facts(result.facts)
    deck(result.page) if result.page else deck_of_facts(job.name, result.facts)
    kinds = job.record.kinds().items()
    refs = {role: entry.ref(role, kind) for role, kind in kinds if role not in result.values}
    result.then()
    return refs | dict(result.values)


def _all_code(job: _Job[Any]) -> Sequence[str]:
    """Return the digests of all code that has a part in the result, once each."""
    past = job.record.past_code(job.folder) if job.record.past_code else ()
    return tuple(dict.fromkeys((*past, job.code)))


@contextmanager
def _resumed(job: _Job[Any], check_lease: Callable[[], None]) -> Iterator[StageState | None]:
    """Keep the working state of a stage durable, if it has one."""
    if job.record.past_code is None:
        yield None
        return
    with (
        listen_for_sigterm(resources.STAGES[job.record.task].grace_s) as stop,
        keep_durable(job.folder, job.uri, checkpoint(), stop.seconds_left) as uploads,
    ):
        yield StageState(job.folder, stop, check_lease, uploads)


def _pass_on(job: _Job[ResultT], unchanged: PassThrough) -> ResultT:
    """Record that there is nothing to do, and why."""
    (first, _), *others = job.record.kinds().items()
    passed = job.refs[unchanged.role]
    with stage(job.name, job.settings, job.context, job.code) as entry:
        entry.read(unchanged.role, passed)
        for role, _ in others:
            with entry.output(role) as out:
                write_bytes(out / SKIPPED_FILE, canonical_json({"reason": unchanged.reason}))
        entry.facts({"skipped": unchanged.reason})
        reasons = {role: entry.ref(role, kind) for role, kind in others}
    return job.record.result_of({first: passed, **reasons})
