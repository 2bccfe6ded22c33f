"""Writes the page of a running phase where a person can open it: into the store."""

import logging
import time
from collections.abc import Callable

from tasks.errors import PipelineError
from tasks.platform.progress import say
from tasks.provenance.lineage.signatures.pages import write_page

FOLDER = "live"
SHARE = 0.02
"""Share of the time that writing pages may take, after the first one."""
logger = logging.getLogger(__name__)


def page_name(execution: str, stage: str) -> str:
    """Name the page of a stage of an execution, below `live/` and without ending."""
    return f"{execution}/{stage.replace('/', '-')}"


class Publisher:
    """Writes a page after a step, unless that would cost too much of the phase's time.

    A store that does not answer, or a full disk, costs the page and not the phase.
    """

    def __init__(
        self,
        store: str,
        name: str,
        show: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare; nothing is written yet.

        Args:
            store: uri of the run's store.
            name: from `page_name`.
            show: also gets every page, such as the deck of a Flyte task.
            clock: seconds that only rise.
        """
        self._store, self._name = store, f"{FOLDER}/{name}.html"
        self.uri = f"{store}/{self._name}"
        self._show, self._clock = show, clock
        self._page = ""
        self._next = float("-inf")

    def publish(self, render: Callable[[], str], *, last: bool = False) -> bool:
        """Render and write the page if it is due or the last one; True if it was."""
        start = self._clock()
        if start < self._next and not last:
            return False
        if self._next == float("-inf"):
            say(f"  watch it at {self.uri}")
        try:
            page = render()
            self._show(page)
            write_page(self._store, self._name, page, before=self._page)
            self._page = page
        except (PipelineError, OSError) as error:
            logger.warning("the page %s is not written: %s", self.uri, error)
        end = self._clock()
        self._next = end + (end - start) * (1.0 / SHARE - 1.0)
        return True
