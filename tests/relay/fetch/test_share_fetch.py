"""A share consumer's fetches count into the consumer's byte rate, and are bounded as any consumer's."""

import pytest

from proxy.quota.engine import QuotaEngine
from proxy.quota.limits.enforcement import PACE, WINDOW
from proxy.relay.counters.traffic import Traffic
from proxy.relay.fetch.gate import LONGEST_WAIT_SECONDS
from tests.support.messages.exchanges import chunks, fetch, fetched
from tests.support.messages.kio_messages import Ports, framed
from tests.support.simulations.share_consumers import (
    MAX_WAIT_SECONDS,
    ShareWorld,
    delivery,
    share_fetch,
    share_fetched,
)
from tests.support.stories.playbook import EVERYONE, Playbook, drive, engine, new_relay

KILOBYTE = {EVERYONE: {"consumer_byte_rate": 1000.0}}
TENTH = {EVERYONE: {"request_percentage": 10.0}}
HEADER = 5
each_version = pytest.mark.parametrize("version", [1, 2])


@each_version
def test_the_response_is_charged(version: int) -> None:
    """1500 bytes of body and length at 1000 B/s."""
    rest = len(share_fetched(version, fill=200)) - HEADER - 200
    asked, fill = share_fetch(version, max_bytes=100), 1500 - rest
    told = Playbook(new_relay(KILOBYTE)).client(asked).to_broker(asked)
    told.broker(share_fetched(version, fill=fill))
    told.to_client(share_fetched(version, throttle_ms=500, fill=fill)).muted(0.5)


@each_version
@pytest.mark.parametrize("group_id", ["g", "", None, "g" * 300])
def test_the_request_is_bounded(version: int, group_id: str | None) -> None:
    asked = share_fetch(version, min_bytes=5000, group_id=group_id)
    bounded = share_fetch(version, max_bytes=1000, min_bytes=1000, group_id=group_id)
    Playbook(new_relay(KILOBYTE)).client(asked).to_broker(bounded)


@each_version
def test_without_a_quota_the_request_passes(version: int) -> None:
    asked = share_fetch(version)
    Playbook(new_relay()).client(asked).to_broker(asked)


@each_version
def test_what_is_no_share_fetch_is_the_brokers_to_reject(version: int) -> None:
    whole = share_fetch(version)[4:]
    for length in range(len(whole) - 30, len(whole) - 13):
        cut = framed(whole[:length])
        Playbook(new_relay(KILOBYTE | TENTH)).client(cut).to_broker(cut)


@each_version
def test_the_wait_that_it_asked_for_is_no_work_of_the_brokers(version: int) -> None:
    asked, response = share_fetch(version), share_fetched(version)
    told = Playbook(new_relay(TENTH)).client(asked).to_broker(asked).at(0.59)
    told.broker(response).to_client(response).unmuted()
    told.at(9).client(asked).to_broker(asked)
    told.at(9.625).broker(response).to_client(share_fetched(version, throttle_ms=250)).muted(9.875)


LIMIT = 20_000.0
LIMITED = {EVERYONE: {"consumer_byte_rate": LIMIT}}
WINDOW_SECONDS = 10.0
"""What Kafka delivers to an idle client at once, in seconds of its limit."""


@pytest.mark.parametrize("reconnects", [False, True])
@pytest.mark.parametrize("algorithm", [PACE, WINDOW])
@pytest.mark.parametrize("batch_seconds", [0.5, 5, 12])
def test_share_consumers_get_their_quota_from_the_start(
    batch_seconds: float, algorithm: str, reconnects: bool
) -> None:
    """With batches that are larger than the window, Kafka delivers none."""
    batch = int(batch_seconds * LIMIT)
    world = ShareWorld(engine(LIMITED, algorithm), 8, batch=batch, reconnects=reconnects)
    world.run(60.0)
    most = max(1.0, batch_seconds)
    if algorithm == WINDOW:
        most = max(WINDOW_SECONDS, batch_seconds + WINDOW_SECONDS / 2)
    assert world.ahead(LIMIT) <= most * LIMIT
    assert world.got > 0.9 * LIMIT * (60.0 - batch_seconds)


@pytest.mark.parametrize("algorithm", [PACE, WINDOW])
def test_many_that_have_waited_for_records_get_no_more_than_kafkas_window_at_once(algorithm: str) -> None:
    """The broker locks a batch for each, and the quota has not reserved any bytes."""
    world = ShareWorld(engine(LIMITED, algorithm), 30, batch=int(2 * LIMIT), available=0)
    world.run(2.0)
    world.available = 1 << 40
    world.run(20.0)
    assert world.ahead(LIMIT) <= WINDOW_SECONDS * LIMIT
    assert world.withheld > 0


def connected(quotas: QuotaEngine) -> Playbook:
    return Playbook(drive(quotas, Ports(), Traffic()))


def owing_much(limits: QuotaEngine) -> Playbook:
    """The connection that has a ShareFetch in flight while others spend twelve seconds of the limit."""
    story = connected(limits).client(share_fetch(2)).to_broker(share_fetch(2, max_bytes=1000)).at(0.3)
    other = connected(limits).at(0.3).client(fetch(1))
    other.broker(fetched(1, size=13_000)).relay.end()
    return story


@each_version
def test_a_consumer_over_its_quota_gets_no_records_and_the_results_of_its_acknowledgements(
    version: int,
) -> None:
    records = b"r" * 700
    story = owing_much(engine(KILOBYTE)).broker(delivery(version, records))
    story.to_client(delivery(version, records, 12_000, withheld=True)).muted(12.3)


@each_version
def test_the_acknowledgements_of_a_share_fetch_do_not_wait_as_long_as_its_records(version: int) -> None:
    """Their locks would end at the broker, and the client would give up the request."""
    limits = engine(KILOBYTE)
    other = connected(limits).client(fetch(1))
    other.broker(fetched(1, size=13_000)).relay.end()
    asked = share_fetch(version)
    acknowledges = share_fetch(version, max_records=0, max_wait_seconds=0.0)
    story = connected(limits).client(asked).to_broker()
    story.at(LONGEST_WAIT_SECONDS - 0.01).to_broker().at(LONGEST_WAIT_SECONDS).to_broker(acknowledges)
    story.broker(share_fetched(version)).to_client(share_fetched(version, throttle_ms=7_019))
    story.client(asked).to_broker().at(14.0).to_broker(share_fetch(version, max_bytes=1000))


@each_version
def test_a_share_fetch_with_acknowledgements_does_not_wait(version: int) -> None:
    """The locks of the records would end, and another consumer would get them again."""
    limits = engine(KILOBYTE)
    other = connected(limits).client(fetch(1))
    other.broker(fetched(1, size=13_000)).relay.end()
    asked = share_fetch(version, acknowledges=True)
    story = connected(limits).client(asked)
    story.to_broker(share_fetch(version, max_records=0, max_wait_seconds=0.0, acknowledges=True))
    story.broker(share_fetched(version)).to_client(share_fetched(version, throttle_ms=12_019))
    story.client(share_fetch(version)).to_broker().at(14.0).to_broker(share_fetch(version, max_bytes=1000))


@each_version
def test_within_the_quota_acknowledgements_change_nothing(version: int) -> None:
    asked = share_fetch(version, max_bytes=1000, acknowledges=True)
    connected(engine(KILOBYTE)).client(asked).to_broker(asked)


def test_a_response_without_records_is_not_withheld() -> None:
    owing_much(engine(KILOBYTE)).broker(share_fetched(2)).to_client(share_fetched(2, throttle_ms=12_019))


@each_version
def test_of_a_large_response_nothing_is_left(version: int) -> None:
    story = owing_much(engine(KILOBYTE))
    large = chunks(delivery(version, b"r" * (3 << 20)))
    story.broker(*large[:5]).to_client(share_fetched(version, 12_000)).broker(*large[5:]).to_client().muted(
        12.3
    )


@each_version
@pytest.mark.parametrize(("lock_seconds", "waits"), [(1.0, 0.25), (30.0, 7.5)])
def test_records_can_be_acknowledged_before_their_locks_end(
    version: int, lock_seconds: float, waits: float
) -> None:
    """The response with records puts the bucket into a debt of 59 s."""
    got = delivery(version, b"r" * 60_000, lock_seconds=lock_seconds)
    story = (
        connected(engine(KILOBYTE))
        .client(share_fetch(version))
        .to_broker(share_fetch(version, max_bytes=1000))
    )
    story.broker(got).to_client(got).unmuted().at(0.1)
    story.client(share_fetch(version, acknowledges=True))
    story.to_broker(share_fetch(version, max_records=0, max_wait_seconds=0.0, acknowledges=True))
    empty = share_fetched(version, throttle_ms=int(waits * 1000))
    story.broker(share_fetched(version)).to_client(empty).muted(0.1 + waits)
    story.at(0.1 + waits).client(share_fetch(version)).to_broker()
    story.at(0.1 + waits + max(MAX_WAIT_SECONDS, min(LONGEST_WAIT_SECONDS, waits)))
    story.to_broker(share_fetch(version, max_records=0, max_wait_seconds=0.0))


@each_version
def test_a_large_response_with_records_does_not_mute(version: int) -> None:
    whole = chunks(delivery(version, b"r" * (3 << 20)))
    story = connected(engine(KILOBYTE)).client(share_fetch(version)).broker(*whole)
    story.to_client(*whole).unmuted()


@each_version
def test_request_time_mutes_after_the_acknowledgements(version: int) -> None:
    got = delivery(version, b"r" * 700, lock_seconds=30.0)
    told = Playbook(new_relay(TENTH)).client(share_fetch(version)).to_broker(share_fetch(version))
    told.at(2.0).broker(got).to_client(got).unmuted()
    acknowledges = share_fetch(version, acknowledges=True)
    told.client(acknowledges).to_broker(acknowledges)
    told.broker(share_fetched(version)).to_client(share_fetched(version, throttle_ms=1000)).muted(3.0)
