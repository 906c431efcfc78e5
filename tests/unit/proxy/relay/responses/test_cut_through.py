"""ResponseCutThrough: what the client gets of a response that is forwarded while it arrives, and when."""

import pytest

from proxy.quota.identity import Identity, QuotaEntity
from proxy.relay.counters.broker_errors import BrokerErrors
from proxy.relay.counters.traffic import Traffic
from proxy.relay.cut_through import CutThrough
from proxy.relay.exchange import Exchange, new_client
from proxy.relay.inflight import InFlight
from proxy.relay.output import RelayOutput
from proxy.relay.responses.charges import ResponseCharges
from proxy.relay.responses.cut_through import ResponseCutThrough
from proxy.relay.service_clock import ServiceClock
from proxy.wire.api_keys import FETCH
from proxy.wire.edit import LENGTH_SIZE
from proxy.wire.errors import Short
from proxy.wire.frames import Frame
from proxy.wire.reader import Reader
from proxy.wire.topic_names import TopicNames
from proxy.wire.views import ResponseView
from tests.support.messages.exchanges import fetched
from tests.support.messages.kio_messages import Ports
from tests.support.messages.reading import api_of, request_view
from tests.support.stories.playbook import EVERYONE, START, engine

VERSION = 11
RESPONSE = fetched(1, size=4000)
HEADER_SIZE = LENGTH_SIZE + 4


class Side:
    def __init__(self, quotas: dict[QuotaEntity, dict[str, float]] | None = None, size: None = None) -> None:
        """A Fetch response, of which nothing has arrived; `size` is what its length announces."""
        limits = engine(quotas or {})
        self.traffic = Traffic()
        self.output = RelayOutput()
        self.in_flight = InFlight(limits, self.traffic, self.output)
        names = TopicNames()
        charges = ResponseCharges(limits, self.in_flight, names, ServiceClock())
        self.large = ResponseCutThrough(
            traffic=self.traffic,
            in_flight=self.in_flight,
            charges=charges,
            addresses=Ports(),
            errors=BrokerErrors(self.traffic, 0),
        )
        self.client = new_client(Identity("u", "c", "127.0.0.1"), b"c", self.traffic, 0)
        api = api_of(FETCH)
        self.exchange = Exchange(1, self.client, api_key=FETCH, api=api, request=request_view(api, VERSION))
        self.in_flight.add(self.exchange)
        self.in_flight.take_response(1)
        self.size = len(RESPONSE) if size is None else size

    def begin(self, first: bytes, *, reads: bool = True) -> tuple[bool, bytes]:
        self.frame = Frame([first], self.size, False)
        view = ResponseView(VERSION, False, self.size - HEADER_SIZE, True) if reads else None
        if view is not None:
            view.partial = True
        self.large.begin(CutThrough(self.frame, self.exchange, Reader([first], HEADER_SIZE), view))
        return self.read()

    def add(self, part: bytes, *, last: bool = False) -> tuple[bool, bytes]:
        self.frame.complete = last
        self.large.add([part])
        return self.read()

    def read(self) -> tuple[bool, bytes]:
        """Whether that was all, and what the client gets."""
        self.output.clear()
        over = self.large.read(START)
        return over, b"".join(self.output.to_client)


def test_a_response_that_is_not_read_is_forwarded_as_it_arrives() -> None:
    side = Side()
    assert side.begin(RESPONSE[:100], reads=False) == (False, RESPONSE[:100])
    assert side.large.active
    assert side.large.forwardable > len(RESPONSE)
    assert side.add(RESPONSE[100:200]) == (False, RESPONSE[100:200])
    assert side.add(RESPONSE[200:], last=True) == (True, RESPONSE[200:])
    assert (side.large.active, side.large.forwardable, side.in_flight.empty) == (False, 0, True)


def test_its_size_is_charged_with_its_start_and_announced_in_it() -> None:
    side = Side({EVERYONE: {"consumer_byte_rate": 1000.0}})
    over, start = side.begin(RESPONSE[:1000])
    announced = int.from_bytes(start[HEADER_SIZE : HEADER_SIZE + 4], "big")
    assert not over
    assert announced == pytest.approx(1000 * (len(RESPONSE) - 1000) / 1000, abs=10)
    over, rest = side.add(RESPONSE[1000:], last=True)
    assert over
    assert (start + rest)[HEADER_SIZE + 4 :] == RESPONSE[HEADER_SIZE + 4 :]


def test_a_response_that_ends_before_its_fields_do_is_a_fault_of_the_broker() -> None:
    side = Side()
    side.begin(RESPONSE[:30])
    with pytest.raises(Short):
        side.add(b"", last=True)


def test_the_end_of_the_connection_ends_it() -> None:
    side = Side()
    side.begin(RESPONSE[:1000])
    side.large.end()
    side.large.end()
    assert side.large.active
