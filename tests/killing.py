"""What a SIGKILL leaves of a folder, at every point between two of its changes."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
import torch

from tasks.durability import states
from tasks.store.files import sha256_bytes
from tasks.store.manifest import folder_manifest

CHANGING = ("replace", "rename", "link", "mkdir", "rmdir", "unlink", "fsync")


class Recorder:
    """Copies a folder before every operation that changes it: what a SIGKILL there leaves.

    Before a file is made durable its copy is cut in half as well: that much of it may be on disk.
    """

    def __init__(self, folder: Path, images: Path) -> None:
        self._folder, self._images = folder, images
        self._plain = {name: getattr(os, name) for name in CHANGING}
        self._save = torch.save
        self.found: list[Path] = []

    def keep(self, torn: Path | None = None) -> None:
        """Copy the folder; of one file half."""
        # A state is signed for the work that its folder is named after.
        image = self._images / f"{len(self.found):04d}" / self._folder.name
        image.mkdir(parents=True)
        if self._folder.exists():
            shutil.copytree(self._folder, image, dirs_exist_ok=True)
        if torn is not None:
            half = image / torn.relative_to(self._folder)
            os.truncate(half, half.stat().st_size // 2)
        self.found.append(image)

    @contextmanager
    def watching(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            for name in CHANGING:
                patch.setattr(os, name, partial(self._change, name))
            patch.setattr(torch, "save", self._saving)
            yield

    @contextmanager
    def _resting(self) -> Iterator[None]:
        """Copying is no operation of the run."""
        with pytest.MonkeyPatch.context() as patch:
            for name, plain in self._plain.items():
                patch.setattr(os, name, plain)
            yield

    def _change(self, name: str, target: object, *args: object, **options: object) -> object:
        where = _path(target, options.get("dir_fd"))
        if where.is_relative_to(self._folder):
            with self._resting():
                self.keep()
                if name == "fsync" and where.is_file():
                    self.keep(torn=where)
        return self._plain[name](target, *args, **options)

    def _saving(self, value: object, path: Path) -> None:
        self._save(value, path)
        with self._resting():
            self.keep(torn=path)


def _path(target: object, dir_fd: object) -> Path:
    """Name what an operation changes: a path, an open file, or a name below an open folder."""
    if isinstance(target, int):
        return Path(f"/proc/self/fd/{target}").readlink()
    parent = Path() if dir_fd is None else Path(f"/proc/self/fd/{dir_fd}").readlink()
    return parent / os.fspath(target)


class Nothing:
    """A trainer that has nothing to restore."""

    def restore(self, folder: Path) -> None:
        assert (folder / "trainer.pt").exists()


def different(images: list[Path]) -> dict[str, Path]:
    """Let every image be cleaned up as a resumed run does first; name the different ones.

    All that a run does afterwards follows from the folder as it is then.
    """
    found = {}
    for image in images:
        states.restore(image, Nothing())
        found.setdefault(sha256_bytes(folder_manifest(image)), image)
    return found


def names(folder: Path) -> list[str]:
    """Everything below a folder."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))
