"""Flyte shell of the reports: a terminal summary and an HTML page."""

import os
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from data_schemas.arrow import read_table
from data_schemas.artifacts import (
    CheckpointRef,
    Context,
    DatasetRef,
    Execution,
    ReportRef,
    StoreRef,
)
from data_schemas.rows import HELD_OUT, ROWS, Problem
from data_schemas.samples import SampleResult
from data_schemas.settings import EvaluationSettings, PipelineSettings, RetrainSettings
from data_schemas.sources import RowPlace
from tasks.algorithms.comparison import SAMPLES_FILE
from tasks.curation.damage import IS_USED, require_whole
from tasks.formats.nights import load_night
from tasks.formats.progression import read_evaluation
from tasks.pages import answers, webhook
from tasks.pages.collect import collect
from tasks.pages.curation import CURATION_PAGE, render_curation
from tasks.pages.executions import links_of, write_index
from tasks.pages.inputs import RunInputs
from tasks.pages.navigation import TO_INDEX, with_navigation
from tasks.pages.night_page import NIGHT_PAGE, execution_of, render, section, verdict_of
from tasks.pages.page import write_report
from tasks.pages.summary import show
from tasks.platform.deck import deck
from tasks.platform.shell import shell
from tasks.platform.tables import Screen, print_line
from tasks.provenance.lineage import shipping
from tasks.provenance.lineage.shipping import attach_report, workplace
from tasks.provenance.lineage.signatures.pages import write_page
from tasks.provenance.lineage.version_details import report_uri
from tasks.store.objects import localise

WITH_REPORT = ("post_training", "retrain")
"""Workflows whose executions end with a report."""


@shell("summary")
def summary(
    settings: PipelineSettings,
    curated: DatasetRef,
    reports: list[ReportRef],
    releases: list[CheckpointRef],
    precisions: list[ReportRef],
    context: Context,
) -> str:
    """Print the results of a run, write them as one HTML page, and return its location.

    Args:
        settings: of the run.
        curated: of curation.
        reports: of fine-tunings and phases, in order, and the checkpoint progression.
        releases: none or one.
        precisions: reports of a model in other precisions; none or one.
        context: of the run.

    Raises:
        DataError: rows of files could not be read; everything is done and shown all the same.
    """
    inputs = collect(settings, curated, reports, releases, context, precisions)
    page = _tell(inputs, context.store)
    shipping.end(context, "summary")
    if inputs.curated is not None:
        require_whole(inputs.curated, curated.uri, IS_USED)
    return page


@shell("retrain_summary")
def retrain_summary(
    settings: RetrainSettings,
    curated: DatasetRef,
    reports: list[ReportRef],
    releases: list[CheckpointRef],
    context: Context,
) -> str:
    """Print and write the results of a retraining."""
    return _tell(collect(settings, curated, reports, releases, context), context.store)


@shell("curation_page")
def curation_page(curated: DatasetRef, context: Context) -> str:
    """Write the page of a curated set, and return its location.

    Args:
        curated: of curation.
        context: of the run.

    Raises:
        DataError: rows of files could not be read; set and page are written all the same.
    """
    folder = localise(curated.uri, curated.digest, workplace(context.store))
    page = _write_curation_page(folder, context)
    write_index(context.store.uri)
    print_line(f"Page: {page}")
    require_whole(folder, curated.uri)
    shipping.end(context, "curation_page")
    return page


@shell("night_page")
def night_page(message: str, context: Context) -> str:
    """Write the page of a retraining, tell the webhook, and return the message.

    It is printed where the workflow goes on behind it, as with several nights.

    Args:
        message: how the retraining ended.
        context: of the run.

    Returns:
        The message, with the location of the page, and with why nobody was told.
    """
    night = load_night(context.store.uri, context.execution.id)
    name = f"reports/{context.execution.id}{NIGHT_PAGE}"
    page = f"{context.store.uri}/{name}"
    text = f"[{verdict_of(message)[0]}] retraining {context.execution.id}: {message} Page: {page}"
    if failure := webhook.post(os.environ.get(webhook.WEBHOOK, ""), text):
        message = f"{message} Nobody was told: {failure}."
    html = render("Retraining", [section("The decision", message, night)]).decode()
    write_page(context.store.uri, name, with_navigation(html, TO_INDEX))
    deck(html)
    write_index(context.store.uri)
    message = f"{message} Page: {page}"
    shipping.end(context, "night_page", message)
    # The output of a workflow that ends here is printed by whoever started it.
    if "night_page" not in context.execution.last:
        print_line(message)
    return message


@shell("nights_page")
def nights_page(names: list[str], messages: list[str], audits: list[str], context: Context) -> str:
    """Write one page of several nights, and return its location.

    Args:
        names: of the nights.
        messages: how they ended, with the locations of their own pages.
        audits: locations of the audits of what was released after each of them.
        context: of the run.
    """
    sections = [
        section(
            f"Night {number}: {name}",
            f"{message} What is released now was audited and proved: {audit}",
            load_night(context.store.uri, execution_of(message)),
        )
        for number, (name, message, audit) in enumerate(
            zip(names, messages, audits, strict=True), start=1
        )
    ]
    html = render("Five nights of retraining", sections).decode()
    page = write_page(context.store.uri, f"reports/{context.execution.id}{NIGHT_PAGE}", html)
    deck(html)
    print_line(f"Page: {page}")
    shipping.end(context, "nights_page")
    return page


@shell("answers_page")
def answers_page(
    settings: EvaluationSettings, reports: list[ReportRef], curated: DatasetRef, context: Context
) -> str:
    """Write the page of every answer of an evaluation, and return its location.

    Args:
        settings: of the bootstrap.
        reports: of the models, in order.
        curated: the problems.
        context: of the run.
    """
    folder = localise(curated.uri, curated.digest, workplace(context.store))
    problems = read_table(folder / HELD_OUT, Problem)
    rows = {place.source_row: place for place in read_table(folder / ROWS, RowPlace)}
    folders = [localise(ref.uri, ref.digest, workplace(context.store)) for ref in reports]
    evaluated = [
        (read_evaluation(one), read_table(one / SAMPLES_FILE, SampleResult)) for one in folders
    ]
    by_id = {problem.id: problem for problem in problems}
    html = answers.render(
        f"Evaluation {context.execution.id}", evaluated, by_id, rows, settings
    ).decode()
    name = f"reports/{context.execution.id}-answers.html"
    page = write_page(context.store.uri, name, with_navigation(html, TO_INDEX))
    write_index(context.store.uri)
    print_line(f"Answers: {page}")
    shipping.end(context, "answers_page")
    return page


def _write_curation_page(curated: Path, context: Context) -> str:
    name = _report_name(context.execution).removesuffix(".html") + CURATION_PAGE
    html = render_curation(
        curated, f"Curation of {context.execution.id}", f"execution {context.execution.id}"
    )
    report = {"report": _report_name(context.execution).rpartition("/")[2]}
    links = TO_INDEX | (report if context.execution.workflow in WITH_REPORT else {})
    page = with_navigation(html.decode(), links)
    deck(page)
    return write_page(context.store.uri, name, page)


def _report_name(execution: Execution) -> str:
    return report_uri("", execution.id).removeprefix("/")


def _tell(inputs: RunInputs, store: StoreRef) -> str:
    page = report_uri(store.uri, inputs.execution.id)
    places = {"report": page, **inputs.places}
    if inputs.curated is not None:
        places["curated set"] = _write_curation_page(
            inputs.curated, Context(store, inputs.execution)
        )
    links = links_of(store.uri, inputs.execution.id)
    others = {text: f"../{place}" for text, place in links.items() if text != "report"}
    inputs = replace(inputs, places=places)
    with TemporaryDirectory() as folder:
        html = write_report(inputs, Path(folder), TO_INDEX | others).read_text()
    write_page(store.uri, _report_name(inputs.execution), html)
    inputs = replace(inputs, places=places | {"all executions": write_index(store.uri)})
    attach_report(Context(store, inputs.execution), page)
    deck(html)
    show(inputs, Screen())
    return page
