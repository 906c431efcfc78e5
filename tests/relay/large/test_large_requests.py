"""Requests over 1 MiB are cut through: they pass as they come, are judged once, and keep their place."""

from dataclasses import replace

import pytest

from proxy.relay.close_reasons import CLIENT_PROTOCOL_ERROR
from proxy.relay.counters.traffic import Traffic
from proxy.relay.frame_buffer import MAX_BUFFERED_FRAME_BYTES
from proxy.wire.cursor import NO_ID
from tests.support.messages.exchanges import (
    TOPIC,
    chunks,
    fetch,
    opaque,
    produce,
    produced,
    responded,
)
from tests.support.messages.kio_messages import (
    read_frame,
    request_frame,
    request_type,
)
from tests.support.messages.old_messages import fetch_request as old_fetch
from tests.support.stories.playbook import EVERYONE, Playbook, new_relay

MIB = 1 << 20
SLOW = {EVERYONE: {"producer_byte_rate": float(MIB), "consumer_byte_rate": float(MIB)}}


def test_nothing_of_a_large_request_goes_on_before_one_mebibyte_is_there() -> None:
    request = produce(1, size=3 * MIB)
    story = Playbook(new_relay()).client(request[:4]).to_broker()
    story.client(request[4 : MIB - 1]).to_broker().busy()
    story.client(request[MIB - 1 : MIB]).to_broker(request[:MIB]).busy()
    story.client(request[MIB : 2 * MIB]).to_broker(request[MIB : 2 * MIB]).busy()
    story.client(request[2 * MIB :]).to_broker(request[2 * MIB :])
    story.broker(produced(1)).to_client(produced(1)).idle()


def test_a_request_of_exactly_one_mebibyte_is_taken_whole() -> None:
    request = produce(1, size=MIB - 4)
    Playbook(new_relay()).client(request[:-1]).to_broker().client(request[-1:]).to_broker(request)


def test_requests_around_a_large_one_keep_their_order() -> None:
    large = produce(2, size=2 * MIB)
    story = Playbook(new_relay()).client(*chunks(opaque(1) + large + opaque(3)))
    story.to_broker(opaque(1), large, opaque(3))
    story.broker(responded(1) + produced(2) + responded(3))
    story.to_client(responded(1), produced(2), responded(3)).idle()


@pytest.mark.parametrize("kind", ["opaque", "acks 0", "acks 0, v13"])
def test_large_requests_of_other_kinds(kind: str) -> None:
    large = {
        "opaque": opaque(1, body=bytes(2 * MIB)),
        "acks 0": produce(1, size=2 * MIB, acks=0),
        "acks 0, v13": opaque(1, 0, 13, b"\0\0" + b"\0\0" + bytes(4) + b"\x01\0" + bytes(2 * MIB)),
    }[kind]
    story = Playbook(new_relay()).client(*chunks(large + opaque(2))).to_broker(large, opaque(2))
    if kind == "opaque":
        story.broker(responded(1)).to_client(responded(1))
    story.broker(responded(2)).to_client(responded(2)).idle()


def test_a_large_request_is_judged_at_its_start_and_passes_to_its_end() -> None:
    large = produce(1, size=3 * MIB)
    story = Playbook(new_relay(SLOW)).client(large[:MIB]).to_broker(large[:MIB])
    story.unmuted().timer(2.0)  # in the middle of a frame there is nothing to mute
    story.client(large[MIB:-1]).to_broker(large[MIB:-1]).unmuted()
    story.at(0.5).client(large[-1:] + opaque(2)).to_broker(large[-1:]).muted(2.0).busy()
    story.broker(produced(1)).to_client(produced(1, throttle_ms=1500))
    story.at(2.0).to_broker(opaque(2)).unmuted()


def test_a_large_request_that_takes_longer_than_its_wait() -> None:
    large = produce(1, size=3 * MIB)
    story = Playbook(new_relay(SLOW)).client(large[:MIB]).to_broker(large[:MIB]).timer(2.0)
    story.at(2.0).timer(None).client(large[MIB:] + opaque(2)).to_broker(large[MIB:], opaque(2)).unmuted()


def test_a_request_behind_a_muted_one_may_be_large() -> None:
    first, large = produce(1, size=2 * MIB - 4), produce(2, size=2 * MIB)
    story = Playbook(new_relay(SLOW)).client(first + large[: MIB + 9]).to_broker(first)
    story.muted(1.0 - 4 / MIB).at(1.0).to_broker(large[: MIB + 9]).client(large[MIB + 9 :])
    story.to_broker(large[MIB + 9 :])


def wide_fetch(max_bytes: int) -> bytes:
    """A Fetch request whose rack is longer than a mebibyte."""
    request = read_frame(request_type(1, 12), fetch(1, max_bytes=max_bytes, version=12))
    return request_frame(replace(request, rack_id="r" * MIB))


def test_a_large_fetch_request_is_bounded_as_well() -> None:
    asked, bounded = wide_fetch(50 * MIB), wide_fetch(MIB)
    story = Playbook(new_relay(SLOW)).client(asked[:MIB]).to_broker()
    story.client(asked[MIB:] + opaque(2)).to_broker(bounded, opaque(2))


def test_a_fetch_request_that_cannot_wait_ends_the_connection() -> None:
    asked = wide_fetch(50 * MIB)
    padded = (MAX_BUFFERED_FRAME_BYTES + 1).to_bytes(4, "big") + asked[4:]
    Playbook(new_relay(SLOW)).client_fails(
        padded, reason=CLIENT_PROTOCOL_ERROR, says=str(MAX_BUFFERED_FRAME_BYTES)
    )


def test_a_large_fetch_request_before_v3_passes_as_it_is() -> None:
    asked = old_fetch(2, 1, {TOPIC: dict.fromkeys(range(MIB // 16 + 1), 50 * MIB)})
    assert len(asked) > MIB
    Playbook(new_relay(SLOW)).client(asked[:MIB], asked[MIB:]).to_broker(asked)


def test_records_of_a_large_request_are_counted_by_partition() -> None:
    traffic = Traffic(topic_partitions=True)
    request = read_frame(request_type(0, 7), produce(1, size=100))
    (topic,) = request.topic_data
    (partition,) = topic.partition_data
    sizes = [MIB, 0, 5, 3 * MIB, 70]
    many = tuple(replace(partition, index=at, records=bytes(size)) for at, size in enumerate(sizes))
    large = request_frame(replace(request, topic_data=(replace(topic, partition_data=many),)))
    story = Playbook(new_relay(traffic=traffic)).client(*chunks(large)).to_broker(large)
    story.broker(produced(1)).to_client(produced(1))
    got = {key: counters.bytes_in for key, counters in traffic.partitions.items()}
    assert got == {(TOPIC, NO_ID, at): size for at, size in enumerate(sizes)}


def counting() -> Playbook:
    return Playbook(new_relay(traffic=Traffic(topic_partitions=True)))


def test_a_large_request_that_ends_too_early() -> None:
    """Its records are said to be a byte longer than they are."""
    large = produce(1, size=2 * MIB)
    (topic,) = read_frame(request_type(0, 7), large).topic_data
    size = len(topic.partition_data[0].records)
    large = large.replace(size.to_bytes(4, "big"), (size + 1).to_bytes(4, "big"), 1)
    story = counting().client(large[:MIB])
    story.client_fails(large[MIB:], reason=CLIENT_PROTOCOL_ERROR, says="^1 bytes of records")


def test_a_large_request_that_does_not_parse_further_on() -> None:
    large = produce(1, size=2 * MIB)
    request = read_frame(request_type(0, 7), large)
    (topic,) = request.topic_data
    bad = request_frame(replace(request, topic_data=(topic, topic)))
    # The second topic's name gets a length that cannot be.
    at = bad.rindex(TOPIC.encode()) - 2
    bad = bad[:at] + b"\x80\0" + bad[at + 2 :]
    story = counting().client(bad[: 2 * MIB - 9])
    story.client_fails(bad[2 * MIB - 9 :], reason=CLIENT_PROTOCOL_ERROR, says="a string of length -32768")


def test_a_field_that_has_no_end_is_not_buffered_for_ever() -> None:
    """What is read has to be buffered: a client must not announce a name of 50 MiB and have the proxy keep
    it.
    """
    name = b"\xff\xff\xff\x18"  # 50 MiB and more, as a compact length
    head = opaque(1, 0, 9, b"\0" + b"\0" + b"\0\1" + bytes(4) + b"\x02" + name)
    large = (60 * MIB).to_bytes(4, "big") + head[4:]
    story = counting().client(large + bytes(MIB))
    story.client_fails(
        *[bytes(65_536)] * 17, reason=CLIENT_PROTOCOL_ERROR, says="a field of the request is longer than"
    )


def test_a_head_that_does_not_fit_is_not_waited_for() -> None:
    """A transactional_id of more than a mebibyte: nothing is known of the request before it."""
    large = opaque(1, 0, 9, b"\0" + b"\xff\xff\x7f" + bytes(2 * MIB))
    story = Playbook(new_relay())
    story.client_fails(large[:MIB], reason=CLIENT_PROTOCOL_ERROR, says="at offset 1048576")
    story.to_broker()
