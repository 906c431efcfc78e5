"""The proxy asks the broker on the client's own connection, for the sake of a request that it answers."""

import pytest

from proxy.quota.engine import QuotaEngine
from proxy.quota.measure.bucket import Bucket
from proxy.quota.measure.rate_rule import RateRule
from proxy.quota.verdict import Verdict
from proxy.relay.close_reasons import BROKER_PROTOCOL_ERROR, RelayError
from proxy.relay.counters.traffic import Traffic
from proxy.wire.addresses import Addresses
from proxy.wire.edit import i16, i32
from tests.support.stories.playbook import EVERYONE, RelayDriver, drive, engine

OWN: int = 49
OTHER: int = 36
WAIT = Verdict(3.0)


def request(api_key: int, correlation_id: int) -> bytes:
    body = i16(api_key) + i16(0) + i32(correlation_id) + i16(-1)
    return i32(len(body)) + body


def response(correlation_id: int, body: bytes = b"") -> bytes:
    return i32(4 + len(body)) + i32(correlation_id) + body


@pytest.fixture
def relay() -> RelayDriver:
    return drive(QuotaEngine([]), Addresses(), Traffic(), intercepted_api_keys=frozenset({OWN}))


def test_the_response_comes_to_the_proxy_and_not_to_the_client(relay: RelayDriver) -> None:
    relay.receive_from_client(request(OWN, 5), 1.0)
    [intercepted] = relay.take_intercepted()
    relay.ask_broker(intercepted.exchange, request(OWN, 5), 1.0)
    assert relay.take_to_broker() == [request(OWN, 5)]
    relay.receive_from_broker(response(5, b"says no"), 1.1)
    assert relay.take_broker_responses() == [i32(5) + b"says no"]
    assert relay.take_to_client() == []
    relay.answer(intercepted.exchange, response(5, b"no"), 1.2)
    assert relay.take_to_client() == [response(5, b"no")]
    assert relay.status.idle


def test_requests_before_and_after_keep_their_turns(relay: RelayDriver) -> None:
    relay.receive_from_client(request(OTHER, 1) + request(OWN, 2) + request(OTHER, 3), 1.0)
    assert b"".join(relay.take_to_broker()) == request(OTHER, 1)
    [intercepted] = relay.take_intercepted()
    relay.ask_broker(intercepted.exchange, request(OWN, 2), 1.0)
    relay.receive_from_broker(response(1) + response(2, b"x"), 1.1)
    assert b"".join(relay.take_to_client()) == response(1)
    assert relay.take_broker_responses() == [i32(2) + b"x"]
    relay.take_to_broker()
    relay.answer(intercepted.exchange, response(2), 1.2)
    assert b"".join(relay.take_to_client()) == response(2)
    assert b"".join(relay.take_to_broker()) == request(OTHER, 3)


def test_a_large_response_is_collected_whole(relay: RelayDriver) -> None:
    relay.receive_from_client(request(OWN, 5), 1.0)
    [intercepted] = relay.take_intercepted()
    relay.ask_broker(intercepted.exchange, request(OWN, 5), 1.0)
    large = response(5, b"y" * 3_000_000)
    for at in range(0, len(large), 100_000):
        assert relay.take_broker_responses() == []
        relay.receive_from_broker(large[at : at + 100_000], 1.1)
    assert relay.take_broker_responses() == [large[4:]]
    assert relay.take_to_client() == []


def test_a_response_that_was_not_asked_for_is_an_error(relay: RelayDriver) -> None:
    relay.receive_from_client(request(OWN, 5), 1.0)
    with pytest.raises(RelayError, match=r"correlation_id 5\b") as caught:
        relay.receive_from_broker(response(5), 1.1)
    assert caught.value.reason == BROKER_PROTOCOL_ERROR


def test_a_throttled_response_mutes_the_client(relay: RelayDriver) -> None:
    relay.receive_from_client(request(OWN, 5) + request(OTHER, 6), 1.0)
    [intercepted] = relay.take_intercepted()
    relay.answer(intercepted.exchange, response(5), 2.0, WAIT)
    assert relay.take_to_client() == [response(5)]
    assert relay.take_to_broker() == []
    assert relay.client_muted
    relay.handle_timer(relay.next_timer)
    assert relay.next_timer == 0.0
    assert b"".join(relay.take_to_broker()) == request(OTHER, 6)


def test_a_wait_becomes_shorter_when_this_process_s_part_of_the_limit_grows() -> None:
    """While other processes use the whole limit, a debt of 0.6 s of it takes a minute."""
    quotas = QuotaEngine([])
    quotas.review_every(0.5)
    relay = drive(quotas, Addresses(), Traffic(), intercepted_api_keys=frozenset({OWN}))
    bucket = Bucket(quota="q", limit=10.0, rule=RateRule(burst_seconds=1.0), now=1.0)
    bucket.share(0.01, 1.0)
    verdict = Verdict(bucket.record(6.1, 1.0), bucket)
    assert verdict.throttle_seconds == pytest.approx(60.0)
    relay.receive_from_client(request(OWN, 5) + request(OTHER, 6), 1.0)
    [intercepted] = relay.take_intercepted()
    relay.answer(intercepted.exchange, response(5), 1.0, verdict)
    relay.handle_timer(1.5)
    assert relay.client_muted
    assert relay.next_timer == 2.0
    bucket.share(1.0, 1.5)
    relay.handle_timer(2.0)
    relay.handle_timer(2.2)
    assert b"".join(relay.take_to_broker()) == request(OTHER, 6)


def test_a_client_that_cannot_be_told_gets_the_response_after_the_wait(relay: RelayDriver) -> None:
    relay.receive_from_client(request(OWN, 5), 1.0)
    [intercepted] = relay.take_intercepted()
    relay.answer(intercepted.exchange, response(5), 2.0, WAIT, 3.0)
    assert relay.take_to_client() == []
    relay.handle_timer(5.0)
    assert relay.take_to_client() == [response(5)]


def test_earlier_responses_do_not_wait_with_it(relay: RelayDriver) -> None:
    relay.receive_from_client(request(OTHER, 1) + request(OWN, 2), 1.0)
    [intercepted] = relay.take_intercepted()
    relay.answer(intercepted.exchange, response(2), 2.0, WAIT, 3.0)
    relay.receive_from_broker(response(1), 2.5)
    assert relay.take_to_client() == [response(1)]
    relay.handle_timer(5.0)
    assert relay.take_to_client() == [response(2)]


def test_bytes_that_are_for_the_proxy_are_not_counted_as_the_clients() -> None:
    traffic = Traffic()
    relay = drive(QuotaEngine([]), Addresses(), traffic, intercepted_api_keys=frozenset({OWN}))
    relay.receive_from_client(request(OTHER, 1) + request(OWN, 2), 1.0)
    [intercepted] = relay.take_intercepted()
    relay.ask_broker(intercepted.exchange, request(OWN, 2), 1.0)
    large = response(2, b"y" * 3_000_000)
    for at in range(0, len(large), 1_000_000):
        relay.receive_from_broker(response(1) * (at == 0) + large[at : at + 1_000_000], 1.1)
    relay.answer(intercepted.exchange, response(2, b"no"), 1.2)
    assert traffic.total.bytes_out == len(response(1)) + len(response(2, b"no"))


def test_the_brokers_time_is_the_clients() -> None:
    """A tenth of a second at once, then a tenth of the time."""
    quotas = engine({EVERYONE: {"request_percentage": 10.0}})
    relay = drive(quotas, Addresses(), Traffic(), intercepted_api_keys=frozenset({OWN}))
    relay.receive_from_client(request(OWN, 5), 1.0)
    [intercepted] = relay.take_intercepted()
    relay.ask_broker(intercepted.exchange, request(OWN, 5), 1.05)
    relay.receive_from_broker(response(5, b"yes"), 1.20)
    relay.answer(intercepted.exchange, response(5), 1.21)
    assert b"".join(relay.take_to_client()) == response(5)
    assert relay.client_muted
    assert relay.next_timer == pytest.approx(1.7)
    relay.handle_timer(1.7)
    assert not relay.client_muted
