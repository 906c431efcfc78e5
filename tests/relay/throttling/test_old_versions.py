"""Versions without throttle_time_ms: the response itself is delayed until the throttle ends."""

import pytest

from proxy.relay.counters.traffic import Traffic
from proxy.relay.requests.unsupported_version import unsupported_api_versions
from tests.support.messages.exchanges import TOPIC, api_versions, opaque, produce, produced, responded
from tests.support.messages.kio_messages import Ports, framed
from tests.support.messages.old_messages import fetch_request, fetch_response
from tests.support.stories.playbook import EVERYONE, Playbook, drive, engine, new_relay

KILOBYTE = {EVERYONE: {"producer_byte_rate": 1000.0, "consumer_byte_rate": 1000.0}}


def fetch(correlation_id: int, version: int = 0) -> bytes:
    return fetch_request(version, correlation_id, {TOPIC: {0: 100}}, max_bytes=100)


def fetched(correlation_id: int, size: int, version: int = 0, throttle_ms: int = 0) -> bytes:
    empty = fetch_response(version, correlation_id, {TOPIC: {0: b""}})
    # What quotas count: the frame without the correlation id.
    records = bytes(size - len(empty) + 4)
    return fetch_response(version, correlation_id, {TOPIC: {0: records}}, throttle_ms)


def slow() -> Playbook:
    return Playbook(new_relay(KILOBYTE))


def test_produce_v0_gets_its_response_when_the_wait_is_over() -> None:
    request = produce(1, size=3500, version=0)
    story = slow().client(request).to_broker(request).muted(2.5)
    story.at(1).broker(produced(1, version=0)).to_client().muted(2.5).busy()
    story.at(2.499).to_client().at(2.5).to_client(produced(1, version=0)).unmuted().timer(None).idle()


def test_produce_v0_with_a_late_response_is_not_delayed() -> None:
    request = produce(1, size=3500, version=0)
    story = slow().client(request).to_broker(request)
    story.at(2.5).broker(produced(1, version=0)).to_client(produced(1, version=0)).idle()


def test_fetch_v0_is_delayed_for_its_own_size() -> None:
    story = slow().client(fetch(1)).to_broker(fetch(1)).unmuted()
    story.broker(fetched(1, size=3500)).to_client().muted(2.5)
    story.at(2.5).to_client(fetched(1, size=3500)).unmuted().idle()


def test_fetch_v0_in_debt_gets_nothing_when_the_debt_is_paid() -> None:
    shared = engine(KILOBYTE)
    other, story = (Playbook(drive(shared, Ports(), Traffic())) for _ in range(2))
    other.client(fetch(1)).broker(fetched(1, size=5000))
    story.client(fetch(2)).to_broker().at(0.5).to_client().muted(4.0)
    story.at(3.999).to_client().at(4.0).to_client(fetch_response(0, 2, {})).unmuted().idle()


@pytest.mark.parametrize("version", [1, 2])
def test_produce_v1_and_v2_are_told(version: int) -> None:
    request = produce(1, size=3500, version=version)
    story = slow().client(request).to_broker(request).muted(2.5)
    story.broker(produced(1, version=version)).to_client(produced(1, 2500, version)).muted(2.5).idle()


@pytest.mark.parametrize("version", [1, 2, 3])
def test_fetch_v1_to_v3_are_told(version: int) -> None:
    story = slow().client(fetch(1, version)).to_broker(fetch(1, version))
    response = fetched(1, 3500, version)
    story.broker(response).to_client(fetched(1, 3500, version, throttle_ms=2500)).muted(2.5).idle()


def test_what_is_behind_a_delayed_response_is_delayed_with_it() -> None:
    old = produce(4, size=3500, version=0)
    story = (
        slow().client(opaque(1) + fetch(2) + opaque(3) + old).to_broker(opaque(1), fetch(2), opaque(3), old)
    )
    story.broker(responded(1)).to_client(responded(1))
    story.broker(fetched(2, size=3000)).to_client().timer(2.0)
    story.broker(responded(3)).to_client()
    story.at(2.0).to_client(fetched(2, size=3000), responded(3)).muted(2.5)
    story.broker(produced(4, version=0)).to_client()
    story.at(2.5).to_client(produced(4, version=0)).idle()


def test_a_local_response_behind_a_delayed_one_is_delayed_with_it() -> None:
    story = slow().client(fetch(1) + api_versions(2)).to_broker(fetch(1))
    story.broker(fetched(1, size=3000)).to_client().busy()
    story.at(2.0).to_client(fetched(1, size=3000), unsupported_api_versions(2, 0, 4)).idle()


def test_a_response_that_comes_as_the_delay_ends_stays_behind_what_is_delayed() -> None:
    story = slow().client(fetch(1) + opaque(2)).to_broker(fetch(1), opaque(2))
    story.broker(fetched(1, size=3000)).to_client()
    relay = story.relay
    # The shell's timer is late: the broker's bytes are there first.
    relay.receive_from_broker(responded(2), relay.next_timer)
    story.to_client().at(2.0).to_client(fetched(1, size=3000), responded(2)).idle()


def test_the_oldest_of_other_apis_pass() -> None:
    """Metadata v0, FindCoordinator v0 and ApiVersions v0 have no throttle_time_ms, and nothing waits."""
    for key, body in ((3, bytes(8)), (10, b"\0\x0f" + b"\xff\xff\xff\xff" + bytes(6)), (18, bytes(6))):
        story = slow().client(opaque(1, key, 0)).to_broker(opaque(1, key, 0))
        story.broker(framed(b"\0\0\0\1" + body)).to_client(framed(b"\0\0\0\1" + body)).unmuted().idle()
