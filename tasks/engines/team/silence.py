"""Connections to a machine that is gone break in time.

A call of torch's store has no timeout once its request is sent: a `get` that takes too long
waits for the confirmation that it was cancelled. The kernel repeats what nobody acknowledges for
about 15 minutes (`net.ipv4.tcp_retries2`). For a process that is stopped, its kernel still
acknowledges.
"""

import os
import socket
from contextlib import suppress

import psutil

SILENT_S = 45
"""A machine that acknowledges nothing for so long is gone."""
_PROBE_EVERY_S = 5


def limit_silence(port: int = 0) -> None:
    """Break this process's open connections when the other machine falls silent; Linux only.

    Not for connections of collectives: the kernel would also break one whose reader lives, but is
    busy and has left its buffer full for as long.

    Args:
        port: only connections to this port; 0 = all.
    """
    for connection in psutil.Process().net_connections("tcp"):
        if not connection.raddr or (port and connection.raddr.port != port):
            continue
        with suppress(OSError), socket.socket(fileno=os.dup(connection.fd)) as same:
            same.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            same.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _PROBE_EVERY_S)
            same.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _PROBE_EVERY_S)
            same.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, SILENT_S * 1000)
