"""Counts the threads a program starts and refuses more than it may have.

The kernel stops the program at every new thread and asks here (seccomp user notification). The
limit on processes would not do: it does not hold for root, and counts what others run.
"""

import errno
import fcntl
import select
import struct

_RECEIVE, _SEND = 0xC0502100, 0xC0182101  # SECCOMP_IOCTL_NOTIF_RECV and _SEND
_NOTICE_BYTES = 80
_CONTINUE = 1


class Threads:
    """How many threads one program may still start, and the descriptor on which it asks."""

    def __init__(self, listener: int, allowed: int) -> None:
        self.listener = listener
        self._left = allowed

    def answer(self, event: int) -> bool:
        """Answer one question, unless the program died meanwhile; False if it never asks again."""
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
