"""Whether a ShareFetch acknowledges records, in every version."""

from struct import pack

import pytest

from proxy.wire.apis.share_acknowledgements import PARTITIONS_AT_MOST, acknowledges
from tests.support.simulations.share_consumers import share_fetch

each_version = pytest.mark.parametrize("version", [1, 2])


def read(frame: bytes, version: int) -> bool:
    """With max_bytes found by its value."""
    return acknowledges([frame], frame.index(pack(">i", 77_777)), version)


@each_version
@pytest.mark.parametrize("any", [True, False])
def test_a_request_with_and_without_acknowledgements(version: int, any: bool) -> None:
    assert read(share_fetch(version, max_bytes=77_777, acknowledges=any), version) == any


@each_version
def test_what_does_not_parse_acknowledges_nothing(version: int) -> None:
    frame = share_fetch(version, max_bytes=77_777, acknowledges=True)
    at = frame.index(pack(">i", 77_777))
    for size in range(at, at + 30):
        assert not acknowledges([frame[:size]], at, version)
    assert not acknowledges([frame], len(frame), version)


def test_very_many_partitions_are_not_read() -> None:
    """Each has six bytes."""
    more = PARTITIONS_AT_MOST + 1
    count = bytes([(more + 1) & 127 | 128, (more + 1) >> 7])
    assert acknowledges([bytes(14) + b"\2" + bytes(16) + count], 0, 2)
