"""The proxy shuts down: no fetch and no response waits any longer, and limits hold."""

import pytest

from proxy.wire.api_keys import JOIN_GROUP, SYNC_GROUP
from proxy.wire.fetch.rewrite import fetch_response
from tests.support.messages.exchanges import fetch, fetched, opaque, produce, produced, responded
from tests.support.stories.playbook import EVERYONE, Playbook, new_relay

AWAITED = [
    ([], None),
    ([opaque(JOIN_GROUP, JOIN_GROUP)], None),
    ([opaque(SYNC_GROUP, SYNC_GROUP), opaque(50, 12), opaque(51, 12)], 50),
    ([produce(60), opaque(JOIN_GROUP, JOIN_GROUP)], 60),
]
KILOBYTE = {EVERYONE: {"producer_byte_rate": 1000.0, "consumer_byte_rate": 1000.0}}


def slow() -> Playbook:
    return Playbook(new_relay(KILOBYTE))


def test_draining_what_has_nothing_to_do_does_nothing() -> None:
    slow().drain().to_broker().to_client().idle().unmuted().timer(None)


def test_a_muted_client_stays_muted() -> None:
    requests = [produce(number, size=3000, acks=0) for number in range(2)]
    story = slow().client(b"".join(requests)).to_broker(requests[0]).muted(2.0)
    story.drain().to_broker().muted(2.0).at(2.0).to_broker(requests[1])


def test_half_a_request_stays_unfinished() -> None:
    story = Playbook(new_relay()).client(opaque(2)[:9]).drain().to_broker().busy()
    story.client(opaque(2)[9:]).to_broker(opaque(2)).broker(responded(2)).to_client(responded(2)).idle()


def test_a_delayed_response_goes_to_the_client() -> None:
    request = produce(1, size=3000, version=0)
    story = slow().client(request + opaque(2)).to_broker(request)
    story.broker(produced(1, version=0)).to_client().busy()
    story.drain().to_client(produced(1, version=0)).to_broker()
    story.at(2.0).to_broker(opaque(2)).broker(responded(2)).to_client(responded(2)).idle()


@pytest.mark.parametrize(("requests", "awaited"), AWAITED, ids=[str(number) for _, number in AWAITED])
def test_the_oldest_request_that_does_not_wait_for_events_is_awaited(
    requests: list[bytes], awaited: int | None
) -> None:
    relay = new_relay()
    Playbook(relay).client(b"".join(requests))
    assert (relay.status.awaited.correlation_id if relay.status.awaited else None) == awaited


def test_the_last_produce_request_tells_whether_its_client_gets_responses() -> None:
    relay = new_relay()
    story = Playbook(relay)
    for acks in (1, 0, -1):
        story.client(produce(1, acks=acks))
        assert relay.status.sends_unanswered == (acks == 0)


def test_a_response_after_the_drain_still_announces_its_wait() -> None:
    story = slow().client(produce(1, size=3000)).to_broker(produce(1, size=3000)).drain().busy()
    story.broker(produced(1)).to_client(produced(1, throttle_ms=2000)).idle()


def test_a_response_that_is_delayed_after_a_drain_goes_with_the_next() -> None:
    request = produce(1, size=3000, version=0)
    story = slow().client(request).to_broker(request).drain()
    story.broker(produced(1, version=0)).drain().to_client(produced(1, version=0)).idle()


def test_a_fetch_that_was_sent_ahead_gets_no_records() -> None:
    """It waits for the response to an earlier one, and has no grant."""
    story = slow().client(fetch(1) + fetch(2)).to_broker(fetch(1, max_bytes=1000))
    story.drain().to_broker().to_client()
    nothing = fetch_response(11, 2, throttle_time_ms=1)
    story.broker(fetched(1, size=900)).to_client(fetched(1, size=900), nothing).idle()
