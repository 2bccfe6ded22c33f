"""What a process of the sandbox may do: limits, files, system calls.

Applied by the process to itself, for good. Every part says whether the machine has it, so that the
caller can tell the user what is missing. Linux on x86-64 and arm64 has all three; elsewhere only
the limits work.
"""

import ctypes
import os
import platform
import resource
import struct
import sys
from collections.abc import Sequence
from pathlib import Path

_NO_NEW_PRIVS, _DUMPABLE, _SET_SECCOMP, _FILTER_MODE = 38, 4, 22, 2
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446
_READ = 0b1101  # execute (mapping of libraries), read file, read folder
_READ_FILE = 0b0101
_LANDLOCK_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}
_NEWEST_RIGHTS = 16

_ALLOW, _REFUSE = 0x7FFF0000, 0x00050001  # SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO | EPERM
_LOAD, _JUMP_EQUAL, _JUMP_SET, _RETURN = 0x20, 0x15, 0x45, 0x06
_ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
# Name: number on x86-64, number on arm64 (None: does not exist there).
_CALLS: dict[str, tuple[int | None, int | None]] = {
    "read": (0, 63), "write": (1, 64), "close": (3, 57), "stat": (4, None), "fstat": (5, 80),
    "lstat": (6, None), "lseek": (8, 62), "mmap": (9, 222), "mprotect": (10, 226),
    "munmap": (11, 215), "brk": (12, 214), "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139), "pread64": (17, 67), "readv": (19, 65), "writev": (20, 66),
    "access": (21, None), "sched_yield": (24, 124), "mremap": (25, 216), "madvise": (28, 233),
    "dup": (32, 23), "getpid": (39, 172), "sendto": (44, 206), "recvfrom": (45, 207),
    "shutdown": (48, 210), "exit": (60, 93), "uname": (63, 160), "getdents": (78, None),
    "getcwd": (79, 17), "readlink": (89, None), "gettimeofday": (96, 169), "getrusage": (98, 165),
    "sysinfo": (99, 179), "times": (100, 153), "getuid": (102, 174), "getgid": (104, 176),
    "geteuid": (107, 175), "getegid": (108, 177), "getppid": (110, 173),
    "sigaltstack": (131, 132), "gettid": (186, 178), "time": (201, None), "futex": (202, 98),
    "sched_getaffinity": (204, 123), "getdents64": (217, 61), "clock_gettime": (228, 113),
    "clock_getres": (229, 114), "exit_group": (231, 94), "newfstatat": (262, 79),
    "readlinkat": (267, 78), "faccessat": (269, 48), "getrandom": (318, 278),
    "membarrier": (324, 283), "statx": (332, 291), "rseq": (334, 293), "faccessat2": (439, 439),
}  # fmt: skip
# Name: numbers as above, which argument, the only values it may have.
_CALLS_WITH_VALUES: dict[str, tuple[tuple[int | None, int | None], int, tuple[int, ...]]] = {
    # TCGETS, FIOCLEX, FIONBIO; not FIOASYNC, which sends signals.
    "ioctl": ((16, 29), 1, (0x5401, 0x5451, 0x5421)),
    # F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_DUPFD_CLOEXEC; not F_SETOWN, which sends signals.
    "fcntl": ((72, 25), 1, (0, 1, 2, 3, 1030)),
    "prlimit64": ((302, 261), 0, (0,)),
}
# Name: numbers as above, which argument holds the flags: none that writes or creates may be set.
_OPENS: dict[str, tuple[tuple[int | None, int | None], int]] = {
    "open": ((2, None), 1),
    "openat": ((257, 56), 2),
}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | 0o20000000  # O_TMPFILE


class _Instruction(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_ushort),
        ("jump_true", ctypes.c_ubyte),
        ("jump_false", ctypes.c_ubyte),
        ("value", ctypes.c_uint32),
    )


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("first", ctypes.POINTER(_Instruction)))


def limit(*, cpu_s: int, memory_bytes: int) -> None:
    """Cap CPU time, address space, processes, files and file size of this process."""
    for name, soft, hard in (
        ("RLIMIT_CPU", cpu_s, cpu_s + 1),
        ("RLIMIT_AS", memory_bytes, memory_bytes),
        ("RLIMIT_NPROC", 0, 0),
        ("RLIMIT_FSIZE", 0, 0),
        ("RLIMIT_NOFILE", 32, 32),
        ("RLIMIT_CORE", 0, 0),
        ("RLIMIT_MEMLOCK", 0, 0),
    ):
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


def hide_files(readable: Sequence[Path]) -> bool:
    """Refuse this process and its children every file but those below `readable` (Landlock)."""
    libc = _libc()
    if libc is None:
        return False
    version = libc.syscall(_LANDLOCK_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    if version < 1:
        return False
    handled = struct.pack("=Q", (1 << _LANDLOCK_RIGHTS.get(version, _NEWEST_RIGHTS)) - 1)
    rules = libc.syscall(_LANDLOCK_CREATE, handled, ctypes.c_size_t(8), ctypes.c_uint32(0))
    if rules < 0:
        return False
    try:
        for path in readable:
            if not path.exists():
                continue
            handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
            rule = struct.pack("=Qi", _READ if path.is_dir() else _READ_FILE, handle)
            libc.syscall(_LANDLOCK_ADD, rules, 1, rule, ctypes.c_uint32(0))
            os.close(handle)
        libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0)
        return libc.syscall(_LANDLOCK_RESTRICT, rules, ctypes.c_uint32(0)) == 0
    finally:
        os.close(rules)


class CallFilter:
    """The allowed system calls, prepared once; `install` is quick and cannot be undone.

    Left out on purpose, so that they fail with EPERM: processes and threads, signals, sockets,
    writing files, other processes' memory, and sleeping, as a program that overruns its time should
    have used it.
    """

    def __init__(self) -> None:
        self._libc = _libc()
        known = _ARCHITECTURES.get(platform.machine())
        self.works = self._libc is not None and known is not None
        if known is not None:
            instructions = _program(*known)
            self._array = (_Instruction * len(instructions))(*instructions)
            self._filter = _Filter(len(instructions), self._array)

    def install(self) -> bool:
        """Give up all privileges and refuse every other system call from now on."""
        if self._libc is None or not self.works:
            return False
        # With all capabilities dropped, root is a user like any other, minus its files.
        header, nothing = struct.pack("=Ii", 0x20080522, 0), bytes(24)
        self._libc.capset(header, nothing)
        self._libc.prctl(_DUMPABLE, 0, 0, 0, 0)
        self._libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0)
        mode = ctypes.byref(self._filter)
        return self._libc.prctl(_SET_SECCOMP, _FILTER_MODE, mode, 0, 0) == 0


def _libc() -> ctypes.CDLL | None:
    return ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def _program(architecture: int, column: int) -> list[_Instruction]:
    """Build the filter: for every allowed call one comparison and its return."""
    code = [
        _Instruction(_LOAD, 0, 0, 4),
        _Instruction(_JUMP_EQUAL, 1, 0, architecture),
        _Instruction(_RETURN, 0, 0, _REFUSE),
        _Instruction(_LOAD, 0, 0, 0),
    ]
    for numbers in _CALLS.values():
        code += _rule(numbers[column], [_Instruction(_RETURN, 0, 0, _ALLOW)])
    for numbers, argument, values in _CALLS_WITH_VALUES.values():
        body = [_Instruction(_LOAD, 0, 0, 16 + 8 * argument)]
        for value in values:
            body += [_Instruction(_JUMP_EQUAL, 0, 1, value), _Instruction(_RETURN, 0, 0, _ALLOW)]
        code += _rule(numbers[column], [*body, _Instruction(_RETURN, 0, 0, _REFUSE)])
    for numbers, argument in _OPENS.values():
        body = [
            _Instruction(_LOAD, 0, 0, 16 + 8 * argument),
            _Instruction(_JUMP_SET, 1, 0, _WRITING),
            _Instruction(_RETURN, 0, 0, _ALLOW),
            _Instruction(_RETURN, 0, 0, _REFUSE),
        ]
        code += _rule(numbers[column], body)
    return [*code, _Instruction(_RETURN, 0, 0, _REFUSE)]


def _rule(number: int | None, body: list[_Instruction]) -> list[_Instruction]:
    return [] if number is None else [_Instruction(_JUMP_EQUAL, 0, len(body), number), *body]
