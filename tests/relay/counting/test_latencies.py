"""Times of requests: how long brokers take, and how long quotas make clients wait."""

import pytest

from proxy.relay.counters.latencies import Latencies
from proxy.relay.counters.traffic import Traffic
from proxy.wire.api_keys import FETCH, PRODUCE
from tests.support.messages.exchanges import fetch, fetched, opaque, produce, produced, responded
from tests.support.stories.playbook import EVERYONE, Playbook, Quotas, new_relay

IN = {EVERYONE: {"producer_byte_rate": 1000.0}}
OUT = {EVERYONE: {"consumer_byte_rate": 1000.0}}


def times(latencies: Latencies) -> dict[int, tuple[int, object]]:
    """How often, and for how many seconds in all, by API key."""
    return {
        key: (histogram.cumulative[-1], pytest.approx(histogram.total_seconds))
        for key, histogram in latencies.used()
    }


def story_of(traffic: Traffic, quotas: Quotas | None = None) -> Playbook:
    return Playbook(new_relay(quotas, traffic))


def test_the_broker_s_time_begins_when_it_has_responded_to_the_last_request() -> None:
    traffic = Traffic()
    story = story_of(traffic).client(produce(1) + produce(2) + opaque(3))
    story.at(0.5).broker(produced(1)).at(0.75).broker(produced(2)).at(2).broker(responded(3))
    assert times(traffic.broker_times) == {PRODUCE: (2, 0.75), 42: (1, 1.25)}


def test_the_broker_s_time_ends_with_the_head_of_a_large_response() -> None:
    traffic = Traffic()
    response = fetched(1, 3 << 20)
    story = story_of(traffic).client(fetch(1))
    story.at(0.5).broker(response[: 1 << 20]).at(9).broker(response[1 << 20 :])
    assert times(traffic.broker_times) == {FETCH: (1, 0.5)}


def test_a_throttled_producer() -> None:
    traffic = Traffic()
    story = story_of(traffic, IN).client(produce(1, size=3500))
    assert times(traffic.throttle_times) == {}
    story.at(1).broker(produced(1))
    assert times(traffic.throttle_times) == {PRODUCE: (1, 2.5)}
    story.at(3).client(produce(2, size=100)).broker(produced(2))
    assert times(traffic.throttle_times) == {PRODUCE: (1, 2.5)}


def test_a_throttled_producer_without_responses() -> None:
    traffic = Traffic()
    story_of(traffic, IN).client(produce(1, size=3500, acks=0))
    assert times(traffic.throttle_times) == {PRODUCE: (1, 2.5)}


def test_a_throttled_consumer() -> None:
    traffic = Traffic()
    story = story_of(traffic, OUT).client(fetch(1, max_bytes=100)).broker(fetched(1, 3500))
    assert times(traffic.throttle_times) == {FETCH: (1, 2.5)}
    story.at(2.5).client(fetch(2, max_bytes=100))
    assert times(traffic.throttle_times)[FETCH][0] == 1


def test_what_the_shell_measures_is_of_the_last_request_that_the_call_forwarded() -> None:
    traffic = Traffic()
    relay = new_relay(None, traffic).relay
    relay.receive_from_client(produce(1) + fetch(2), 1000.0)
    exchange = relay.forwarded_last(1000.0)
    assert exchange is not None
    assert not relay.is_next(exchange), "the first response due is another's"
    relay.receive_from_broker(produced(1), 1001.0)
    assert relay.is_next(exchange)
    relay.receive_from_broker(fetched(2), 1001.0)
    assert not relay.is_next(exchange)
    relay.note_proxy_seconds(exchange, 0.75)
    assert times(traffic.proxy_times) == {FETCH: (1, 0.75)}
    assert relay.forwarded_last(1000.0) is None, "no request is in flight"


def test_a_request_that_waits_for_its_quotas_is_not_measured() -> None:
    traffic = Traffic()
    relay = new_relay(IN, traffic).relay
    relay.receive_from_client(produce(1, size=3500), 1000.0)
    relay.receive_from_client(produce(2), 1001.0)
    assert relay.forwarded_last(1001.0) is None
