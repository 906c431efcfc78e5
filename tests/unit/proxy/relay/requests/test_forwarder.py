"""forward_request: what the broker gets, and which records count."""

from proxy.quota.identity import Identity
from proxy.quota.usage import UsageLedger
from proxy.relay.counters.traffic import Traffic
from proxy.relay.exchange import Exchange, new_client
from proxy.relay.output import RelayOutput
from proxy.relay.produced_records import abandon_records
from proxy.relay.requests.forwarder import forward_request
from proxy.wire.api_keys import PRODUCE
from proxy.wire.cursor import NO_ID
from proxy.wire.edit import LENGTH_SIZE, Edit
from proxy.wire.frames import Frame
from proxy.wire.views import Item, RequestView
from tests.support.messages.kio_messages import framed

FRAME = framed(b"0123456789")


class Side:
    def __init__(self) -> None:
        self.traffic = Traffic(topic_partitions=True, usage=UsageLedger())
        self.output = RelayOutput()
        client = new_client(Identity("u", "c", "127.0.0.1"), b"c", self.traffic, 0)
        self.exchange = Exchange(1, client, api_key=PRODUCE)
        self.view = RequestView(PRODUCE, 9, 1, "c", 100, flexible=True, want_items=True)

    def forward(self, exchange: Exchange, view: RequestView | None) -> None:
        forward_request(self.output, self.traffic, Frame([FRAME], len(FRAME), True), exchange, view)

    @property
    def sent(self) -> bytes:
        return b"".join(self.output.to_broker)

    @property
    def counted(self) -> dict[str, int]:
        return {key[0]: count.bytes_in for key, count in self.traffic.partitions.items()}


def test_a_request_that_is_not_read_leaves_as_it_is() -> None:
    side = Side()
    side.forward(side.exchange, None)
    assert side.sent == FRAME


def test_edits_are_made_and_change_the_length() -> None:
    side = Side()
    side.view.edits.append(Edit(LENGTH_SIZE, LENGTH_SIZE + 1, b"abc"))
    side.forward(side.exchange, side.view)
    assert side.sent == framed(b"abc123456789")


def test_records_count_when_their_response_comes_or_the_connection_ends() -> None:
    side = Side()
    side.view.items = [Item("t", NO_ID, 0, 7)]
    exchange = Exchange(1, side.exchange.client, api_key=PRODUCE, request=side.view)
    side.forward(exchange, side.view)
    before = side.counted
    abandon_records(side.traffic, exchange)
    assert (before, side.counted) == ({}, {"t": 7})
