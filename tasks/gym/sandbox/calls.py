"""Which system calls a process of the sandbox may make (seccomp), on x86-64 and arm64.

From strict to wide: `FUNCTIONS`, for the candidate: computing and reading files. `CHECKER`: the
same, and receiving descriptors. `PROGRAM`, for a program that runs by itself: as `FUNCTIONS`, and
threads, sleeping, and executing another program. `COMPILER`: everything except access to other
processes, the network and the system. A refused call fails with EPERM. Only the last list allows a
process to start another one.
"""

import ctypes
import os
import platform
import struct
import sys
from enum import Enum

_NO_NEW_PRIVS, _DUMPABLE, _SET_SECCOMP, _FILTER_MODE = 38, 4, 22, 2
_SET_FILTER, _NEW_LISTENER = 1, 8
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050001  # SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO | EPERM
_ASK = 0x7FC00000  # SECCOMP_RET_USER_NOTIF: the holder of the filter's descriptor decides
_UNKNOWN = 0x00050026  # ENOSYS: the C library then tries the older call
_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_SET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
_X32 = 0x40000000  # the same calls under other numbers, on x86-64

Numbers = tuple[int | None, int | None]
"""A call's number on x86-64 and on arm64; None: it does not exist there."""

_CALLS: dict[str, Numbers] = {
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
_CHECKER_CALLS: dict[str, Numbers] = {"recvmsg": (47, 212)}
_PROGRAM_CALLS: dict[str, Numbers] = {
    "poll": (7, None), "select": (23, None), "mincore": (27, 232), "pause": (34, None),
    "nanosleep": (35, 101), "execve": (59, 221), "chdir": (80, 49), "getrlimit": (97, 163),
    "rt_sigtimedwait": (128, 137), "statfs": (137, 43), "fstatfs": (138, 44),
    "arch_prctl": (158, None), "set_tid_address": (218, 96), "restart_syscall": (219, 128),
    "fadvise64": (221, 223), "clock_nanosleep": (230, 115), "get_mempolicy": (239, 236),
    "pselect6": (270, 72), "ppoll": (271, 73), "set_robust_list": (273, 99),
    "get_robust_list": (274, 100), "dup2": (33, None), "dup3": (292, 24), "pipe2": (293, 59),
    "getcpu": (309, 168), "futex_waitv": (449, 449), "sched_getparam": (143, 121),
    "sched_getscheduler": (145, 120), "sendmsg": (46, 211),
}  # fmt: skip
# Numbers, which argument, the only values it may have.
_VALUES: tuple[tuple[Numbers, int, tuple[int, ...]], ...] = (
    # TCGETS, FIOCLEX, FIONBIO, FIONREAD; not FIOASYNC, which sends signals.
    ((16, 29), 1, (0x5401, 0x5451, 0x5421, 0x541B)),
    # F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_DUPFD_CLOEXEC; not F_SETOWN, which sends signals.
    ((72, 25), 1, (0, 1, 2, 3, 1030)),
    ((302, 261), 0, (0,)),  # prlimit64 of oneself
)
_PROGRAM_VALUES: tuple[tuple[Numbers, int, tuple[int, ...]], ...] = (
    ((157, 167), 0, (15, 16, 0x53564D41)),  # prctl: names of threads and of memory areas
    ((53, 199), 0, (1,)),  # socketpair of a process with itself: Java wants one to read files
)
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | 0o20000000  # O_TMPFILE
# Numbers, which argument holds the flags, none of which may be set.
_OPENS: tuple[tuple[Numbers, int, int], ...] = (
    ((2, None), 1, _WRITING),
    ((257, 56), 2, _WRITING),
)
_CLONE: Numbers = (56, 220)
_CLONE3: Numbers = (435, 435)
_SECCOMP: Numbers = (317, 277)
_THREAD, _NAMESPACES = 0x00010000, 0x7E020080
_COMPILER_REFUSES: dict[str, Numbers] = {
    "shmget": (29, 194), "socket": (41, 198), "kill": (62, 129),
    "semget": (64, 190), "msgget": (68, 186), "ptrace": (101, 117), "setpgid": (109, 154),
    "setsid": (112, 157), "rt_sigqueueinfo": (129, 138), "pivot_root": (155, 41),
    "chroot": (161, 51), "mount": (165, 40), "umount2": (166, 39), "swapon": (167, 224),
    "reboot": (169, 142), "init_module": (175, 105), "tkill": (200, 130), "mq_open": (240, 180),
    "kexec_load": (246, 104), "add_key": (248, 217), "request_key": (249, 218),
    "keyctl": (250, 219), "unshare": (272, 97), "rt_tgsigqueueinfo": (297, 240),
    "perf_event_open": (298, 241), "setns": (308, 268), "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271), "finit_module": (313, 273), "bpf": (321, 280),
    "userfaultfd": (323, 282), "pidfd_send_signal": (424, 424), "io_uring_setup": (425, 425),
    "pidfd_open": (434, 434), "open_tree": (428, 428), "move_mount": (429, 429),
    "fsopen": (430, 430),
}  # fmt: skip


class Calls(Enum):
    """The kind of process that a filter is for."""

    FUNCTIONS = "functions"
    CHECKER = "checker"
    PROGRAM = "program"
    ASKING_PROGRAM = "asking program"
    """As `PROGRAM`, but every new thread is allowed or refused by user notification."""
    COMPILER = "compiler"


class _Instruction(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_ushort),
        ("jump_true", ctypes.c_ubyte),
        ("jump_false", ctypes.c_ubyte),
        ("value", ctypes.c_uint32),
    )


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("first", ctypes.POINTER(_Instruction)))


class CallFilter:
    """A list of allowed calls, compiled once; `install` is quick and irreversible."""

    def __init__(self, calls: Calls) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
        entry = _ARCHITECTURES.get(platform.machine())
        self.works = self._libc is not None and entry is not None
        if entry is not None:
            instructions = _instructions(calls, *entry)
            self._array = (_Instruction * len(instructions))(*instructions)
            self._filter = _Filter(len(instructions), self._array)

    def install(self) -> bool:
        """Drop all privileges and refuse every other system call."""
        if self._libc is None or not self.works:
            return False
        self._drop_privileges(self._libc)
        mode = ctypes.byref(self._filter)
        return self._libc.prctl(_SET_SECCOMP, _FILTER_MODE, mode, 0, 0) == 0

    def install_asking(self) -> int | None:
        """Install; return the descriptor of notifications (Linux 5.5), None if unsupported."""
        if self._libc is None or not self.works:
            return None
        self._drop_privileges(self._libc)
        number = _SECCOMP[_ARCHITECTURES[platform.machine()][1]]
        arguments = (ctypes.c_uint(_SET_FILTER), ctypes.c_uint(_NEW_LISTENER))
        listener = self._libc.syscall(number, *arguments, ctypes.byref(self._filter))
        return listener if listener >= 0 else None

    def _drop_privileges(self, libc: ctypes.CDLL) -> None:
        # Without capabilities root has no special rights.
        header, nothing = struct.pack("=Ii", 0x20080522, 0), bytes(24)
        libc.capset(header, nothing)
        libc.prctl(_DUMPABLE, 0, 0, 0, 0)
        libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0)


def _instructions(calls: Calls, architecture: int, column: int) -> list[_Instruction]:
    """Build the filter: for every call a comparison and its actions."""
    code = [
        _Instruction(_LOAD, 0, 0, 4),
        _Instruction(_JUMP_EQUAL, 1, 0, architecture),
        _returning(_REFUSE),
        _Instruction(_LOAD, 0, 0, 0),
        _Instruction(_JUMP_AT_LEAST, 0, 1, _X32),
        _returning(_REFUSE),
    ]
    if calls is Calls.COMPILER:
        for numbers in _COMPILER_REFUSES.values():
            code += _rule(numbers[column], [_returning(_REFUSE)])
        code += _rule(_CLONE3[column], [_returning(_UNKNOWN)])
        code += _rule(_CLONE[column], _flags(0, _NAMESPACES, if_set=_REFUSE, if_not=_ALLOW))
        return [*code, _returning(_ALLOW)]
    is_program = calls in (Calls.PROGRAM, Calls.ASKING_PROGRAM)
    thread = _ASK if calls is Calls.ASKING_PROGRAM else _ALLOW
    more = _PROGRAM_CALLS if is_program else _CHECKER_CALLS if calls is Calls.CHECKER else {}
    for numbers in (*_CALLS.values(), *more.values()):
        code += _rule(numbers[column], [_returning(_ALLOW)])
    for numbers, argument, values in (*_VALUES, *(_PROGRAM_VALUES if is_program else ())):
        body = [_argument(argument)]
        for value in values:
            body += [_Instruction(_JUMP_EQUAL, 0, 1, value), _returning(_ALLOW)]
        code += _rule(numbers[column], [*body, _returning(_REFUSE)])
    for numbers, argument, flags in _OPENS:
        code += _rule(numbers[column], _flags(argument, flags, if_set=_REFUSE, if_not=_ALLOW))
    if is_program:
        code += _rule(_CLONE3[column], [_returning(_UNKNOWN)])
        code += _rule(_CLONE[column], _flags(0, _THREAD, if_set=thread, if_not=_REFUSE))
    return [*code, _returning(_REFUSE)]


def _rule(number: int | None, body: list[_Instruction]) -> list[_Instruction]:
    return [] if number is None else [_Instruction(_JUMP_EQUAL, 0, len(body), number), *body]


def _flags(argument: int, flags: int, *, if_set: int, if_not: int) -> list[_Instruction]:
    return [
        _argument(argument),
        _Instruction(_JUMP_SET, 1, 0, flags),
        _returning(if_not),
        _returning(if_set),
    ]


def _argument(index: int) -> _Instruction:
    return _Instruction(_LOAD, 0, 0, 16 + 8 * index)


def _returning(action: int) -> _Instruction:
    return _Instruction(_RETURN, 0, 0, action)
