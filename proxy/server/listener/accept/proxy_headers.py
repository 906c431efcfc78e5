"""ProxyHeaders: the addresses of clients behind load balancers that speak the PROXY protocol.

The header is read from the socket before anything else, and no byte behind it: what reads the TLS handshake
or the first request finds the socket as if there were no header. Only load balancers that the configuration
names are believed.
"""

import asyncio
import socket
from collections.abc import Callable
from typing import Final

from proxy.config.settings import ProxyProtocol
from proxy.quota.networks import Networks
from proxy.relay.close_reasons import PROXY_HEADER, UNTRUSTED_SENDER
from proxy.server.connection.origin import Origin
from proxy.server.listener.accept.admission import Admission
from proxy.server.listener.accept.readable import until_readable
from proxy.server.listener.closed_connections import ClosedConnections
from proxy.tasks import Tasks
from proxy.wire.errors import Malformed
from proxy.wire.proxy_protocol import V2_MOST, ProxyHeader, read_header


class ProxyHeaders:
    """Fulfils OriginReader for the ports of one listener."""

    def __init__(
        self,
        settings: ProxyProtocol,
        *,
        admission: Admission,
        closed: ClosedConnections,
        seconds: float,
        tasks: Tasks,
    ) -> None:
        """`seconds`: the time within which a header must have arrived."""
        self._senders: Final = Networks(list(settings.senders))
        self._accepts_others: Final = settings.others == "accept"
        self._admission: Final = admission
        self._closed: Final = closed
        self._seconds: Final = seconds
        self._tasks: Final = tasks
        self._loop: Final = asyncio.get_running_loop()

    def read(
        self, client: socket.socket, origin: Origin, then: Callable[[socket.socket, Origin], None]
    ) -> None:
        """Call `then` with the origin that the header of an accepted connection states, or close it."""
        if self._senders.contain(origin.address):
            self._admission.hold()
            self._tasks.start(self._read(client, origin, then))
        elif self._accepts_others:
            then(client, origin)
        else:
            client.close()
            why = "it is not in proxy_protocol.senders"
            self._closed.reject(UNTRUSTED_SENDER, origin.peer, why)

    async def _read(
        self, client: socket.socket, sender: Origin, then: Callable[[socket.socket, Origin], None]
    ) -> None:
        header: ProxyHeader | None = None
        why = ""
        try:
            async with asyncio.timeout(self._seconds):
                header = await self._header(client)
        except TimeoutError:
            why = f"no PROXY header within {self._seconds:g} s"
        except (Malformed, OSError) as error:
            why = str(error)
        finally:
            self._admission.release()
            if header is None:
                client.close()
        if header is not None:
            then(client, _origin(header, sender))
        elif why:
            self._closed.reject(PROXY_HEADER, sender.peer, why)

    async def _header(self, client: socket.socket) -> ProxyHeader | None:
        """Take the header out of the socket. None if the connection was closed without a byte, as a health
        check does. Raises Malformed and OSError.
        """
        data = b""
        while True:
            await until_readable(self._loop, client)
            try:
                seen = client.recv(V2_MOST, socket.MSG_PEEK)
            except BlockingIOError:
                continue
            if not seen:
                if data:
                    raise Malformed("the connection was closed in the middle of the PROXY header")
                return None
            header = read_header(data + seen)
            # The part of an unfinished header is taken too: otherwise the socket stays readable.
            taken = len(seen) if header is None else header.size - len(data)
            data += client.recv(taken)
            if header is not None:
                return header


def _origin(header: ProxyHeader, sender: Origin) -> Origin:
    if header.host:
        return Origin(header.host, header.port, stated=True)
    # A connection of the load balancer's own, such as a health check, or one whose client it does not know.
    return Origin(sender.address, sender.port, stated=True)
