from datetime import timedelta
from uuid import UUID

import pytest

from proxy.wire.errors import Malformed, Short
from proxy.wire.fetch.session_sizes import (
    MAX_PARTITIONS,
    MAX_SESSIONS,
    NOT_KNOWN,
    UNCOUNTED,
    SessionSizes,
)
from proxy.wire.reader import Reader
from tests.support.messages.kio_messages import request_frame, request_type
from tests.support.messages.requests import build, part

VERSIONS = [7, 9, 11, 12, 13, 18]
Topics = dict[int, range]
"""The partitions of topics, by the topic's number."""


def fetch(topics: Topics, session: tuple[int, int], version: int) -> bytes:
    """A Fetch from its isolation_level on."""
    schema = request_type(1, version)
    named = tuple(
        part(
            schema,
            "FetchTopic",
            topic=f"topic-{number}",
            topic_id=UUID(int=number + 1),
            partitions=tuple(
                part(
                    schema,
                    "FetchPartition",
                    partition=index,
                    fetch_offset=0,
                    log_start_offset=-1,
                    partition_max_bytes=1,
                )
                for index in indexes
            ),
        )
        for number, indexes in topics.items()
    )
    message = build(
        schema,
        replica_id=-1,
        max_wait=timedelta(milliseconds=0x1234567),
        min_bytes=1,
        max_bytes=1,
        session_id=session[0],
        session_epoch=session[1],
        topics=named,
        forgotten_topics_data=(),
    )
    frame = request_frame(message, 1, "c")
    bounds = (0x1234567).to_bytes(4, "big") + (1).to_bytes(4, "big") * 2
    return frame[frame.index(bounds) + len(bounds) :]


class Connection:
    def __init__(self, version: int = 12) -> None:
        self.sizes = SessionSizes()
        self.version = version

    def read(self, topics: Topics, session: tuple[int, int], complete: bool = True) -> int:
        data = fetch(topics, session, self.version)
        pieces = [data[:11], data[11:]] if complete else [data[:20]]
        return self.sizes.read(Reader(pieces), self.version, len(data), complete)

    def open(self, session_id: int, topics: Topics, complete: bool = True) -> None:
        self.read(topics, (0, 0), complete)
        assert self.sizes.opening is not None
        self.sizes.opening.opened(session_id)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_request_of_a_session_is_about_all_partitions_that_were_named(version: int) -> None:
    connection = Connection(version)
    connection.open(7, {0: range(100), 1: range(3)})
    assert connection.read({}, (7, 1)) == 103
    assert connection.sizes.opening is None
    assert connection.read({0: range(90, 110)}, (7, 2)) == 113
    assert connection.read({2: range(2)}, (7, 3)) == 115


def test_the_same_number_in_another_topic_is_another_partition() -> None:
    connection = Connection()
    connection.open(7, {topic: range(40) for topic in range(40)})
    assert connection.read({}, (7, 1)) == 1600


@pytest.mark.parametrize("version", [4, *VERSIONS])
def test_a_full_request_has_no_more_partitions_than_its_bytes_allow(version: int) -> None:
    connection = Connection(version)
    named = {0: range(50), 1: range(1)}
    for session in ((0, -1), (0, 0)) if version >= 7 else ((0, -1),):
        assert 51 <= connection.read(named, session) <= 56


def test_a_session_is_known_when_the_broker_has_opened_it() -> None:
    connection = Connection()
    assert connection.read({0: range(5)}, (7, 1)) == NOT_KNOWN
    connection.read({0: range(5)}, (0, 0))
    assert connection.read({}, (7, 1)) == NOT_KNOWN
    connection.open(7, {0: range(5)})
    assert connection.read({}, (8, 1)) == NOT_KNOWN
    assert connection.read({}, (7, 1)) == 5


def test_the_broker_may_have_no_room_for_a_session() -> None:
    connection = Connection()
    connection.open(0, {0: range(5)})
    assert connection.read({}, (0, 1)) == NOT_KNOWN


@pytest.mark.parametrize("epoch", [0, -1])
def test_a_full_request_ends_the_session_that_it_names(epoch: int) -> None:
    connection = Connection()
    connection.open(7, {0: range(5)})
    connection.read({0: range(2)}, (7, epoch))
    assert connection.read({}, (7, 1)) == NOT_KNOWN


def test_a_session_of_too_many_partitions_is_not_counted() -> None:
    connection = Connection()
    connection.open(7, {0: range(MAX_PARTITIONS)})
    assert connection.read({}, (7, 1)) == MAX_PARTITIONS
    connection.open(8, {0: range(MAX_PARTITIONS + 1)})
    assert connection.read({1: range(3)}, (8, 1)) == UNCOUNTED


def test_a_session_that_becomes_too_large_must_be_opened_again() -> None:
    """It may have removed as many partitions as it has added."""
    connection = Connection()
    connection.open(7, {0: range(MAX_PARTITIONS)})
    assert connection.read({1: range(1)}, (7, 1)) == NOT_KNOWN
    assert connection.read({}, (7, 2)) == NOT_KNOWN


def test_all_sessions_of_a_connection_have_no_more_partitions_than_one() -> None:
    connection = Connection()
    connection.open(7, {0: range(MAX_PARTITIONS // 2)})
    connection.open(8, {0: range(MAX_PARTITIONS // 2)})
    assert connection.read({}, (7, 1)) == MAX_PARTITIONS // 2
    connection.open(9, {0: range(1)})
    assert connection.read({}, (7, 2)) == NOT_KNOWN
    assert connection.read({}, (8, 1)) == MAX_PARTITIONS // 2


def test_the_oldest_sessions_are_not_kept() -> None:
    connection = Connection()
    for session_id in range(1, MAX_SESSIONS + 2):
        connection.open(session_id, {0: range(1)})
    known = [connection.read({}, (session_id, 1)) for session_id in range(1, MAX_SESSIONS + 2)]
    assert known == [NOT_KNOWN] + [1] * MAX_SESSIONS


def test_a_request_of_which_only_the_first_part_is_there_makes_its_session_uncounted() -> None:
    connection = Connection()
    connection.open(7, {0: range(5)}, complete=False)
    assert connection.read({}, (7, 1)) == UNCOUNTED
    connection.open(8, {0: range(5)})
    assert connection.read({0: range(9)}, (8, 1), complete=False) == UNCOUNTED
    assert connection.read({}, (8, 2)) == NOT_KNOWN
    assert connection.read({}, (9, 1), complete=False) == UNCOUNTED


@pytest.mark.parametrize("end", [b"\x02\x02t\x02", b"\x02\x02t\x02" + bytes(33), b"\x02\x02t\3" + bytes(40)])
def test_topics_that_end_too_early(end: bytes) -> None:
    head = bytes(9)
    with pytest.raises(Short):
        SessionSizes().read(Reader([head + end[:-1]]), 12, 100, True)


def test_a_length_that_no_array_has() -> None:
    with pytest.raises(Malformed):
        SessionSizes().read(Reader([bytes(9) + b"\xff\xff\xff\xfe"]), 7, 100, True)


def test_partitions_with_tagged_fields_and_odd_numbers_are_counted() -> None:
    entry = b"\xff\xff\xff\xff" + bytes(28)
    data = bytes(9) + b"\x02\x02t\x03" + entry + b"\x01\x63\x02ab" + bytes(4) + bytes(28) + b"\x00" + b"\x00"
    sizes = SessionSizes()
    sizes.read(Reader([data]), 12, len(data), True)
    assert sizes.opening is not None
    sizes.opening.opened(7)
    again = Reader([bytes(1) + b"\0\0\0\x07" + b"\0\0\0\x01" + b"\x01"])
    assert sizes.read(again, 12, 50, True) == 2
