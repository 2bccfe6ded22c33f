"""Limits the number of threads that a program starts.

The kernel stops the program at every new thread and notifies this process (seccomp user
notification). RLIMIT_NPROC is unsuitable: it does not apply to root, and counts all processes of
the user.
"""

import errno
import fcntl
import select
import struct

_RECEIVE, _SEND = 0xC0502100, 0xC0182101  # SECCOMP_IOCTL_NOTIF_RECV and _SEND
_NOTICE_BYTES = 80
_CONTINUE = 1


class ThreadLimit:
    """The threads that one program may still start, and the descriptor of its notifications."""

    def __init__(self, listener: int, allowed: int) -> None:
        self.listener = listener
        self._left = allowed

    def answer(self, event: int) -> bool:
        """Answer one notification; False if the program has ended."""
        if not event & select.POLLIN:
            return False
        notice = bytearray(_NOTICE_BYTES)
        try:
            fcntl.ioctl(self.listener, _RECEIVE, notice, True)
            [identity] = struct.unpack_from("=Q", notice)
            granted = self._left > 0
            self._left -= granted
            error, flags = (0, _CONTINUE) if granted else (-errno.EAGAIN, 0)
            fcntl.ioctl(self.listener, _SEND, struct.pack("=QqiI", identity, 0, error, flags))
        except OSError:
            return True
        return True
