"""A consumer under quota asks for no more than its quota allows, so no response takes it seconds over."""

import pytest

from tests.support.messages.exchanges import TOPIC, fetch, fetched, fetched_records, record_batch
from tests.support.messages.old_messages import fetch_request
from tests.support.stories.playbook import EVERYONE, Playbook, new_relay

KILOBYTE = {EVERYONE: {"consumer_byte_rate": 1000.0}}


def slow() -> Playbook:
    return Playbook(new_relay(KILOBYTE))


@pytest.mark.parametrize("version", [4, 11, 12, 15, 18])
def test_max_bytes_is_lowered_to_the_tokens(version: int) -> None:
    asked = fetch(1, max_bytes=50 << 20, version=version)
    slow().client(asked).to_broker(fetch(1, max_bytes=1000, version=version))


@pytest.mark.parametrize("version", [4, 18])
def test_min_bytes_is_lowered_with_it(version: int) -> None:
    """Or the broker would wait for more than it may send (KAFKA-9677)."""
    asked = fetch(1, max_bytes=50 << 20, min_bytes=5000, version=version)
    slow().client(asked).to_broker(fetch(1, max_bytes=1000, min_bytes=1000, version=version))


def test_min_bytes_below_the_bound_stays() -> None:
    asked = fetch(1, max_bytes=50 << 20, min_bytes=999)
    slow().client(asked).to_broker(fetch(1, max_bytes=1000, min_bytes=999))


@pytest.mark.parametrize("max_bytes", [0, 1, 999, 1000])
def test_a_smaller_wish_passes_as_it_is(max_bytes: int) -> None:
    asked = fetch(1, max_bytes=max_bytes)
    slow().client(asked).to_broker(asked)


def test_a_wish_below_zero_is_left_to_the_broker() -> None:
    asked = fetch(1, max_bytes=-1)
    slow().client(asked).to_broker(asked)


def test_a_consumer_without_tokens_still_gets_on() -> None:
    story = slow().client(fetch(1)).to_broker(fetch(1, max_bytes=1000))
    story.broker(fetched(1, size=2000)).to_client(fetched(1, size=2000, throttle_ms=1000))
    story.at(1.0).client(fetch(2)).to_broker(fetch(2, max_bytes=250))
    slowest = {EVERYONE: {"consumer_byte_rate": 0.5}}
    Playbook(new_relay(slowest)).client(fetch(1)).to_broker(fetch(1, max_bytes=1))


def test_without_a_quota_the_wish_passes() -> None:
    Playbook(new_relay()).client(fetch(1)).to_broker(fetch(1))


@pytest.mark.parametrize("version", [0, 1, 2])
def test_before_v3_a_request_passes_as_it_is(version: int) -> None:
    """Its partitions' own limits are hard: a batch above one would never come."""
    asked = fetch_request(version, 1, {"a": {0: 5000, 1: 1000}, "b": {0: 1001}, "c": {}}, min_bytes=2000)
    slow().client(asked).to_broker(asked)


def test_v3_is_bounded_as_a_whole() -> None:
    asked = fetch_request(3, 1, {TOPIC: {0: 5000}}, max_bytes=9000)
    slow().client(asked).to_broker(fetch_request(3, 1, {TOPIC: {0: 5000}}, max_bytes=1000))


WHOLE = record_batch(100) + record_batch(300)


@pytest.mark.parametrize("version", [4, 11, 12, 18])
@pytest.mark.parametrize("part", [1, 11, 12, 13, 299])
def test_the_part_of_a_batch_at_the_end_is_neither_forwarded_nor_charged(version: int, part: int) -> None:
    """A client throws it away: 900 bytes a second of which 400 are of use would be no quota of 1000."""
    records = WHOLE + record_batch(300)[:part]
    whole = fetched_records(version, [WHOLE])
    story = slow().client(fetch(1, version=version)).to_broker(fetch(1, max_bytes=1000, version=version))
    story.broker(fetched_records(version, [records])).to_client(whole)
    left = 1000 - (len(whole) - (5 if version >= 12 else 4))
    story.client(fetch(2, version=version)).to_broker(fetch(2, max_bytes=left, version=version))


@pytest.mark.parametrize("version", [4, 12])
def test_every_partition_ends_with_a_whole_batch(version: int) -> None:
    cut = fetched_records(version, [WHOLE, b"", WHOLE[:400], b""])
    story = slow().client(fetch(1, version=version)).to_broker(fetch(1, max_bytes=1000, version=version))
    story.broker(fetched_records(version, [WHOLE, b"", WHOLE + b"x", record_batch(500)[:99]])).to_client(cut)


def test_the_part_of_a_first_batch_is_all_that_there_is() -> None:
    records = [record_batch(500)[:300]]
    story = slow().client(fetch(1, version=12)).to_broker(fetch(1, max_bytes=1000, version=12))
    story.broker(fetched_records(12, records)).to_client(fetched_records(12, records))


def test_what_looks_like_no_batch_passes() -> None:
    records = [b"\xff" * 200]
    story = slow().client(fetch(1, version=12)).to_broker(fetch(1, max_bytes=1000, version=12))
    story.broker(fetched_records(12, records)).to_client(fetched_records(12, records))


def test_a_fetch_within_the_quota_is_not_cut() -> None:
    records = [WHOLE + b"part"]
    story = slow().client(fetch(1, max_bytes=900, version=12)).to_broker(fetch(1, max_bytes=900, version=12))
    story.broker(fetched_records(12, records)).to_client(fetched_records(12, records))


def test_any_cut_of_the_request_is_bounded_alike() -> None:
    asked, bounded = fetch(1, min_bytes=5000), fetch(1, max_bytes=1000, min_bytes=1000)
    for first in range(len(asked)):
        story = slow().client(asked[:first], asked[first : first + 2], asked[first + 2 :])
        story.to_broker(bounded)
