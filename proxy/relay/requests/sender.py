"""Sender: the client under which the requests of a connection count, by its login and its client id."""

from typing import Final, final

from proxy.quota.identity import Identity
from proxy.relay.counters.traffic import Traffic
from proxy.relay.exchange import Client, new_client
from proxy.wire.apis.api import RequestHeader


@final
class Sender:
    """The sender of one connection. A request may change the client id, and a login the principal."""

    __slots__ = ("_node_id", "_traffic", "client", "fresh")

    def __init__(self, client: Client, traffic: Traffic, node_id: int) -> None:
        """`client` is released at the end; its usage is counted under the broker's `node_id`."""
        self.client = client
        self.fresh = True
        """Whether the client has sent no request on this connection yet; the owner resets it."""
        self._traffic: Final = traffic
        self._node_id: Final = node_id

    def take(self, header: RequestHeader) -> Client:
        """Return the client of a request, under which the connection counts from now on."""
        client = self.client
        if client.raw_client_id != header.raw_client_id:
            client = self._become(new_client(client, header.raw_client_id, self._traffic, self._node_id))
        return client

    def count(self, header: RequestHeader, size: int) -> Client:
        """Count a request of `size` bytes, length field included; return its client."""
        self._traffic.count_request(header.api_key)
        client = self.take(header)
        client.traffic.bytes_in += size
        if client.usage is not None:
            client.usage.count_request(header.api_key, size)
        return client

    def rename(self, principal: str) -> None:
        """Count under this user from now on, because the client has logged in."""
        if self.client.principal != principal:
            who = Identity(principal, "", self.client.address)
            self._become(new_client(who, self.client.raw_client_id, self._traffic, self._node_id))

    def _become(self, client: Client) -> Client:
        self._traffic.release(self.client.traffic)
        self.client = client
        self.fresh = True
        return client

    def end(self) -> None:
        """Release the client's counters, because the connection is over."""
        self._traffic.release(self.client.traffic)
