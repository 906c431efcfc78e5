"""ResponseCharges: what the quotas learn of a response, and where the wait is announced."""

import pytest

from proxy.quota.fetch.grant import FetchGrant
from proxy.quota.identity import Identity, QuotaEntity
from proxy.quota.limits.config_keys import CONSUMER_BYTE_RATE
from proxy.quota.limits.resources import NO_RESOURCES, Resources
from proxy.relay.counters.traffic import Traffic
from proxy.relay.exchange import Exchange, new_client
from proxy.relay.inflight import InFlight
from proxy.relay.output import RelayOutput
from proxy.relay.responses.charges import ResponseCharges
from proxy.relay.service_clock import ServiceClock
from proxy.wire.api_keys import FETCH
from proxy.wire.cursor import NO_ID
from proxy.wire.edit import i32
from proxy.wire.topic_names import TopicNames
from proxy.wire.views import Item, RequestView, ResponseView
from tests.support.stories.playbook import EVERYONE, START, engine

LIMIT = {EVERYONE: {"consumer_byte_rate": 1000.0}}
OF_A_TOPIC = Resources({"t": {CONSUMER_BYTE_RATE.name: "1000"}})
BODY = 2996
"""With the four bytes of the length, 2 s beyond a burst of 1 s."""


class Side:
    def __init__(
        self, quotas: dict[QuotaEntity, dict[str, float]] = LIMIT, resources: Resources = NO_RESOURCES
    ) -> None:
        traffic = Traffic()
        quota_engine = engine(quotas, resources=resources)
        self.in_flight = InFlight(quota_engine, traffic, RelayOutput())
        self.charges = ResponseCharges(quota_engine, self.in_flight, TopicNames(), ServiceClock())
        self.exchange = Exchange(1, new_client(Identity("u", "c", "127.0.0.1"), b"c", traffic, 0))
        self.request = RequestView(FETCH, 11, 1, "c", 100, flexible=False)
        self.view = ResponseView(11, False, BODY)

    def settle(self, throttle_at: int = 10) -> None:
        self.view.throttle_at = throttle_at
        self.charges.settle(self.exchange, self.request, self.view, START)


def test_a_wait_is_announced_in_the_response() -> None:
    side = Side()
    side.settle()
    [edit] = side.view.edits
    assert (edit.start, edit.end, edit.new) == (10, 14, i32(2000))
    assert side.view.cursor.marked_edits == 1
    assert side.in_flight.muted_until == pytest.approx(START + 2.0)
    assert side.in_flight.delayed_until == 0.0


@pytest.mark.parametrize("withheld", [False, True])
def test_only_the_response_to_a_granted_fetch_settles_its_grant(withheld: bool) -> None:
    """The grant of a fetch that was forwarded without one may be that of a later fetch by then."""
    side = Side()
    side.exchange.grant = FetchGrant()
    side.exchange.withheld = withheld
    side.exchange.grant.ask(START)
    side.settle()
    assert side.exchange.grant.granted == withheld


def test_a_broker_that_announces_a_longer_wait_is_left_alone() -> None:
    side = Side()
    side.view.throttle_time_ms = 2001
    side.settle()
    assert not side.view.edited


def test_a_version_without_the_field_is_delayed() -> None:
    side = Side()
    side.settle(throttle_at=-1)
    assert not side.view.edited
    assert side.in_flight.delayed_until == pytest.approx(START + 2.0)


def test_without_a_limit_nothing_is_announced() -> None:
    side = Side({})
    side.settle()
    assert (side.view.edited, side.in_flight.muted_until) == (False, 0.0)


# when the request had been sent, when the last response had come, seconds of service
SERVICE = [(0.0, START - 3.0, 0.0), (START - 2.0, START - 3.0, 2.0), (START - 2.0, START - 0.5, 0.5)]


@pytest.mark.parametrize(("sent_at", "responded_at", "seconds"), SERVICE)
def test_a_broker_works_on_one_request_of_a_connection_at_a_time(
    sent_at: float, responded_at: float, seconds: float
) -> None:
    side = Side()
    side.exchange.sent_at = sent_at
    side.charges.responded_at = responded_at
    side.charges.charge(side.exchange, side.request, side.view, START)
    assert side.view.service_seconds == seconds
    assert side.view.began == (max(sent_at, responded_at) if sent_at else 0.0)


def test_a_wait_within_that_of_the_request_does_not_mute_again() -> None:
    side = Side()
    side.exchange.throttled_until = START + 5.0
    assert side.charges.charge(side.exchange, side.request, side.view, START) == START + 5.0
    assert side.in_flight.muted_until == 0.0


def test_later_items_mute_and_announce_nothing() -> None:
    side = Side({}, OF_A_TOPIC)
    side.view.items = [Item("t", NO_ID, 0, 3000)]
    side.charges.charge_items(side.exchange, side.request, side.view, START)
    assert side.in_flight.muted_until == pytest.approx(START + 2.0)
    assert not side.view.edited
