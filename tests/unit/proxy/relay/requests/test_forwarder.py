"""RequestForwarder: what the broker gets, and when it has been sent."""

from proxy.quota.identity import Identity
from proxy.quota.usage import UsageLedger
from proxy.relay.counters.traffic import Traffic
from proxy.relay.exchange import Exchange, new_client
from proxy.relay.output import RelayOutput
from proxy.relay.requests.forwarder import RequestForwarder
from proxy.relay.service_clock import ServiceClock
from proxy.wire.api_keys import PRODUCE
from proxy.wire.cursor import NO_ID
from proxy.wire.edit import LENGTH_SIZE, Edit
from proxy.wire.frames import Frame
from proxy.wire.views import Item, RequestView
from tests.support.messages.kio_messages import framed
from tests.support.stories.playbook import START

FRAME = framed(b"0123456789")


class Side:
    def __init__(self) -> None:
        self.traffic = Traffic(topic_partitions=True, usage=UsageLedger())
        self.output = RelayOutput()
        self.forwarder = RequestForwarder(self.output, self.traffic, ServiceClock())
        client = new_client(Identity("u", "c", "127.0.0.1"), b"c", self.traffic, 0)
        self.exchange = Exchange(1, client, api_key=PRODUCE)
        self.view = RequestView(PRODUCE, 9, 1, "c", 100, flexible=True, want_items=True)

    @property
    def sent(self) -> bytes:
        return b"".join(self.output.to_broker)

    @property
    def counted(self) -> dict[str, int]:
        return {key[0]: count.bytes_in for key, count in self.traffic.partitions.items()}


def test_a_request_that_is_not_read_leaves_as_it_is() -> None:
    side = Side()
    side.forwarder.forward(Frame([FRAME], len(FRAME), True), side.exchange, None, START)
    assert (side.sent, side.exchange.sent_at) == (FRAME, START)


def test_edits_are_made_and_change_the_length() -> None:
    side = Side()
    side.view.edits.append(Edit(LENGTH_SIZE, LENGTH_SIZE + 1, b"abc"))
    side.forwarder.forward(Frame([FRAME], len(FRAME), True), side.exchange, side.view, START)
    assert side.sent == framed(b"abc123456789")


def test_records_count_when_their_response_comes_or_the_connection_ends() -> None:
    side = Side()
    side.view.items = [Item("t", NO_ID, 0, 7)]
    exchange = Exchange(1, side.exchange.client, api_key=PRODUCE, request=side.view)
    side.forwarder.forward(Frame([FRAME], len(FRAME), True), exchange, side.view, START)
    before = side.counted
    side.forwarder.end(exchange)
    assert (before, side.counted) == ({}, {"t": 7})
