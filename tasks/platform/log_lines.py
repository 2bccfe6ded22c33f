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


def in_pod() -> bool:
    """True in a container on a cluster, where each stage has an image of its own."""
    return FIELDS["execution"] in os.environ


class Lines(logging.Formatter):
    """Writes a record as JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        entry = {"time": time, "level": record.levelname, "logger": record.name}
        entry |= {name: os.environ[key] for name, key in FIELDS.items() if key in os.environ}
        entry["message"] = record.getMessage()
        if record.exc_info and not isinstance(record.exc_info[1], PipelineError):
            entry["error"] = self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=False)


def configure() -> None:
    """Write JSON in a pod, without what flytekit and s3fs say about themselves in every pod.

    flytekit's own handler writes JSON of another form; its lines go where all others do.
    """
    if not in_pod():
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger(OURS).setLevel(logging.INFO)
    # Fields of models that no workflow takes an attribute of; sessions that end with the process.
    flytekit = logging.getLogger("flytekit")
    flytekit.setLevel(logging.ERROR)
    flytekit.handlers.clear()
    flytekit.propagate = True
    for name in ("asyncio", "flytekit"):
        logging.getLogger(name).addFilter(_is_news)


_NO_NEWS = (
    "Unclosed client session",
    "Unclosed connector",
    "!! Begin ",
    "!! End ",
    "Exception when executing task ",
)
"""Beginnings of lines that are no news: s3fs leaves its sessions to the end of the process;
flytekit frames an error's text."""


def _is_news(record: logging.LogRecord) -> bool:
    message = record.getMessage()
    return not any(phrase in message for phrase in _NO_NEWS)
