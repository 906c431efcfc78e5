import pytest

from proxy.wire.apis.api_01_fetch import after_bounds
from proxy.wire.errors import Short
from proxy.wire.fetch_request import (
    FINAL_EPOCH,
    FULL_EPOCH,
    FetchRequest,
    read_session,
    topic_bytes,
    with_max_bytes,
)
from tests.support.messages.kio_messages import versions
from tests.support.messages.reading import read_fetch, read_request
from tests.support.stories.fetching import HOT, fetch, topic_id


@pytest.mark.parametrize("version", versions(1))
def test_max_bytes_of_a_partition_are_replaced(version):
    (entry,) = read_fetch(fetch(1, {(HOT, 3): 99}, version)).entries
    (wanted,) = read_fetch(fetch(1, {(HOT, 3): 99}, version, bounds={(HOT, 3): 17})).entries
    assert with_max_bytes(entry.raw, version, 17) == wanted.raw


@pytest.mark.parametrize(("epoch", "full"), [(FULL_EPOCH, True), (FINAL_EPOCH, True), (1, False)])
def test_a_full_request_names_all_its_partitions(epoch, full):
    request = FetchRequest(12)
    request.session_epoch = epoch
    assert request.full is full


@pytest.mark.parametrize("version", versions(1))
def test_the_session_is_read_however_the_frame_is_split(version):
    frame = fetch(1, {(HOT, 3): 99}, version, session=(77, 5))
    start = after_bounds(read_request([frame]))
    found = {read_session([frame[:at], frame[at:]], start, version) for at in range(1, len(frame))}
    assert found == {(77, 5) if version >= 7 else (0, FINAL_EPOCH)}
    if version >= 7:
        with pytest.raises(Short):
            read_session([frame[: start + 8]], start, version)


def test_a_topic_has_a_name_or_an_id():
    assert topic_bytes(11, b"hot") == b"\0\3hot"
    assert topic_bytes(12, b"hot") == b"\4hot"
    assert topic_bytes(13, topic_id(HOT).bytes) == topic_id(HOT).bytes
