"""Responses: errors, and parts of a large response. tests/relay has the stories of a connection."""

from typing import Self

import pytest

from proxy.relay.counters.broker_errors import BrokerErrors
from proxy.relay.counters.traffic import Traffic
from proxy.relay.exchange import Client, Exchange
from proxy.relay.inflight import InFlight
from proxy.relay.output import RelayOutput
from proxy.relay.responses.responses import FIRST_PART_BYTES, Responses
from proxy.relay.settings import RelaySettings
from proxy.wire.apis.registry import WITHOUT_INTERCEPTED
from proxy.wire.errors import FrameTooLarge, Malformed, Short
from proxy.wire.spare_items import SpareItems, SpareTable
from tests.support.messages.exchanges import fetched, responded
from tests.support.messages.kio_messages import Ports, framed
from tests.support.messages.reading import request_view
from tests.support.stories.playbook import START, engine


class Side:
    def __init__(self) -> None:
        self.traffic = Traffic()
        self.output = RelayOutput()
        self.in_flight = InFlight(engine({}), self.traffic, self.output)
        self.responses = Responses(
            engine({}),
            self.traffic,
            self.in_flight,
            self.output,
            addresses=Ports(),
            settings=RelaySettings(max_frame_bytes=1 << 20),
            errors=BrokerErrors(self.traffic, 1),
            spare_items=SpareItems(SpareTable()),
        )
        self.client = Client("u", "c", "a", self.traffic.client("u", "c"), b"c")

    def ask(self, number: int, api_key: int | None = None, version: int = 7) -> Self:
        api = None if api_key is None else WITHOUT_INTERCEPTED.read[api_key]
        request = None if api is None else request_view(api, version)
        self.in_flight.add(Exchange(number, self.client, api=api, request=request))
        return self

    def receive(self, data: bytes) -> bytes:
        self.output.clear()
        self.responses.receive(data, START)
        return b"".join(self.output.to_client)


def test_a_large_response_leaves_once_its_first_part_is_there() -> None:
    side = Side().ask(1, 1, 11)
    large = fetched(1, size=2 << 20)
    assert side.receive(large[: FIRST_PART_BYTES - 1]) == b""
    assert side.receive(large[FIRST_PART_BYTES - 1 : 9000]) == large[:9000]
    assert not side.in_flight.empty
    assert side.receive(large[9000:]) == large[9000:]
    assert side.in_flight.empty


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"\x80\0\0\0", FrameTooLarge),
        (framed(b"\0\0"), Short),
        (responded(2), Malformed),
        (responded(1, b""), Short),
    ],
)
def test_what_cannot_be_read(data: bytes, error: type[Malformed] | type[FrameTooLarge] | type[Short]) -> None:
    with pytest.raises(error):
        Side().ask(1, 0).receive(data)


@pytest.mark.parametrize("size", [10, 2 << 20])
def test_a_response_to_what_the_proxy_asked_is_not_for_the_client(size: int) -> None:
    side = Side()
    local = Exchange(5, side.client, local=True)
    side.in_flight.add(local)
    side.in_flight.ask(local)
    response = responded(5, bytes(size))
    half = len(response) // 2
    assert side.receive(response[:half]) == b""
    assert side.output.broker_responses == []
    assert side.receive(response[half:]) == b""
    assert side.output.broker_responses == [response[4:]]
    assert side.client.traffic.bytes_out == 0
