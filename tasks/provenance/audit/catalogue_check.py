"""Comparison of MLflow with the statements: any client can edit MLflow's tags and links.

The statements are the reference; `evidence` has verified them.
"""

import json
from collections.abc import Container, Iterable, Iterator, Mapping

from data_schemas.audits import Finding
from data_schemas.statements import Statement
from tasks.errors import DataError, EngineError
from tasks.provenance.audit.reading import check_folder
from tasks.provenance.lineage import origins, version_details
from tasks.provenance.lineage.catalogue import MAX_VALUE, mlflow_name, model_name
from tasks.provenance.lineage.descriptions import EXECUTION
from tasks.provenance.lineage.lookup import LoggedModel, Lookup, StageRun, Version
from tasks.provenance.lineage.registry import SHA256, read_description, shorten
from tasks.provenance.lineage.statements import flat_values

_MAX_DIGEST = 36
Found = tuple[str, Finding]
"""(node, finding)"""


def check_catalogue(lookup: Lookup, statements: Mapping[str, Statement]) -> Iterator[Found]:
    """Yield every difference between MLflow and the statements.

    Raises:
        EngineError: MLflow does not answer.
    """
    runs = {digest: lookup.runs(digest) for digest in statements}
    truth: dict[str, str | None] = {}
    for digest, statement in statements.items():
        if not runs[digest]:
            about = f"MLflow run of {statement.stage}"
            yield _finding(digest, about, f"no run carries the statement {digest}")
        for run in runs[digest]:
            yield from _values(digest, statement, run, lookup)
            yield from _models_out(digest, statement, run, truth)
            run_ids = {one.id for one in runs[digest]}
            for model in run.models_out:
                yield from _model_columns(digest, statement, model, run_ids, lookup)
    ours = {run.id for of in runs.values() for run in of}
    for digest, statement in statements.items():
        for run in runs[digest]:
            yield from _links(digest, statement, run, truth)
            yield from _sources(digest, statement, run, lookup, ours)


def check_version(
    lookup: Lookup, node: str, version: Version, root: str, statements: Mapping[str, Statement]
) -> Iterator[Found]:
    """Yield where the registered version differs from the release statement `root`.

    Raises:
        EngineError: MLflow does not answer.
    """
    about = f"MLflow model version {version.name}/{version.number}"
    statement = statements.get(root)
    if version.model is None:
        yield _finding(node, about, "the logged model it refers to is missing")
    runs = lookup.runs(root)
    outputs = {model.id for run in runs for model in run.models_out}
    if runs and version.model and version.model.id not in outputs:
        yield _finding(node, about, f"points at model {version.model.id}, which no release made")
    if runs and version.run_id not in {run.id for run in runs}:
        yield _finding(node, about, f"its source run {version.run_id or 'missing'} is no release's")
    executions = [run.tags.get(EXECUTION, "") for run in runs]
    if runs and (entry := version.tags.get(EXECUTION, "")) not in executions:
        yield _finding(node, about, _differs(EXECUTION, entry, " or ".join(executions)))
    if version.status != "READY" or version.stage != "None":
        entry = f"{version.status}, {version.stage}"
        yield _finding(node, about, _differs("status and stage", entry, "READY, None"))
    if version.tags.get("statement") != root:
        yield _finding(node, about, _differs("statement", version.tags.get("statement"), root))
    if statement is None:
        return
    digests = [output.digest for output in statement.outputs]
    if version.location:
        yield from _place_of_files(node, about, version.location, digests, lookup)
    if version.tags.get("sha256") not in digests:
        expected = " or ".join(digests)
        yield _finding(node, about, _differs("sha256", version.tags.get("sha256"), expected))


COMPARED = (
    "runs, parameters, facts, links, aliases released and previous, name, status, source run, "
    "scores and card of the version, what its client downloads"
)
NOT_COMPARED = (
    "curves, metrics of logged models, notes, times, other tags and aliases, promotion history, "
    "descriptions of runs and of the name, the experiment, triggers of its database, artifacts of "
    "runs"
)
_DIGEST_DIGITS = 16
_FILE = "file://"
_PROXIED = "mlflow-artifacts:/"
"""A second slash names another server, which would be sent the credentials of this one."""


def check_page(
    store: str, node: str, version: Version, statement: Statement, card: bytes | None
) -> Iterator[Found]:
    """Yield where the page of a version shows something else than the release it is of.

    Args:
        store: folder or s3:// uri of the release.
        node: that findings are added to.
        version: of the registered model.
        statement: of the release.
        card: of the release folder; None if it has none, or if it is not as recorded.
    """
    about = f"MLflow model version {version.name}/{version.number}"
    digest = version.tags.get(SHA256, "")
    folder = f"{store}/objects/{digest[:16]}"
    expected = version_details.version_tags(store, folder, {}, statement.facts)
    entries = {
        name: value
        for name, value in version.tags.items()
        if name in expected or name.startswith(version_details.ACCURACY)
    }
    for name in sorted(expected.keys() | entries.keys()):
        entry, released = entries.get(name), expected.get(name)
        if _tail(entry) != _tail(released):
            yield _finding(node, about, _differs(name, entry, released))
    execution = version.tags.get(EXECUTION, "")
    report = version.tags.get("report", "")
    if (report or execution) and not report.endswith(version_details.report_uri("", execution)):
        yield _finding(node, about, _differs("report", report, f"that of execution {execution}"))
    if card is not None:
        text = shorten(read_description(card.decode(errors="replace")))
        if version.description.strip() != text.strip():
            yield _finding(node, about, "the text of its page is not the card of the release")


def _tail(place: str | None) -> str | None:
    """Where a file lies in a store, which may have been moved since it was recorded."""
    return place if place is None else place[max(0, place.rfind("/objects/")) :]


def _values(digest: str, statement: Statement, run: StageRun, lookup: Lookup) -> Iterator[Found]:
    """Compare everything a run shows that follows from its statement: all but curves."""
    about = f"MLflow run {run.id} ({statement.stage})"
    facts = statement.facts.items()
    words = {f"fact.{name}": value[:MAX_VALUE] for name, value in facts if isinstance(value, str)}
    settings = flat_values(json.loads(statement.settings))
    expected = {
        "name": statement.stage,
        "status": "FINISHED",
        "eachprompt.stage": statement.stage,
        "eachprompt.code": ",".join(statement.code),
        **words,
        **{f"parameter {mlflow_name(name)}": value[:MAX_VALUE] for name, value in settings.items()},
    }
    results = {
        "name": run.name,
        "status": run.status,
        **{
            name: run.tags[name]
            for name in ("eachprompt.stage", "eachprompt.code")
            if name in run.tags
        },
        **{name: value for name, value in run.tags.items() if name.startswith("fact.")},
        **{f"parameter {name}": value for name, value in run.params.items()},
    }
    for name in sorted(expected.keys() | results.keys()):
        if not _is_same(results.get(name), expected.get(name)):
            yield _finding(digest, about, _differs(name, results.get(name), expected.get(name)))
    for fact, value in facts:
        name = mlflow_name(fact)
        if isinstance(value, str) or run.metrics.get(name) == value:
            continue
        # A curve of the same name ends elsewhere; the fact is its point at step 0.
        points = lookup.points(run.id, name) if name in run.metrics else []
        first = [point for step, point in points if step == 0]
        if value not in first:
            values = ", ".join(map(str, first)) or None
            yield _finding(digest, about, _differs(f"metric {name}", values, str(value)))
        # What tables of MLflow show is a copy of the last point, in a column of its own.
        last = max(step for step, _ in points) if points else 0
        ends = [str(point) for step, point in points if step == last]  # as text: one may be NaN
        if points and str(run.metrics[name]) not in ends:
            shown = _differs(f"shown metric {name}", str(run.metrics[name]), " or ".join(ends))
            yield _finding(digest, about, shown)


def _models_out(
    digest: str, statement: Statement, run: StageRun, truth: dict[str, str | None]
) -> Iterator[Found]:
    """Check the models a run made; note in `truth` which content each really has."""
    outputs = {output.digest: output.uri for output in statement.outputs}
    parents = [item.digest for item in statement.inputs]
    for model in run.models_out:
        about = f"MLflow model {model.id}"
        sha256 = model.tags.get("sha256")
        truth[model.id] = sha256 if sha256 in outputs else None
        if sha256 not in outputs:
            yield _finding(digest, about, _differs("sha256", sha256, " or ".join(outputs)))
        elif _place(model.tags.get("uri", ""), sha256) != _place(outputs[sha256], sha256):
            yield _finding(digest, about, _differs("uri", model.tags.get("uri"), outputs[sha256]))
        if model.name != model_name(statement.stage):
            yield _finding(digest, about, _differs("name", model.name, model_name(statement.stage)))
        if model.tags.get("statement") != digest:
            yield _finding(
                digest, about, _differs("statement", model.tags.get("statement"), digest)
            )
        if model.tags.get("parents") != json.dumps(parents):
            entry = model.tags.get("parents")
            yield _finding(digest, about, _differs("parents", entry, json.dumps(parents)))


def _model_columns(
    digest: str, statement: Statement, model: LoggedModel, runs: Container[str], lookup: Lookup
) -> Iterator[Found]:
    """Check what a client of a logged model acts on beside its tags."""
    about = f"MLflow model {model.id}"
    if not model.name and not model.tags:
        return  # gone, which has its finding
    kind = statement.stage.split("/")[0]
    for name, entry, expected in (("status", model.status, "READY"), ("type", model.type, kind)):
        if entry != expected:
            yield _finding(digest, about, _differs(name, entry, expected))
    if model.run_id and model.run_id not in runs:  # a reader may have arrived first, without one
        yield _finding(digest, about, f"its source run {model.run_id} did not make it")
    digests = [output.digest for output in statement.outputs]
    yield from _place_of_files(digest, about, model.location, digests, lookup)


def _place_of_files(
    node: str, about: str, location: str, digests: Iterable[str], lookup: Lookup
) -> Iterator[Found]:
    """Check what MLflow's own client downloads: what was recorded, or nothing.

    An object of a store is hashed where it is, also if the store was moved since. What else lies
    somewhere is foreign; a place of an unknown kind is not even asked.
    """
    path = location.removeprefix(_FILE)
    for digest in digests:
        if path.endswith(f"/objects/{digest[:_DIGEST_DIGITS]}") and "://" not in path.replace(
            "s3://", "", 1
        ):
            for where, problem in check_folder(path, digest):
                if problem != "gone":
                    yield _finding(node, where, f"{problem}; MLflow's client downloads it")
            return
    is_own = location.startswith(("/", f"{_FILE}/", "s3://")) or (
        location.startswith(_PROXIED) and not location.startswith(f"{_PROXIED}/")
    )
    try:
        if is_own and lookup.is_empty(location):
            return
        problem = "which no statement made"
    except (DataError, EngineError) as error:
        problem = f"which cannot be read: {error!s:.200}"
    yield _finding(node, about, f"MLflow's client downloads {location}, {problem}")


def _links(
    digest: str, statement: Statement, run: StageRun, truth: Mapping[str, str | None]
) -> Iterator[Found]:
    """Compare what MLflow links to a run with what its statement lists, by content."""
    about = f"MLflow run {run.id} ({statement.stage})"
    for dataset in run.datasets:
        if dataset.digest != dataset.sha256[:_MAX_DIGEST]:
            problem = _differs("sha256", dataset.sha256, f"{dataset.digest}...")
            yield _finding(digest, about, f"{dataset.way} {dataset.role!r}: {problem}")
    for way, models, items in (
        ("input", run.models_in, statement.inputs),
        ("output", run.models_out, statement.outputs),
    ):
        linked = {data.digest for data in run.datasets if data.way == way}
        contents = _contents(models, truth)
        linked |= {content[:_MAX_DIGEST] for content in contents if content}
        expected = {item.digest[:_MAX_DIGEST]: item for item in items}
        for extra in sorted(linked - expected.keys()):
            yield _finding(digest, about, f"{way} {extra}... is not in the statement")
        if None in contents:
            continue  # that model has its finding, and may be the one that seems to be missing
        for missing in sorted(expected.keys() - linked):
            problem = f"{way} {expected[missing].role!r} {expected[missing].digest} is not linked"
            yield _finding(digest, about, problem)


def _sources(
    digest: str, statement: Statement, run: StageRun, lookup: Lookup, ours: Container[str]
) -> Iterator[Found]:
    """Compare name, role and source of the datasets of a run with its statement.

    MLflow keeps one dataset per name and digest. What lies outside of a store, such as a base model
    in a checkout, may have been logged first by another chain, from another folder with the same
    content: then only its digest can be compared.
    """
    sides = {"input": statement.inputs, "output": statement.outputs}
    for dataset in run.datasets:
        items = [
            one for one in sides.get(dataset.way, ()) if one.digest[:_MAX_DIGEST] == dataset.digest
        ]
        entries = {(one.role, one.role, _place(one.uri, one.digest)) for one in items}
        place = _place(dataset.uri, items[0].digest) if items else dataset.uri
        if not entries or (dataset.name, dataset.role, place) in entries:
            continue
        outside = {one.role for one in items if _place(one.uri, one.digest) == one.uri}
        is_own_name = dataset.name == dataset.role and dataset.role in outside
        if is_own_name and lookup.is_shared(dataset, ours):
            continue
        about = f"MLflow run {run.id} ({statement.stage})"
        dataset_text = (
            f"{dataset.way} {dataset.role!r} is dataset {dataset.name!r} at {dataset.uri}"
        )
        expected = " or ".join(f"{role!r} at {uri}" for role, _, uri in sorted(entries))
        yield _finding(digest, about, f"{dataset_text}, expected {expected}")


def _place(uri: str, digest: str) -> str:
    """Where an artifact lies in its store, which may have been moved since it was recorded."""
    return origins.object_uri("", uri, digest)


def _contents(models: Iterable[LoggedModel], truth: Mapping[str, str | None]) -> list[str | None]:
    return [truth.get(model.id, model.tags.get("sha256")) for model in models]


def _is_same(entry: str | None, expected: str | None) -> bool:
    if entry is None or expected is None or entry == expected:
        return entry == expected
    try:  # a nested setting, whose keys MLflow has in another order
        return json.loads(entry) == json.loads(expected)
    except ValueError:
        return False


def _finding(node: str, about: str, problem: str) -> Found:
    return node, Finding(object=about, problem=problem)


def _differs(name: str, entry: str | None, expected: str | None) -> str:
    if expected is None:
        return f"{name} is {entry}, which its statement does not have"
    return f"{name} is {entry or 'missing'}, expected {expected}"
