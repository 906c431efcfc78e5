"""ProduceGate: what it removes from a request, and for how long it mutes the client.

tests/relay/produce/test_rejecting.py has the stories of a whole connection.
"""

import pytest

from proxy.quota.identity import ANONYMOUS, Identity
from proxy.quota.limits.config_keys import PRODUCER_BYTE_RATE, PRODUCER_BYTE_RATE_ACTION, REJECT
from proxy.quota.limits.resources import Resources
from proxy.relay.close_reasons import PRODUCE_REJECTED
from proxy.relay.counters.traffic import Traffic
from proxy.relay.exchange import Exchange, new_client
from proxy.relay.inflight import InFlight
from proxy.relay.output import RelayOutput
from proxy.relay.requests.produce_gate import UNANSWERED_SECONDS, ProduceGate
from proxy.wire.api_keys import PRODUCE
from proxy.wire.edit import LENGTH_SIZE
from proxy.wire.frames import Frame
from proxy.wire.protected_topics import ProtectedTopics
from proxy.wire.topic_names import TopicNames
from proxy.wire.views import UNKNOWN, RequestView
from tests.support.messages.produce import produce_request
from tests.support.messages.reading import read_request
from tests.support.present import present
from tests.support.stories.playbook import START, engine

VERSION = 9
HOT, COLD = "hot", "cold"
LIMIT = {PRODUCER_BYTE_RATE.name: "1000", PRODUCER_BYTE_RATE_ACTION.name: REJECT}
OWN = "_quotas"
PROTECTED = ProtectedTopics(frozenset([OWN]))
HEADER = 2 + 2 + 4 + (2 + len(b"client")) + 1
"""The bytes of a request's header, up to its tagged fields."""


class Side:
    def __init__(self) -> None:
        self.engine = engine({}, resources=Resources({HOT: LIMIT}))
        self.traffic = Traffic()
        self.output = RelayOutput()
        self.in_flight = InFlight(self.engine, self.traffic, self.output)
        self.gate = ProduceGate(self.engine, self.in_flight, TopicNames(), PROTECTED)
        self.client = new_client(Identity(ANONYMOUS, "c", "127.0.0.1"), b"c", self.traffic, 0)

    def reject(
        self, sizes: dict[str, list[int]], acks: int = -1, protected: bool = False
    ) -> tuple[bool, RequestView]:
        """Offer a request; whether nothing is left of it, and its view."""
        frame = produce_request(1, sizes, {}, version=VERSION, acks=acks)
        view = read_request([frame])
        view.names_protected = protected
        self.exchange = Exchange(1, self.client, api_key=PRODUCE, request=view)
        body_at = LENGTH_SIZE + HEADER
        gone = self.gate.reject(Frame([frame], len(frame), True), self.exchange, view, body_at, START)
        if not gone:
            self.engine.admit(view, self.client, START)
        return gone, view


def test_a_request_within_the_limits_stays_as_it_is() -> None:
    side = Side()
    gone, view = side.reject({HOT: [500], COLD: [5000]})
    assert (gone, view.edits, side.exchange.rejection) == (False, [], None)


def test_partitions_over_their_limit_are_cut_out() -> None:
    side = Side()
    side.reject({HOT: [1500]})
    gone, view = side.reject({HOT: [300], COLD: [100]})
    assert not gone
    assert [item.topic for item in view.items] == [COLD]
    assert view.items_size == UNKNOWN, "the quotas add up what is left"
    assert view.edits
    assert [item.topic for item in present(side.exchange.rejection).items] == [HOT]


def test_a_request_without_a_partition_left_is_answered_and_mutes_when_all_is_read() -> None:
    side = Side()
    side.reject({HOT: [1500]})
    gone, _ = side.reject({HOT: [4500]})
    assert gone
    assert len(side.output.to_client) == 1
    assert not side.gate.mutes
    side.gate.all_read(False, START)
    assert side.gate.mutes
    assert side.in_flight.muted_until > START


def test_a_request_to_a_topic_of_the_proxy_is_answered_and_has_no_records_to_charge() -> None:
    side = Side()
    gone, view = side.reject({OWN: [300]}, protected=True)
    assert gone
    assert (view.items, view.items_size) == ([], UNKNOWN)


def test_a_producer_without_responses_loses_its_connection() -> None:
    side = Side()
    side.reject({HOT: [1500]})
    assert side.gate.closing == ""
    gone, _ = side.reject({HOT: [300]}, acks=0)
    assert (gone, side.output.to_client) == (True, [])
    assert side.gate.closing != ""
    assert side.gate.closing_reason == PRODUCE_REJECTED
    side.gate.delay_close(START)
    assert side.in_flight.muted_until == pytest.approx(START + UNANSWERED_SECONDS)
