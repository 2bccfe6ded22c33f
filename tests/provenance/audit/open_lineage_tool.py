"""What openlineage-python makes of our events. Runs in the environment of the tools.

python open_lineage_tool.py EVENTS
"""

import json
import sys
from pathlib import Path

from openlineage.client.generated import dataset_version_dataset, parent_run
from openlineage.client.generated.base import (
    EventType,
    InputDataset,
    Job,
    OutputDataset,
    Run,
    RunEvent,
    set_producer,
)
from openlineage.client.serde import Serde


def without_empty(value: object) -> object:
    """Leave out what the library writes although it is empty."""
    if isinstance(value, dict):
        return {
            name: without_empty(one) for name, one in value.items() if one not in ({}, [], None)
        }
    return [without_empty(one) for one in value] if isinstance(value, list) else value


def rebuilt(event: dict) -> dict:
    """Make an event anew with the library's classes, which check times, ids and addresses."""

    def datasets(kind, found):
        version = dataset_version_dataset.DatasetVersionDatasetFacet
        return [
            kind(
                one["namespace"],
                one["name"],
                facets={"version": version(one["facets"]["version"]["datasetVersion"])},
            )
            for one in found
        ]

    set_producer(event["producer"])
    parent = event["run"]["facets"]["parent"]
    facet = parent_run.ParentRunFacet(
        parent_run.Run(parent["run"]["runId"]), parent_run.Job(**parent["job"])
    )
    made = RunEvent(
        eventType=EventType[event["eventType"]],
        eventTime=event["eventTime"],
        run=Run(event["run"]["runId"], {"parent": facet}),
        job=Job(**event["job"]),
        inputs=datasets(InputDataset, event["inputs"]),
        outputs=datasets(OutputDataset, event.get("outputs", [])),
        producer=event["producer"],
    )
    return json.loads(Serde.to_json(made))


def main(events: Path) -> None:
    """Compare every event with the library's own."""
    lines = [json.loads(line) for line in events.read_text().splitlines()]
    for event in lines:
        made = without_empty(rebuilt(event))
        assert without_empty(event) == made, (event, made)
    sys.stdout.write(f"{len(lines)} the same\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
