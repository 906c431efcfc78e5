"""A share consumer's fetches count into the consumer's byte rate, and are bounded as any consumer's."""

import pytest
from kio.schema.errors import ErrorCode

from proxy.quota.limits.enforcement import PACE, WINDOW
from proxy.relay.traffic import Traffic
from proxy.wire.api_keys import SHARE_FETCH
from tests.support.messages.exchanges import milliseconds
from tests.support.messages.kio_messages import (
    Ports,
    framed,
    request_frame,
    request_type,
    response_frame,
    response_type,
)
from tests.support.stories.playbook import EVERYONE, START, Playbook, drive, engine, new_relay

KILOBYTE = {EVERYONE: {"consumer_byte_rate": 1000.0}}
TENTH = {EVERYONE: {"request_percentage": 10.0}}
HEADER = 5
each_version = pytest.mark.parametrize("version", [1, 2])


def share_fetch(version, max_bytes=50 << 20, min_bytes=1, group_id="g"):
    message = request_type(SHARE_FETCH, version)(
        group_id=group_id,
        member_id="m",
        share_session_epoch=0,
        max_wait=milliseconds(500),
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        max_records=500,
        batch_size=500,
        topics=(),
        forgotten_topics_data=(),
    )
    return request_frame(message)


def share_fetched(version, throttle_ms=0, fill=0):
    message = response_type(SHARE_FETCH, version)(
        throttle_time=milliseconds(throttle_ms),
        error_code=ErrorCode.none,
        error_message="x" * fill,
        acquisition_lock_timeout=milliseconds(0),
        responses=(),
        node_endpoints=(),
    )
    return response_frame(message)


@each_version
def test_the_response_is_charged(version):
    """1500 bytes of body and length at 1000 B/s."""
    rest = len(share_fetched(version, fill=200)) - HEADER - 200
    asked, fill = share_fetch(version, max_bytes=100), 1500 - rest
    told = Playbook(new_relay(KILOBYTE)).client(asked).to_broker(asked)
    told.broker(share_fetched(version, fill=fill))
    told.to_client(share_fetched(version, throttle_ms=500, fill=fill)).muted(0.5)


@each_version
@pytest.mark.parametrize("group_id", ["g", "", None, "g" * 300])
def test_the_request_is_bounded(version, group_id):
    asked = share_fetch(version, min_bytes=5000, group_id=group_id)
    bounded = share_fetch(version, max_bytes=1000, min_bytes=1000, group_id=group_id)
    Playbook(new_relay(KILOBYTE)).client(asked).to_broker(bounded)


@each_version
def test_without_a_quota_the_request_passes(version):
    asked = share_fetch(version)
    Playbook(new_relay()).client(asked).to_broker(asked)


@each_version
def test_what_is_no_share_fetch_is_the_brokers_to_reject(version):
    whole = share_fetch(version)[4:]
    for length in range(len(whole) - 30, len(whole) - 13):
        cut = framed(whole[:length])
        Playbook(new_relay(KILOBYTE | TENTH)).client(cut).to_broker(cut)


@each_version
def test_the_wait_that_it_asked_for_is_no_work_of_the_brokers(version):
    asked, response = share_fetch(version), share_fetched(version)
    told = Playbook(new_relay(TENTH)).client(asked).to_broker(asked).at(0.59)
    told.broker(response).to_client(response).unmuted()
    told.at(9).client(asked).to_broker(asked)
    told.at(9.625).broker(response).to_client(share_fetched(version, throttle_ms=250)).muted(9.875)


@pytest.mark.parametrize("reconnects", [False, True])
@pytest.mark.parametrize("algorithm", [PACE, WINDOW])
@pytest.mark.parametrize("size", [4000, 9000, 16_000, 22_000, 40_000])
def test_a_share_consumer_gets_its_quota(size, algorithm, reconnects):
    """Kafka sends whatever a ShareFetch acquires, and mutes the connection; its rate forgets after 11 s."""
    seconds, got = 600, 0
    limits = engine(KILOBYTE, algorithm)
    asked, response = share_fetch(2), share_fetched(2, fill=size)
    relay = drive(limits, Ports(), Traffic())
    for tick in range(2 * seconds):
        now = START + tick / 2
        while 0.0 < (due := relay.next_timer) <= now:
            relay.handle_timer(due)
        if not relay.client_muted and relay.idle:
            relay.receive_from_client(asked, now)
        if relay.take_to_broker():
            relay.receive_from_broker(response, now)
            got += len(b"".join(relay.take_to_client()))
            if reconnects:
                relay.end()
                relay = drive(limits, Ports(), Traffic())
    assert 0.7 * 1000.0 * seconds < got <= 1000.0 * (seconds + 10.0) + len(response)
