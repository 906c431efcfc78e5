"""Finds out what a peer has done while nothing is read from it, which the event loop does not notice."""

import asyncio
import os
import socket
from fcntl import ioctl
from termios import FIONREAD
from typing import Final

TCP_INFO: Final = getattr(socket, "TCP_INFO", -1)
"""The socket option with the state of a TCP connection; -1 if the system lacks it. Its values are Linux's."""
_CLOSED_STATES: Final = frozenset([7, 8, 9, 11])
"""TCP_CLOSE, TCP_CLOSE_WAIT, TCP_LAST_ACK and TCP_CLOSING, in Linux's tcp_states.h."""


def hung_up(transport: asyncio.Transport) -> bool:
    """Whether the peer of a TCP connection has closed it, or it is broken; False if that cannot be known.

    Bytes that the peer sent before may still be there. If they fill the receive buffer, its end is not seen.
    """
    plain = transport.get_extra_info("socket")
    if TCP_INFO < 0 or plain is None or plain.fileno() < 0:
        return False
    try:
        with socket.socket(fileno=os.dup(plain.fileno())) as duplicate:
            state: int = duplicate.getsockopt(socket.IPPROTO_TCP, TCP_INFO, 1)[0]
    except OSError:
        return False
    return state in _CLOSED_STATES


def has_sent(transport: asyncio.Transport) -> bool:
    """Whether bytes of the peer wait in the socket. Over TLS, some may wait elsewhere."""
    plain = transport.get_extra_info("socket")
    if plain is None or plain.fileno() < 0:
        return False
    try:
        return any(ioctl(plain.fileno(), FIONREAD, bytes(4)))
    except OSError:
        return False
