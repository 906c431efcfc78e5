"""The proxy shuts down: what has been read goes to the broker, and no response waits any longer."""

from tests.support.messages.exchanges import opaque, produce, produced, responded
from tests.support.stories.playbook import EVERYONE, Playbook, new_relay

KILOBYTE = {EVERYONE: {"producer_byte_rate": 1000.0, "consumer_byte_rate": 1000.0}}


def slow():
    return Playbook(new_relay(KILOBYTE))


def test_draining_what_has_nothing_to_do_does_nothing():
    slow().drain().to_broker().to_client().idle().unmuted().timer(None)


def test_requests_behind_a_muted_one_go_to_the_broker():
    requests = [produce(number, size=3000, acks=0) for number in range(4)]
    story = slow().client(b"".join(requests)).to_broker(requests[0]).muted(2.0).busy()
    story.drain().to_broker(*requests[1:]).idle()


def test_half_a_request_stays_unfinished():
    story = (
        slow().client(produce(1, size=3000, acks=0) + opaque(2)[:9]).to_broker(produce(1, size=3000, acks=0))
    )
    story.drain().to_broker().busy()
    story.client(opaque(2)[9:]).to_broker(opaque(2)).broker(responded(2)).to_client(responded(2)).idle()


def test_a_delayed_response_goes_to_the_client():
    request = produce(1, size=3000, version=0)
    story = slow().client(request + opaque(2)).to_broker(request)
    story.broker(produced(1, version=0)).to_client().busy()
    story.drain().to_client(produced(1, version=0)).to_broker(opaque(2)).busy()
    story.broker(responded(2)).to_client(responded(2)).idle()


def test_a_response_after_the_drain_still_announces_its_wait():
    story = slow().client(produce(1, size=3000)).to_broker(produce(1, size=3000)).drain().busy()
    story.broker(produced(1)).to_client(produced(1, throttle_ms=2000)).idle()


def test_a_response_that_is_delayed_after_a_drain_goes_with_the_next():
    request = produce(1, size=3000, version=0)
    story = slow().client(request).to_broker(request).drain()
    story.broker(produced(1, version=0)).drain().to_client(produced(1, version=0)).idle()
