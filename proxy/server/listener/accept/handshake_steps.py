"""Steps: has the steps of one TLS handshake wait for their turns."""

import asyncio
from enum import Enum, auto
from typing import Final

from proxy.server.listener.accept.handshake_turns import HandshakeTurns


class _State(Enum):
    TAKES = auto()
    """It is the turn of the handshake: it reads what has arrived."""
    IDLE = auto()
    """It awaits the client."""
    ASKS = auto()
    """The client has sent something, and the turn is asked for."""
    OVER = auto()


class Steps:
    """The steps of one handshake. Fulfils Turn. The first one is taken in the turn in which it is made. If
    the client responds to it before first_taken() is called, the second one waits for no turn.
    """

    def __init__(self, turns: HandshakeTurns, address: str) -> None:
        """`address` is the client's."""
        self._turns: Final = turns
        self._address: Final = address
        self._state = _State.TAKES
        self._protocol: asyncio.BufferedProtocol
        self._transport: asyncio.Transport
        """Both are there after the first step."""

    def first_taken(self, protocol: asyncio.BufferedProtocol, transport: asyncio.Transport) -> None:
        """The first step has been taken. `protocol` is the event loop's TLS, which makes the handshake;
        `transport` is that of the client's socket.
        """
        self._protocol = protocol
        self._transport = transport
        self._state = _State.IDLE

    def has_come(self) -> bool:
        """Whether it is the turn of the handshake. If not, it goes on when its turn comes."""
        if self._state is _State.IDLE:
            self._state = _State.ASKS
            # The event loop would take the end of the connection for that of the handshake.
            self._transport.pause_reading()
            self._turns.ask(self._address, self._take)
        return self._state is _State.TAKES

    def _take(self) -> bool:
        if self._state is not _State.ASKS or self._transport.is_closing():
            return False
        self._state = _State.TAKES
        self._transport.resume_reading()
        self._protocol.buffer_updated(0)  # it reads what it has received
        if self._state is _State.TAKES:
            self._state = _State.IDLE
        return True

    def end(self) -> None:
        """The handshake is over."""
        self._state = _State.OVER
