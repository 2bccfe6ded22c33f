"""Lines of a pod's log: one JSON object each, with time, level, execution, stage and attempt.

Only on a cluster, where a collector reads them; a terminal gets Python's own plain lines.
"""

import json
import logging
import os
import sys
from datetime import UTC, datetime

from tasks.errors import PipelineError

FIELDS = {
    "execution": "FLYTE_INTERNAL_EXECUTION_ID",
    "stage": "FLYTE_INTERNAL_TASK_NAME",
    "attempt": "FLYTE_ATTEMPT_NUMBER",
}
"""Field of a line -> variable of the pod."""
OURS = "tasks"
"""Loggers of this project write from INFO on, those of libraries from WARNING on."""


class Lines(logging.Formatter):
    """Writes a record as JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        told = {"time": time, "level": record.levelname, "logger": record.name}
        told |= {name: os.environ[key] for name, key in FIELDS.items() if key in os.environ}
        told["message"] = record.getMessage()
        if record.exc_info and not isinstance(record.exc_info[1], PipelineError):
            told["error"] = self.formatException(record.exc_info)
        return json.dumps(told, ensure_ascii=False)


def configure() -> None:
    """Write JSON in a pod, without what flytekit and s3fs say about themselves in every pod."""
    if FIELDS["execution"] not in os.environ:
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger(OURS).setLevel(logging.INFO)
    # Fields of models that no workflow takes an attribute of; sessions that end with the process.
    logging.getLogger("flytekit").setLevel(logging.ERROR)
    logging.getLogger("asyncio").addFilter(_is_news)


def _is_news(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith(("Unclosed client session", "Unclosed connector"))
