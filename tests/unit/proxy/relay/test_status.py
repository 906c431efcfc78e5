"""What a relay says about its connection, from its first byte to its last response."""

from tests.support.messages.exchanges import fetch, fetched, opaque, produce, produced
from tests.support.stories.playbook import EVERYONE, START, new_relay


def test_a_new_relay() -> None:
    status = new_relay().status
    assert status.idle
    assert not any([status.first_request_seen, status.request_unfinished, status.response_due])
    assert not any([status.throttled, status.waits_for_debt, status.waits_for_turn])
    assert (status.awaited, status.follower, status.sends_unanswered) == (None, None, False)


def test_from_a_part_of_a_request_to_its_response() -> None:
    relay = new_relay()
    status, request = relay.status, produce(1)
    relay.receive_from_client(request[:9], START)
    assert (status.request_unfinished, status.response_due, status.idle) == (True, False, False)
    assert not status.first_request_seen
    relay.receive_from_client(request[9:], START)
    assert (status.request_unfinished, status.response_due, status.idle) == (False, True, False)
    assert status.first_request_seen
    relay.receive_from_broker(produced(1), START)
    assert (status.request_unfinished, status.response_due, status.idle) == (False, False, True)


def test_a_client_over_its_quota_is_throttled_until_it_is_read_again() -> None:
    relay = new_relay({EVERYONE: {"producer_byte_rate": 1000.0}})
    relay.receive_from_client(produce(1, size=2000), START)
    relay.receive_from_broker(produced(1), START)
    assert relay.status.throttled
    relay.handle_timer(START + 10.0)
    assert not relay.status.throttled


def test_a_shutdown_awaits_no_fetch() -> None:
    relay = new_relay()
    relay.receive_from_client(fetch(1) + produce(2), START)
    assert relay.status.awaited is not None
    assert relay.status.awaited.correlation_id == 2
    relay.receive_from_broker(fetched(1) + produced(2), START)
    assert relay.status.awaited is None


def test_a_producer_with_acks_0_gets_no_response() -> None:
    relay = new_relay()
    relay.receive_from_client(produce(1, acks=0), START)
    assert relay.status.sends_unanswered
    relay.receive_from_client(produce(2), START)
    assert not relay.status.sends_unanswered


def test_an_intercepted_request_is_answered_alone_if_no_other_is_in_flight() -> None:
    relay = new_relay(intercepted_api_keys=frozenset([42]))
    relay.receive_from_client(opaque(1, 42), START)
    assert relay.status.answers_alone
    relay = new_relay(intercepted_api_keys=frozenset([42]))
    relay.receive_from_client(produce(1) + opaque(2, 42), START)
    assert not relay.status.answers_alone


def test_the_sender_is_that_of_the_last_request() -> None:
    relay = new_relay()
    user = relay.status.sender[0]
    relay.receive_from_client(produce(1), START)
    assert relay.status.sender == (user, "client")
