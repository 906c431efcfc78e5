"""BrokerHosts: the addresses that brokers may have (`upstream.hosts`), and connecting to no others.

Brokers name each other's addresses in their responses. Without this setting, a hostile broker makes the proxy
connect its clients to any host and port.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from proxy.security.host_patterns import Decision, HostPattern, canonical, ip_of

_LAST_PORT: Final = 65535


class HostRejected(OSError):
    """The address is not one that brokers may have, or cannot be one."""


class BrokerHosts:
    """The addresses that the brokers of a listener may have."""

    def __init__(
        self,
        patterns: Sequence[str] = (),
        own: Iterable[tuple[str, int]] = (),
        rejected: Callable[[str, int], None] = lambda host, port: None,
    ) -> None:
        """Without patterns, brokers may have any address. `own` are addresses of the file, which are always
        allowed. `rejected` is called with each address that is not. Raises ValueError for a bad pattern.
        """
        self._patterns: Final = [HostPattern(text) for text in patterns]
        self._own: Final = frozenset((canonical(host), port) for host, port in own)
        self._rejected: Final = rejected

    def allows(self, host: str, port: int) -> bool:
        """Whether a broker may have this address, as far as that is known without resolving a name; if not,
        report the address.
        """
        if self.decide(host, port) is not Decision.REJECTED:
            return True
        self._rejected(host, port)
        return False

    def decide(self, host: str, port: int) -> Decision:
        """Decide without resolving a name."""
        if not self._patterns:
            return Decision.ALLOWED
        name = canonical(host)
        if (name, port) in self._own:
            return Decision.ALLOWED
        address = ip_of(name)
        decisions = {pattern.decide(name, address, port) for pattern in self._patterns}
        for decision in (Decision.ALLOWED, Decision.BY_RESOLUTION):
            if decision in decisions:
                return decision
        return Decision.REJECTED

    async def connect(
        self,
        protocol: Callable[[], asyncio.BaseProtocol],
        host: str,
        port: int,
        context: ssl.SSLContext | None = None,
    ) -> asyncio.Transport:
        """Connect to an allowed address. Raises OSError, which is HostRejected if the address is not allowed
        or is not one to which a client can connect.
        """
        loop = asyncio.get_running_loop()
        if not 0 < port <= _LAST_PORT:
            # Resolvers would take it modulo 65536.
            raise HostRejected(f"{port} is not a valid port")
        try:
            decision = self.decide(host, port)
            if decision is Decision.ALLOWED:
                return (await loop.create_connection(protocol, host, port, ssl=context))[0]
            if decision is Decision.BY_RESOLUTION:
                return await self._connect_resolved(protocol, host, port, context)
        except OSError:
            # An error of TLS is also a ValueError.
            raise
        except ValueError as error:
            # For example two dots in a row, or a label of more than 63 characters.
            raise HostRejected(f"{host!r} is not a valid host name") from error
        self._rejected(host, port)
        raise HostRejected("upstream.hosts does not allow this address")

    async def _connect_resolved(
        self,
        protocol: Callable[[], asyncio.BaseProtocol],
        host: str,
        port: int,
        context: ssl.SSLContext | None,
    ) -> asyncio.Transport:
        """Connect to those of the host's addresses that are allowed; the name is resolved only once."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        addresses = dict.fromkeys(str(info[4][0]) for info in found)
        failure: OSError | None = None
        for address in addresses:
            if self.decide(address, port) is not Decision.ALLOWED:
                continue
            name = None if context is None else host
            try:
                return (
                    await loop.create_connection(protocol, address, port, ssl=context, server_hostname=name)
                )[0]
            except OSError as error:
                failure = error
        if failure is not None:
            raise failure
        self._rejected(host, port)
        raise HostRejected(f"upstream.hosts does not allow {', '.join(addresses)}, its address")


ANY_HOST: Final = BrokerHosts()
