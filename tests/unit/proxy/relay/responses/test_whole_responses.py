"""WholeResponses: what is charged, counted and sent; tests/relay has the stories of a connection."""

import pytest

from proxy.quota.identity import Identity, QuotaEntity
from proxy.relay.close_reasons import BROKER_CLOSED, RelayError
from proxy.relay.counters.broker_errors import BrokerErrors
from proxy.relay.counters.traffic import Traffic
from proxy.relay.exchange import Exchange, new_client
from proxy.relay.inflight import InFlight
from proxy.relay.output import RelayOutput
from proxy.relay.responses.charges import ResponseCharges
from proxy.relay.responses.whole_responses import WholeResponses
from proxy.relay.service_clock import ServiceClock
from proxy.wire.addresses import Addresses, UnknownBrokers
from proxy.wire.api_keys import FETCH, METADATA, PRODUCE
from proxy.wire.frames import Frame
from proxy.wire.spare_items import SpareItems, SpareTable
from proxy.wire.topic_names import TopicNames
from tests.support.messages.exchanges import fetched, produced
from tests.support.messages.kio_messages import Ports, response_frame
from tests.support.messages.large_responses import metadata
from tests.support.messages.reading import api_of, request_view, start_response
from tests.support.present import present
from tests.support.quotas.buckets import live_buckets
from tests.support.stories.playbook import EVERYONE, START, engine


class Side:
    """A response that has arrived, to a request in flight."""

    def __init__(
        self,
        api_key: int,
        version: int,
        quotas: dict[QuotaEntity, dict[str, float]] | None = None,
        addresses: Addresses | None = None,
    ) -> None:
        self.limits = engine(quotas or {})
        self.traffic = Traffic()
        self.output = RelayOutput()
        self.in_flight = InFlight(self.limits, self.traffic, self.output)
        self.errors = BrokerErrors(self.traffic, 0)
        names = TopicNames()
        charges = ResponseCharges(self.limits, self.in_flight, names, ServiceClock())
        self.whole = WholeResponses(
            traffic=self.traffic,
            in_flight=self.in_flight,
            charges=charges,
            addresses=addresses or Ports(),
            errors=self.errors,
            spare_items=SpareItems(SpareTable()),
        )
        client = new_client(Identity("u", "c", "127.0.0.1"), b"c", self.traffic, 0)
        api = api_of(api_key)
        self.exchange = Exchange(1, client, api_key=api_key, api=api, request=request_view(api, version))
        self.in_flight.add(self.exchange)
        self.in_flight.take_response(1)

    def read(self, frame: bytes) -> int:
        """Return how many partitions were read; `output` has what the client gets."""
        self.output.clear()
        request = present(self.exchange.request)
        api = present(self.exchange.api)
        reader, view = start_response(api, request.api_version, [frame], True)
        return self.whole.read(
            Frame([frame], len(frame), True),
            reader,
            self.exchange,
            api=api,
            request=request,
            view=view,
            now=START,
        )

    def read_silent(self, frame: bytes) -> None:
        self.output.clear()
        self.traffic.total.bytes_out += len(frame)
        request = present(self.exchange.request)
        reader, _ = start_response(present(self.exchange.api), request.api_version, [frame], True)
        self.whole.read_silent(Frame([frame], len(frame), True), reader, self.exchange, START)

    @property
    def to_client(self) -> bytes:
        return b"".join(self.output.to_client)


def test_a_response_is_charged_and_sent() -> None:
    side = Side(FETCH, 11, {EVERYONE: {"consumer_byte_rate": 1000.0}})
    response = fetched(1, size=400)
    assert side.read(response) == 1
    assert side.to_client == response
    assert [bucket.used for bucket in live_buckets(side.limits)] == [400.0]


def test_a_response_with_unknown_brokers_is_neither_charged_nor_sent() -> None:
    side = Side(METADATA, 12, {EVERYONE: {"request_percentage": 1.0}}, Addresses())
    with pytest.raises(UnknownBrokers):
        side.read(response_frame(metadata(1)))
    assert side.to_client == b""
    assert all(bucket.used == 0.0 for bucket in live_buckets(side.limits))


def test_the_response_to_a_request_without_acks_goes_to_nobody() -> None:
    side = Side(PRODUCE, 7)
    side.read_silent(produced(1))
    assert (side.to_client, side.traffic.total.bytes_out) == (b"", 0)


def test_records_without_acks_that_are_not_appended_end_the_connection() -> None:
    response = produced(1)
    error = response.index((17).to_bytes(8, "big")) - 2
    with pytest.raises(RelayError) as caught:
        Side(PRODUCE, 7).read_silent(response[:error] + b"\0\x1d" + response[error + 2 :])
    assert caught.value.reason == BROKER_CLOSED
