"""The client's direction by itself; tests/relay has the stories in which both take part."""

import pytest

from proxy.quota.identity import Identity
from proxy.relay.inflight import InFlight
from proxy.relay.requests import Requests
from proxy.relay.traffic import Traffic
from proxy.wire.errors import FrameTooLarge, Malformed, UnsupportedVersion
from proxy.wire.topic_names import TopicNames
from tests.support.messages.exchanges import fetch, opaque, produce
from tests.support.messages.kio_messages import framed
from tests.support.stories.playbook import EVERYONE, START, engine

WHO = Identity("ANONYMOUS", "", "127.0.0.1")


class Side:
    def __init__(self, quotas=None, own=()):
        self.traffic = Traffic()
        self.in_flight = InFlight(self.traffic.total)
        self.requests = Requests(
            engine(quotas or {}), self.traffic, self.in_flight, WHO, 100 << 20, frozenset(own), TopicNames()
        )

    def read(self, data, now=START):
        self.requests.feed(data)
        self.requests.read(now)
        return b"".join(self.requests.take())


def test_a_request_goes_on():
    side = Side()
    assert side.read(produce(1)) == produce(1)
    assert side.requests.take() == []
    assert (side.requests.may_read, side.requests.unfinished, side.requests.first_request_seen) == (
        True,
        False,
        True,
    )


def test_nothing_is_greeted_by_half_a_request():
    side = Side()
    assert side.read(produce(1)[:-1]) == b""
    assert (side.requests.unfinished, side.requests.first_request_seen) == (True, False)


def test_a_wait_ends_the_reading():
    side = Side({EVERYONE: {"producer_byte_rate": 1000.0}})
    slow = produce(1, size=3000)
    assert side.read(slow + fetch(2)) == slow
    assert (side.requests.may_read, side.requests.unfinished) == (False, True)
    assert side.in_flight.muted_until == START + 2.0
    side.in_flight.unmute()
    assert side.read(b"") == fetch(2)


def test_a_frame_that_is_half_through_is_read_whatever_the_wait():
    side = Side({EVERYONE: {"producer_byte_rate": 1000.0}})
    large = produce(1, size=2 << 20)
    assert side.read(large[: 1 << 20]) == large[: 1 << 20]
    assert side.requests.may_read
    assert side.read(large[1 << 20 :]) == large[1 << 20 :]
    assert not side.requests.may_read


def test_the_proxys_own_request_does_not_go_on_and_stops_the_reading():
    side = Side(own=[42])
    request = opaque(7, 42, 1, b"body")
    assert side.read(opaque(6, 43) + request + opaque(8, 43)) == opaque(6, 43)
    assert (side.requests.may_read, side.in_flight.awaiting_response) == (False, True)
    (taken,) = side.requests.take_intercepted()
    assert side.requests.take_intercepted() == []
    header = taken.header
    assert (header.api_key, header.api_version, header.correlation_id) == (42, 1, 7)
    assert taken.frame == request[4:]
    assert taken.exchange.client.client_id == "client"
    side.in_flight.respond(taken.exchange, b"answer")
    assert side.read(b"") == opaque(8, 43)


def test_the_proxys_own_request_is_one_frame_however_it_came():
    side = Side(own=[42])
    request = opaque(7, 42, 1, bytes(10_000))
    for at in range(0, len(request), 5000):
        side.read(request[at : at + 5000])
    (taken,) = side.requests.take_intercepted()
    assert taken.frame == request[4:]


def test_the_proxys_own_request_is_never_cut_through_to_the_broker():
    side = Side(own=[42])
    request = opaque(7, 42, 1, bytes(3 << 20))
    for at in range(0, len(request), 1 << 20):
        assert side.requests.take_intercepted() == []
        side.read(request[at : at + (1 << 20)])
    (taken,) = side.requests.take_intercepted()
    assert taken.frame == request[4:]
    assert side.requests.take() == []


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"\xff\xff\xff\xff", FrameTooLarge),
        (framed(b""), Malformed),
        (opaque(1, 0, 99), UnsupportedVersion),
        (opaque(1, 18, 99, bytes(2 << 20))[: 1 << 20], UnsupportedVersion),
    ],
)
def test_what_cannot_be_read(data, error):
    with pytest.raises(error):
        Side().read(data)


def test_a_client_id_is_looked_up_when_it_changes():
    side = Side()
    side.read(produce(1, client_id=None) + produce(2, client_id="a") + produce(3, client_id="a"))
    side.read(produce(4, client_id="b") + produce(5, client_id="a") + produce(6, client_id=""))
    sizes = {client_id: counters.bytes_in for (user, client_id), counters in side.traffic.clients.items()}
    assert sizes == {"": 208, "a": 312, "b": 104}
