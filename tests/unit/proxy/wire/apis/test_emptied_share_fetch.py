"""Responses to ShareFetch from which the records are removed; kio says what is left."""

import pytest

from proxy.wire.apis.emptied_share_fetch import empty_response, removals
from proxy.wire.edit import LENGTH_SIZE, apply, with_length
from tests.support.simulations.share_consumers import delivery, share_fetched

BODY_AT = 9
"""Behind the length, the correlation id and the header's tags."""
each_version = pytest.mark.parametrize("version", [1, 2])


def pieces_of(frame: bytes, size: int = 7) -> list[bytes]:
    return [frame[at : at + size] for at in range(0, len(frame), size)]


@each_version
@pytest.mark.parametrize("records", [b"r" * 300, b""])
def test_records_and_what_was_acquired_are_removed(version: int, records: bytes) -> None:
    frame = delivery(version, records)
    pieces = pieces_of(frame)
    edits = removals(pieces, BODY_AT, version)
    assert len(edits) == 1, "the other partition has none"
    edited = b"".join(apply(pieces, with_length(edits, len(frame) - LENGTH_SIZE)))
    assert edited == delivery(version, records, withheld=True)


@each_version
def test_a_response_without_records_stays(version: int) -> None:
    assert removals([share_fetched(version, fill=20)], BODY_AT, version) == []


@each_version
def test_the_start_of_a_response_is_enough_for_an_empty_one(version: int) -> None:
    start = delivery(version, b"r" * 300)[:40]
    assert empty_response(pieces_of(start), BODY_AT, version, 700) == share_fetched(version, 700)
