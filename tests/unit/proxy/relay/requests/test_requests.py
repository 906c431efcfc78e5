"""Requests: errors of the client, and how requests count. tests/relay has the stories of a connection."""

import pytest

from proxy.quota.identity import Identity
from proxy.relay.budgets.group_members import GroupMembers
from proxy.relay.counters.traffic import Traffic
from proxy.relay.exchange import new_client
from proxy.relay.inflight import InFlight
from proxy.relay.output import RelayOutput
from proxy.relay.requests.requests import Requests
from proxy.relay.settings import RelaySettings
from proxy.wire.errors import FrameTooLarge, Malformed, UnsupportedVersion
from proxy.wire.spare_items import SpareItems, SpareTable
from tests.support.messages.exchanges import opaque, produce
from tests.support.messages.groups import join
from tests.support.messages.kio_messages import framed, request_frame
from tests.support.stories.playbook import START, engine

OWN = 42


class Side:
    def __init__(self, group_members: GroupMembers | None = None) -> None:
        self.traffic = Traffic()
        self.output = RelayOutput()
        self.in_flight = InFlight(engine({}), self.traffic, self.output)
        self.requests = Requests(
            engine=engine({}),
            traffic=self.traffic,
            in_flight=self.in_flight,
            output=self.output,
            client=new_client(Identity("ANONYMOUS", "", "127.0.0.1"), b"", self.traffic, -1),
            settings=RelaySettings(
                max_frame_bytes=100 << 20,
                intercepted_api_keys=frozenset([OWN]),
                group_members=group_members,
            ),
            spare_items=SpareItems(SpareTable()),
        )

    def read(self, data: bytes) -> bytes:
        self.output.clear()
        self.requests.feed(data)
        self.requests.read(START)
        return b"".join(self.output.to_broker)


def test_half_a_request_is_no_first_request() -> None:
    side = Side()
    assert side.read(produce(1)[:-1]) == b""
    assert (side.requests.unfinished, side.requests.first_request_seen) == (True, False)


@pytest.mark.parametrize("part_bytes", [5000, 1 << 20])
@pytest.mark.parametrize("size", [10_000, 3 << 20])
def test_an_intercepted_request_is_one_frame_however_it_came(part_bytes: int, size: int) -> None:
    side = Side()
    request = opaque(7, OWN, 1, bytes(size))
    for at in range(0, len(request), part_bytes):
        assert side.output.intercepted == []
        assert side.read(request[at : at + part_bytes]) == b""
    (taken,) = side.output.intercepted
    assert taken.frame == request[4:]
    header = taken.header
    assert (header.api_key, header.api_version, header.correlation_id) == (OWN, 1, 7)
    assert taken.exchange.client.client_id == "client"


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"\xff\xff\xff\xff", FrameTooLarge),
        (framed(b""), Malformed),
        (opaque(1, 0, 99), UnsupportedVersion),
        (opaque(1, 18, 99, bytes(2 << 20))[: 1 << 20], UnsupportedVersion),
        (opaque(1, OWN, 0, bytes(16 << 20))[: 1 << 20], Malformed),
    ],
)
def test_what_cannot_be_read(
    data: bytes, error: type[FrameTooLarge] | type[UnsupportedVersion] | type[Malformed]
) -> None:
    with pytest.raises(error):
        Side().read(data)


def test_a_client_id_is_looked_up_when_it_changes() -> None:
    side = Side()
    side.read(produce(1, client_id=None) + produce(2, client_id="a") + produce(3, client_id="a"))
    side.read(produce(4, client_id="b") + produce(5, client_id="a") + produce(6, client_id=""))
    sizes = {client_id: counters.bytes_in for (user, client_id), counters in side.traffic.clients.items()}
    assert sizes == {"": 208, "a": 312, "b": 104}


def test_members_of_groups_share_the_bytes_of_their_client() -> None:
    members = GroupMembers(100_000)
    first, second = Side(members), Side(members)
    first.read(request_frame(join("g", "m", 60_000)))
    with pytest.raises(Malformed, match="max_group_member_bytes"):
        second.read(request_frame(join("g", "n", 60_000)))


def test_members_without_a_limit() -> None:
    side = Side()
    for member in "mn":
        assert side.read(request_frame(join("g", member, 500_000)))
