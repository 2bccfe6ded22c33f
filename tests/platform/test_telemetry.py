"""What OpenTelemetry is told where its variables ask for it, and that nothing is where not."""

import json
import subprocess
import sys
from itertools import groupby

from tests.packages import ROOT
from tests.processes import run_process

SAYS = """\
import sys
from tasks.platform import telemetry
try:
    with telemetry.span("rl/one", {"execution": "night-1"}):
        telemetry.add_span("update", 1.5)
        telemetry.show({"pass@4": 0.5}, {"stage": "rl/one"})
        raise ValueError("no weights")
except ValueError:
    pass
if "opentelemetry" in sys.modules:
    print("imported", file=sys.stderr)
"""


def said(**variables: str) -> subprocess.CompletedProcess[str]:
    """Run a stage of one part in a process of its own: OpenTelemetry is set up once in each."""
    return run_process([sys.executable, "-c", SAYS], env={"PYTHONPATH": str(ROOT), **variables})


def documents(text: str) -> list[dict]:
    """Read JSON objects, each of which begins and ends on a line of its own."""
    found, lines = [], text.splitlines()
    ends = [number for number, line in enumerate(lines) if line == "}"]
    for _, block in groupby(range(len(lines)), lambda at: sum(end < at for end in ends)):
        found.append(json.loads("\n".join(lines[at] for at in block)))
    return found


def test_a_stage_is_a_span_with_its_parts_and_its_error():
    part, whole = documents(said(OTEL_TRACES_EXPORTER="console").stdout)

    assert ("update", "rl/one") == (part["name"], whole["name"])
    assert part["parent_id"] == whole["context"]["span_id"]
    assert {"execution": "night-1"} == whole["attributes"]
    assert "ERROR" == whole["status"]["status_code"]
    assert "no weights" in whole["status"]["description"]
    assert "eachprompt" == whole["resource"]["attributes"]["service.name"]


def test_metrics_are_gauges_with_the_names_that_opentelemetry_takes():
    (found,) = documents(said(OTEL_METRICS_EXPORTER="console").stdout)

    (scope,) = found["resource_metrics"][0]["scope_metrics"]
    (metric,) = scope["metrics"]
    (point,) = metric["data"]["data_points"]
    assert ("pass_4", 0.5, {"stage": "rl/one"}) == (
        metric["name"],
        point["value"],
        point["attributes"],
    )


def test_an_exporter_that_is_not_installed_stops_no_stage():
    done = said(OTEL_TRACES_EXPORTER="nowhere")

    assert "" == done.stdout
    assert "no spans and no metrics are sent: Requested component 'nowhere'" in done.stderr


def test_nothing_is_imported_where_nobody_asks():
    for variables in ({}, {"OTEL_TRACES_EXPORTER": "none"}):
        done = said(**variables)
        assert ("", "") == (done.stdout, done.stderr)
