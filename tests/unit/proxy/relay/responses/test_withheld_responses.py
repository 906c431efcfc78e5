"""WithheldResponses: which Fetch responses are withheld, and what the client gets instead."""

import pytest

from proxy.quota.fetch.grant import FetchGrant
from proxy.quota.identity import Identity
from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.rate_rule import RateRule
from proxy.relay.counters.traffic import Traffic
from proxy.relay.exchange import Exchange, new_client
from proxy.relay.inflight import InFlight
from proxy.relay.output import RelayOutput
from proxy.relay.responses.charges import ResponseCharges
from proxy.relay.responses.withheld_responses import SMALL_BYTES, WithheldResponses
from proxy.relay.service_clock import ServiceClock
from proxy.wire.api_keys import FETCH, PRODUCE
from proxy.wire.fetch.rewrite import fetch_response
from proxy.wire.frames import Frame
from proxy.wire.views import WITHHELD, Item, RequestView, ResponseView
from tests.support.messages.exchanges import fetch_response as fetched_message
from tests.support.messages.exchanges import fetched
from tests.support.messages.kio_messages import response_frame
from tests.support.present import present
from tests.support.stories.fetching import HOT, Names, topic_id
from tests.support.stories.playbook import START, engine

VERSION = 11
SESSION = 7
THROTTLE_AT = 8
"""The offset of throttle_time_ms: behind the length and the correlation id."""
OWED = 4000
"""Bytes charged at 1000 B/s with a burst of 1 s: three seconds of debt, of which one is tolerated."""


class Side:
    def __init__(
        self, owed: int = OWED, error_code: int = 0, body_size: int = 9000, api_key: int = FETCH
    ) -> None:
        quotas = engine({})
        self.traffic = Traffic()
        self.output = RelayOutput()
        self.in_flight = InFlight(quotas, self.traffic, self.output)
        charges = ResponseCharges(quotas, self.in_flight, Names(), ServiceClock())
        self.withheld = WithheldResponses(self.traffic, charges)
        bucket = Bucket(quota="q", limit=1000.0, rule=RateRule(burst_seconds=1.0), now=START)
        bucket.record(owed, START)
        self.client = new_client(Identity("u", "c", "127.0.0.1"), b"c", self.traffic, 0)
        self.exchange = Exchange(1, self.client, api_key=api_key)
        self.exchange.grant = FetchGrant()
        self.exchange.grant.places.add(bucket)
        self.in_flight.add(self.exchange)
        self.in_flight.take_response(1)
        self.request = RequestView(api_key, VERSION, 1, "c", 100, flexible=False)
        self.view = ResponseView(VERSION, False, body_size)
        self.view.throttle_at = THROTTLE_AT
        start = fetch_response(VERSION, 1, error_code=error_code, session_id=SESSION)
        self.frame = Frame([start], body_size + 8, False)

    def withhold(self) -> bool:
        self.client.traffic.bytes_out = self.frame.size
        return self.withheld.withhold(self.frame, self.exchange, self.request, self.view, START)

    def sent(self) -> bytes:
        return b"".join(self.output.to_client)


@pytest.mark.parametrize("full", [True, False])
def test_the_client_gets_an_empty_response_and_is_muted(full: bool) -> None:
    side = Side()
    side.exchange.full_fetch = full
    assert side.withhold()
    response = fetch_response(VERSION, 1, session_id=0 if full else SESSION, throttle_time_ms=3000)
    assert side.sent() == response
    assert side.in_flight.muted_until == pytest.approx(START + 3.0)
    assert side.view.body_size == WITHHELD
    assert side.client.traffic.bytes_out == len(response)


KEPT = [{"owed": 1000}, {"error_code": 71}, {"api_key": PRODUCE}]


@pytest.mark.parametrize("how", KEPT)
def test_what_is_not_withheld(how: dict[str, int]) -> None:
    side = Side(**how)
    assert not side.withhold()
    assert (side.sent(), side.in_flight.muted_until) == (b"", 0.0)
    assert side.client.traffic.bytes_out == side.frame.size


@pytest.mark.parametrize("by_the_gate", [False, True])
def test_a_response_that_the_fetch_gate_has_withheld(by_the_gate: bool) -> None:
    """The fetch was not granted. Its grant may be that of a later fetch by then, which is not settled."""
    side = Side(owed=0 if by_the_gate else OWED)
    side.exchange.withheld = by_the_gate
    present(side.exchange.grant).granted = True
    assert side.withhold()
    assert present(side.exchange.grant).granted == by_the_gate


@pytest.mark.parametrize("watched", [False, True])
def test_quotas_that_look_at_items_know_the_names_of_their_topics(watched: bool) -> None:
    side = Side(owed=1000)
    present(side.exchange.grant).watched = watched
    item = Item("", topic_id(HOT).bytes, 0, 100)
    side.view.items = [item]
    assert not side.withhold()
    assert item.topic == (HOT if watched else "")


def small(response: bytes) -> Side:
    """A side whose response is complete, and small enough to have only errors and watermarks."""
    body_size = len(response) - 8
    assert body_size <= SMALL_BYTES
    side = Side(body_size=body_size)
    side.frame = Frame([response], len(response), True)
    return side


def test_a_small_response_without_records_is_not_withheld() -> None:
    assert not small(response_frame(fetched_message(VERSION, b""), 1)).withhold()


@pytest.mark.parametrize("by_the_gate", [False, True])
def test_a_small_response_with_records_is_withheld(by_the_gate: bool) -> None:
    side = small(fetched(1, size=300))
    side.exchange.withheld = by_the_gate
    assert side.withhold()
    assert side.sent() == fetch_response(VERSION, 1, throttle_time_ms=3000)


def test_a_fetch_without_a_limit_is_not_withheld() -> None:
    side = Side()
    side.exchange.grant = None
    assert not side.withhold()
