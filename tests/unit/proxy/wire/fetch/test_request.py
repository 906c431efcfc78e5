from dataclasses import replace

import pytest

from proxy.wire.api_keys import FETCH
from proxy.wire.apis.api_01_fetch import after_bounds
from proxy.wire.errors import Malformed, Short
from proxy.wire.fetch.request import (
    FINAL_EPOCH,
    FULL_EPOCH,
    FetchRequest,
    read_session_epoch,
    topic_bytes,
    with_max_bytes,
)
from proxy.wire.long_names import MAX_TOPIC_NAME
from tests.support.messages.kio_messages import request_frame, request_type, versions
from tests.support.messages.random_messages import sample
from tests.support.messages.reading import read_fetch, read_request
from tests.support.stories.fetching import HOT, fetch, topic_id


@pytest.mark.parametrize("version", versions(1))
def test_max_bytes_of_a_partition_are_replaced(version: int) -> None:
    (entry,) = read_fetch(fetch(1, {(HOT, 3): 99}, version)).entries
    (wanted,) = read_fetch(fetch(1, {(HOT, 3): 99}, version, bounds={(HOT, 3): 17})).entries
    assert with_max_bytes(entry.raw, version, 17) == wanted.raw


@pytest.mark.parametrize(("epoch", "full"), [(FULL_EPOCH, True), (FINAL_EPOCH, True), (1, False)])
def test_a_full_request_names_all_its_partitions(epoch: int, full: bool) -> None:
    request = FetchRequest(12)
    request.session_epoch = epoch
    assert request.full is full


@pytest.mark.parametrize("version", versions(1))
def test_the_epoch_is_read_however_the_frame_is_split(version: int) -> None:
    frame = fetch(1, {(HOT, 3): 99}, version, session=(77, 5))
    start = after_bounds(read_request([frame]))
    found = {read_session_epoch([frame[:at], frame[at:]], start, version) for at in range(1, len(frame))}
    assert found == {5 if version >= 7 else FINAL_EPOCH}
    if version >= 7:
        with pytest.raises(Short):
            read_session_epoch([frame[: start + 8]], start, version)


@pytest.mark.parametrize(
    ("version", "forgotten"), [(4, False), (7, False), (12, False), (7, True), (12, True)]
)
def test_a_name_that_no_topic_can_have_is_not_kept(version: int, forgotten: bool) -> None:
    """The names of a session stay in memory until its connection ends."""
    message = sample(request_type(FETCH, version))
    array = "forgotten_topics_data" if forgotten else "topics"
    (topic, *_) = getattr(message, array)
    usual = replace(message, **{array: (replace(topic, topic="n" * MAX_TOPIC_NAME),)})
    assert read_fetch(request_frame(usual, 1))
    longer = replace(message, **{array: (replace(topic, topic="n" * (MAX_TOPIC_NAME + 1)),)})
    with pytest.raises(Malformed, match="250 bytes"):
        read_fetch(request_frame(longer, 1))


def test_a_topic_has_a_name_or_an_id() -> None:
    assert topic_bytes(11, b"hot") == b"\0\3hot"
    assert topic_bytes(12, b"hot") == b"\4hot"
    assert topic_bytes(13, topic_id(HOT).bytes) == topic_id(HOT).bytes


@pytest.mark.parametrize(
    ("version", "right", "wrong"),
    [(17, b"\1\0\x10", b"\1\0\x0e"), (18, b"\1\x08", b"\1\x09"), (18, b"\2\0\x10", b"\2\0\x40")],
)
def test_a_tagged_field_with_a_wrong_size_hides_no_partition(
    version: int, right: bytes, wrong: bytes
) -> None:
    """Kafka's generated code reads 16 bytes for replica_directory_id and 8 for high_watermark, whatever the
    size says.
    """
    frame = request_frame(sample(request_type(FETCH, version)))
    assert len(read_fetch(frame).entries) == 4
    with pytest.raises(Malformed, match=r"tagged field . of a partition has"):
        read_fetch(frame.replace(right, wrong, 1))


def test_an_unknown_tagged_field_may_have_any_size() -> None:
    frame = request_frame(sample(request_type(FETCH, 17)))
    unknown = frame.replace(b"\1\0\x10", b"\2\x05\x02xx\0\x10", 1)
    assert len(read_fetch(unknown).entries) == 4
