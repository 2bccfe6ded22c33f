"""What a stage ran on: installed packages, the lock file they come from, the container image."""

import functools
import hashlib
import importlib.metadata
import os
from collections.abc import Mapping
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from tasks.platform.source import lock_files
from tasks.store.files import sha256_file

_IMAGE = "FLYTE_INTERNAL_IMAGE"


@functools.cache
def packages() -> tuple[tuple[str, str], ...]:
    """List the name and version of every installed distribution.

    A distribution parses its metadata again for each property that is read: here once.
    """
    every = [distribution.metadata for distribution in importlib.metadata.distributions()]
    return tuple((metadata["Name"], metadata["Version"]) for metadata in every)


def environment_digest() -> str:
    """Hash the names and versions of all installed distributions."""
    pins = {f"{name}=={version}" for name, version in packages()}
    return hashlib.sha256("\n".join(sorted(pins)).encode()).hexdigest()


@functools.cache
def lock_digest() -> str:
    """Hash the lock file that the installed packages come from; '' if they come from none.

    Differs from the file that was asked for: a lock is named only if every one of its pins is
    installed in that version.
    """
    versions: dict[str, str] = {canonicalize_name(name): version for name, version in packages()}
    locks = [path for path in lock_files().values() if agrees(path, versions)]
    # The one that says most: a lock may be part of another.
    return sha256_file(max(locks, key=lambda path: path.stat().st_size)) if locks else ""


def lock_file(digest: str) -> Path | None:
    """Find the lock file of a digest; None if this version of the project does not have it."""
    return next((path for path in lock_files().values() if sha256_file(path) == digest), None)


def agrees(lock: Path, installed: Mapping[str, str]) -> bool:
    """True if all pins of a lock file are among the installed versions, by canonical name."""
    # A pin is followed by the hashes of its files, on continued lines.
    lines = lock.read_text().replace("\\\n", "").splitlines()
    try:
        pins = [
            Requirement(line.partition(" --hash=")[0])
            for line in lines
            if line and not line.startswith("#")
        ]
    except InvalidRequirement:
        return False
    applicable = [pin for pin in pins if pin.marker is None or pin.marker.evaluate()]
    return bool(applicable) and all(
        pin.specifier.contains(installed.get(canonicalize_name(pin.name), "0"), prereleases=True)
        for pin in applicable
    )


def container_image() -> str:
    """Name the image this process runs in, as Flyte was told; '' outside a pod."""
    return os.environ.get(_IMAGE, "")
