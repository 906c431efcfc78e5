"""The broker's direction by itself; tests/relay has the stories in which both take part."""

import pytest

from proxy.relay.exchange import Client, Exchange
from proxy.relay.inflight import InFlight
from proxy.relay.responses import HOLD_BYTES, Responses
from proxy.relay.traffic import Traffic
from proxy.wire.errors import FrameTooLarge, Malformed, Short
from proxy.wire.registry import WITHOUT_INTERCEPTED
from proxy.wire.topic_names import TopicNames
from tests.support.messages.exchanges import answered, fetched, produced
from tests.support.messages.kio_messages import Ports, framed
from tests.support.messages.reading import request_view
from tests.support.stories.playbook import EVERYONE, START, engine


class Side:
    def __init__(self, quotas=None):
        self.traffic = Traffic()
        self.in_flight = InFlight(self.traffic.total)
        self.responses = Responses(engine(quotas or {}), Ports(), self.traffic, self.in_flight, TopicNames())
        self.client = Client("u", "c", "a", self.traffic.client("u", "c"), b"c")

    def ask(self, number, api_key=None, version=7, throttled_until=0.0):
        api = None if api_key is None else WITHOUT_INTERCEPTED.read[api_key]
        request = None if api is None else request_view(api, version)
        exchange = Exchange(number, self.client, api=api, request=request)
        exchange.throttled_until = throttled_until
        self.in_flight.add(exchange)
        return self

    def receive(self, data, now=START):
        self.responses.receive(data, now)
        return b"".join(self.in_flight.take())


def test_an_answer_goes_on_and_is_counted():
    side = Side().ask(1).ask(2, 0)
    assert side.receive(answered(1) + produced(2)) == answered(1) + produced(2)
    size = len(answered(1) + produced(2))
    assert (side.traffic.total.bytes_out, side.client.traffic.bytes_out) == (size, size)
    assert side.in_flight.empty


def test_a_wait_is_announced():
    side = Side().ask(1, 0, throttled_until=START + 2.0)
    assert side.receive(produced(1), START + 0.5) == produced(1, throttle_ms=1500)


def test_a_wait_that_the_version_cannot_announce_holds_the_answer():
    side = Side().ask(1, 0, 0, START + 2.0)
    assert side.receive(produced(1, version=0)) == b""
    assert side.in_flight.delayed_until == START + 2.0


def test_a_response_is_charged_and_mutes():
    side = Side({EVERYONE: {"consumer_byte_rate": 1000.0}}).ask(1, 1, 11)
    assert side.receive(fetched(1, size=3000)) == fetched(1, size=3000, throttle_ms=2000)
    assert side.in_flight.muted_until == START + 2.0


def test_a_large_answer_is_half_through_until_its_end():
    side = Side().ask(1, 1, 11)
    large = fetched(1, size=2 << 20)
    assert side.receive(large[: HOLD_BYTES - 1]) == b""
    assert side.receive(large[HOLD_BYTES - 1 : 9000]) == large[:9000]
    assert side.in_flight._in_response
    assert side.receive(large[9000:]) == large[9000:]
    assert not side.in_flight._in_response


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"\x80\0\0\0", FrameTooLarge),
        (framed(b"\0\0"), Short),
        (answered(2), Malformed),
        (answered(1, b""), Short),
    ],
)
def test_what_cannot_be_read(data, error):
    with pytest.raises(error):
        Side().ask(1, 0).receive(data)


@pytest.mark.parametrize("size", [10, 2 << 20])
def test_an_answer_to_what_the_proxy_asked_is_not_for_the_client(size):
    side = Side()
    mine = Exchange(5, side.client, local=True)
    side.in_flight.add(mine)
    side.in_flight.ask(mine)
    answer = answered(5, bytes(size))
    assert side.receive(answer[:8]) == b""
    assert side.responses.take_collected() == []
    assert side.receive(answer[8:5000]) == b""
    assert side.receive(answer[5000:]) == b""
    assert side.responses.take_collected() == [answer[4:]]
    assert side.responses.take_collected() == []
    assert side.client.traffic.bytes_out == 0
