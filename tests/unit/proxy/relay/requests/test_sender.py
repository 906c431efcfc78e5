"""Sender: which client a request counts for."""

from proxy.quota.identity import Identity
from proxy.quota.usage import UsageLedger
from proxy.relay.counters.traffic import Traffic
from proxy.relay.exchange import Client, new_client
from proxy.relay.requests.sender import Sender
from proxy.wire.apis.api import RequestHeader


class Side:
    def __init__(self) -> None:
        self.traffic = Traffic(usage=UsageLedger())
        first = new_client(Identity("u", "", "127.0.0.1"), b"", self.traffic, 3)
        self.sender = Sender(first, self.traffic, 3)

    def count(self, raw_client_id: bytes, size: int = 100) -> Client:
        return self.sender.count(RequestHeader(0, 9, 1, raw_client_id), size)

    @property
    def counted(self) -> dict[tuple[str, str], tuple[int, int]]:
        """By user and client id: the bytes, and how many connections count there."""
        return {who: (each.bytes_in, each.connections) for who, each in self.traffic.clients.items()}


def test_each_client_id_counts_its_own_requests() -> None:
    side = Side()
    assert [side.count(raw).client_id for raw in (b"a", b"a", b"b")] == ["a", "a", "b"]
    assert side.counted == {("u", ""): (0, 0), ("u", "a"): (200, 0), ("u", "b"): (100, 1)}
    assert side.traffic.requests[0] == 3


def test_a_client_is_looked_up_when_its_id_changes() -> None:
    side = Side()
    client = side.count(b"a")
    assert side.count(b"a") is client
    assert side.count(b"b") is not client


def test_a_login_changes_the_user_and_keeps_the_client_id() -> None:
    side = Side()
    side.count(b"a")
    before = side.sender.client
    side.sender.rename("u")
    assert side.sender.client is before
    side.sender.rename("alice")
    client = side.sender.client
    assert (client.principal, client.client_id, client.address) == ("alice", "a", "127.0.0.1")
    assert side.count(b"a") is client
    assert side.counted["alice", "a"] == (100, 1)
    assert side.counted["u", "a"] == (100, 0)


def test_at_the_end_no_connection_counts() -> None:
    side = Side()
    side.count(b"a")
    side.sender.end()
    assert [connections for _, connections in side.counted.values()] == [0, 0]
