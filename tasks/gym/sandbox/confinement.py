"""Resource limits and file access of a process of the sandbox.

A process applies them to itself, irreversibly. Every function returns whether the machine supports
it, so that the caller can refuse to continue. All work on Linux; elsewhere only the limits do.
"""

import ctypes
import functools
import os
import resource
import struct
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_NO_NEW_PRIVS, _DEATH_SIGNAL, _SUBREAPER = 38, 1, 36
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446
_READ = 0b1101  # execute, read file, read folder
_READ_FILE = 0b0101
_DEVICE = 0b0110  # write and read file
_LANDLOCK_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}
_NEWEST_RIGHTS = 16
_NO_TCP, _NO_SIGNALS_OUT = 0b11, 0b11


@dataclass(frozen=True, slots=True)
class ResourceLimits:
    """Resources of one process. With 0 processes it cannot start a process or a thread."""

    cpu_s: int | None
    """None: unlimited; the process limits itself."""
    memory_bytes: int
    file_bytes: int = 0
    processes: int | None = 0
    open_files: int = 32
    stack_bytes: int = 0
    """0: unchanged."""
    counts_reserved: bool = True
    """False for the JVM, which reserves far more address space than it uses."""


def apply_limits(limits: ResourceLimits) -> None:
    """Cap CPU time, memory, processes, files and file size of this process."""
    memory = "RLIMIT_AS" if limits.counts_reserved else "RLIMIT_DATA"
    caps = [
        (memory, limits.memory_bytes, limits.memory_bytes),
        ("RLIMIT_FSIZE", limits.file_bytes, limits.file_bytes),
        ("RLIMIT_NOFILE", limits.open_files, limits.open_files),
        ("RLIMIT_CORE", 0, 0),
        ("RLIMIT_MEMLOCK", 0, 0),
    ]
    if limits.cpu_s is not None:
        # SIGXCPU at the first, which names the cause; SIGKILL a second later, if it is ignored.
        caps.append(("RLIMIT_CPU", limits.cpu_s, limits.cpu_s + 1))
    if limits.processes is not None:
        caps.append(("RLIMIT_NPROC", limits.processes, limits.processes))
    if limits.stack_bytes:
        caps.append(("RLIMIT_STACK", limits.stack_bytes, limits.stack_bytes))
    for name, soft, hard in caps:
        if not hasattr(resource, name):
            continue
        kind = getattr(resource, name)
        _, ceiling = resource.getrlimit(kind)
        if ceiling != resource.RLIM_INFINITY:
            soft, hard = min(soft, ceiling), min(hard, ceiling)
        try:
            resource.setrlimit(kind, (soft, hard))
        except (ValueError, OSError):  # macOS refuses RLIMIT_AS
            continue


def landlock_version() -> int:
    """Return the kernel's version of Landlock; 0 if it has none."""
    libc = _libc()
    if libc is None:
        return 0
    version = libc.syscall(_LANDLOCK_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    return max(0, version)


def restrict_files(readable: Sequence[Path], writable: Sequence[Path] = ()) -> bool:
    """Refuse this process and its children all other files, TCP, and signals to others (Landlock).

    TCP needs version 4, signals need version 6; older kernels restrict files only.
    """
    libc, version = _libc(), landlock_version()
    if libc is None or version < 1:
        return False
    rights = (1 << _LANDLOCK_RIGHTS.get(version, _NEWEST_RIGHTS)) - 1
    handled = struct.pack("=Q", rights)
    if version >= 4:
        handled += struct.pack("=Q", _NO_TCP)
    if version >= 6:
        handled += struct.pack("=Q", _NO_SIGNALS_OUT)
    size = ctypes.c_size_t(len(handled))
    rules = libc.syscall(_LANDLOCK_CREATE, handled, size, ctypes.c_uint32(0))
    if rules < 0:
        return False
    try:
        for path in readable:
            allowed = _READ if path.is_dir() else _READ_FILE
            _allow(libc, rules, path, _DEVICE if path.is_char_device() else allowed)
        for path in writable:
            _allow(libc, rules, path, rights)
        libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0)
        return libc.syscall(_LANDLOCK_RESTRICT, rules, ctypes.c_uint32(0)) == 0
    finally:
        os.close(rules)


def become_subreaper() -> None:
    """Become the parent of every descendant whose own parent ends."""
    libc = _libc()
    if libc is not None:
        libc.prctl(_SUBREAPER, 1, 0, 0, 0)


def die_with_parent() -> None:
    """Have this process killed when its parent ends."""
    libc = _libc()
    if libc is not None:
        libc.prctl(_DEATH_SIGNAL, 9, 0, 0, 0)


def _allow(libc: ctypes.CDLL, rules: int, path: Path, rights: int) -> None:
    if not path.exists():
        return
    handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    libc.syscall(_LANDLOCK_ADD, rules, 1, struct.pack("=Qi", rights, handle), ctypes.c_uint32(0))
    os.close(handle)


@functools.cache
def _libc() -> ctypes.CDLL | None:
    return ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
