"""Every node of a team uploads its part of a state from the disk that the nodes share.

A state of terabytes is more than one machine's network carries beside training. The process that
commits uploads with the first process of every other node (upload_claims.py); without one of them a
state is as durable, and later.
"""

import logging
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tasks.durability.upload import (
    CLAIMS,
    FIRST_PAUSE_S,
    HELD,
    LONGEST_PAUSE_S,
    pointer_to,
    state_name,
)
from tasks.durability.upload_claims import upload_claimed
from tasks.engines.team.controller import current
from tasks.engines.team.member import Member
from tasks.store.interface import Store, store_at
from tasks.store.manifest import MANIFEST, manifest_files

_LOOK_S = 1.0
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Help:
    """Have the first process of every other node upload a part of each state."""

    folder: Path
    uri: str

    def execute(self, member: Member) -> None:
        if member.rank_info.rank and member.rank_info.local_rank == 0:
            Helper(self.folder, store_at(self.uri))


def ask_nodes(folder: Path, uri: str) -> None:
    """Ask the other nodes of this process's team, if there are any, to upload with it.

    Args:
        folder: of the work, on a disk that the nodes share.
        uri: its durable prefix; nothing is uploaded if that is the folder itself.

    Raises:
        EngineError: a process of the team failed.
    """
    controller = current()
    if controller is None or store_at(uri).local_path == folder:
        return
    rank = controller.member.rank_info
    if rank.size > rank.local_size:
        (folder / CLAIMS).mkdir(parents=True, exist_ok=True)
        with controller.commands.together(Help(folder, uri)):
            pass


class Helper:
    """Uploads what it can claim, in a thread, until the uploader has closed.

    Args:
        folder: of the work, on a disk that this node shares with the one that commits.
        place: durable prefix of the work.
    """

    def __init__(self, folder: Path, place: Store) -> None:
        self._folder, self._place = folder, place
        # A daemon: an upload that hangs must not keep the process alive after its work.
        self.thread = threading.Thread(target=self._work, name="state-upload", daemon=True)
        self.thread.start()

    def _work(self) -> None:
        pause_s = FIRST_PAUSE_S
        while (self._folder / CLAIMS).is_dir():
            wait_s = _LOOK_S
            try:
                for claims in sorted((self._folder / CLAIMS).glob("[0-9]*")):
                    with suppress(FileNotFoundError):  # of no state, or all was uploaded meanwhile
                        self._help(claims)
                pause_s = FIRST_PAUSE_S
            except Exception as error:  # noqa: BLE001 - boundary: who commits uploads the rest
                logger.warning(
                    "this node uploads nothing for %.0f s: %s: %s",
                    pause_s,
                    type(error).__name__,
                    error,
                )
                wait_s, pause_s = pause_s, min(LONGEST_PAUSE_S, 2.0 * pause_s)
            time.sleep(wait_s)

    def _help(self, claims: Path) -> None:
        link = self._folder / HELD / claims.name.partition("-")[0]
        if state_name(pointer_to(link, self._place.uri)) != claims.name:
            return

        def upload(name: str) -> None:
            self._place.upload_file(link / name, f"states/{claims.name}/{name}")

        # Of the held state: no list on the disk says which files leave the machine.
        upload_claimed(
            claims, list(manifest_files((link / MANIFEST).read_bytes(), str(link))), upload
        )
