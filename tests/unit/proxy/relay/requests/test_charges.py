"""RequestCharges: how long a request mutes its client."""

import pytest

from proxy.quota.identity import Identity, QuotaEntity
from proxy.quota.limits.config_keys import PRODUCER_BYTE_RATE
from proxy.quota.limits.resources import NO_RESOURCES, Resources
from proxy.relay.counters.traffic import Traffic
from proxy.relay.exchange import Exchange, new_client
from proxy.relay.inflight import InFlight
from proxy.relay.output import RelayOutput
from proxy.relay.requests.charges import RequestCharges
from proxy.wire.api_keys import PRODUCE
from proxy.wire.cursor import NO_ID
from proxy.wire.topic_names import TopicNames
from proxy.wire.views import Item, RequestView
from tests.support.stories.playbook import EVERYONE, START, engine

LIMIT = {EVERYONE: {"producer_byte_rate": 1000.0}}
OF_A_TOPIC = Resources({"t": {PRODUCER_BYTE_RATE.name: "1000"}})
TOPIC_ID = b"t" * 16
SIZE = 3000
"""Two seconds beyond a burst of one second."""


class Names(TopicNames):
    def look_up(self, topic_id: bytes) -> str:
        return "t" if topic_id == TOPIC_ID else ""


class Side:
    def __init__(
        self, quotas: dict[QuotaEntity, dict[str, float]] = LIMIT, resources: Resources = NO_RESOURCES
    ) -> None:
        traffic = Traffic()
        quota_engine = engine(quotas, resources=resources)
        self.in_flight = InFlight(quota_engine, traffic, RelayOutput())
        self.charges = RequestCharges(quota_engine, self.in_flight, Names())
        self.exchange = Exchange(1, new_client(Identity("u", "c", "127.0.0.1"), b"c", traffic, 0))
        self.view = RequestView(PRODUCE, 13, 1, "c", SIZE, flexible=True, want_items=True)

    @property
    def waits(self) -> list[object]:
        """Until when the request mutes its client, and the connection is muted: seconds from now."""
        return [
            until and pytest.approx(until - START)
            for until in (self.exchange.throttled_until, self.in_flight.muted_until)
        ]


def test_a_request_over_the_quota_mutes_its_client() -> None:
    side = Side()
    assert side.charges.admit(side.exchange, side.view, START).throttle_seconds == pytest.approx(2.0)
    assert side.waits == [2.0, 2.0]


def test_a_request_within_the_quota_does_not() -> None:
    side = Side({})
    side.charges.admit(side.exchange, side.view, START)
    assert side.waits == [0.0, 0.0]


def test_a_longer_wait_of_the_request_stays() -> None:
    side = Side()
    side.exchange.throttled_until = START + 5.0
    side.charges.admit(side.exchange, side.view, START)
    assert side.waits == [5.0, 2.0]


def test_topics_get_their_names_before_they_are_charged() -> None:
    side = Side({}, OF_A_TOPIC)
    side.view.items = [Item("", TOPIC_ID, 0, SIZE)]
    side.charges.admit(side.exchange, side.view, START)
    assert (side.view.items[0].topic, side.waits) == ("t", [2.0, 2.0])


def test_later_items_mute_the_client_further() -> None:
    side = Side({}, OF_A_TOPIC)
    for seconds in (2.0, 5.0):
        side.view.items = [Item("t", NO_ID, 0, SIZE)]
        side.charges.charge_items(side.exchange, side.view, START)
        assert side.waits == [seconds, seconds]
