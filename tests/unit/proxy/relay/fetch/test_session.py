"""FetchSession: what the relay tells the broker of a client's session.

tests/property/test_fetch_sessions.py compares random sessions with models of a broker and of a client.
"""

import struct
from collections.abc import Sequence

import pytest

from proxy.quota.engine import QuotaEngine
from proxy.quota.identity import Identity
from proxy.quota.limits.limits import Limits
from proxy.relay.fetch.omittable import OmittablePartitions
from proxy.relay.fetch.session import FetchSession
from proxy.relay.id_budget import IdBudget
from proxy.wire.edit import i32
from proxy.wire.fetch_request import FetchEntry, FetchRequest, write_topics
from tests.support.stories.fetching import COLD, HOT, Names, Omitting
from tests.support.stories.playbook import START

VERSION = 11
WHO = Identity("u", "c", "127.0.0.1")
CONSUMER, FOLLOWER = -1, 2


def entry(topic: str, partition: int, offset: int = 0, most: int = 1000) -> FetchEntry:
    raw = struct.pack(">iiqqi", partition, -1, offset, 0, most)
    return FetchEntry(topic.encode(), partition, -1, offset, most, raw)


def incremental(*entries: FetchEntry, forgotten: Sequence[tuple[str, int]] = ()) -> FetchRequest:
    request = FetchRequest(VERSION)
    request.session_epoch = 1
    request.entries = list(entries)
    request.forgotten = [(topic.encode(), partition) for topic, partition in forgotten]
    return request


def told(*entries: FetchEntry, forgotten: Sequence[tuple[str, int]] = ()) -> bytes:
    """The topics of a request that names these partitions."""
    included: dict[bytes, list[bytes]] = {}
    gone: dict[bytes, list[bytes]] = {}
    for each in entries:
        included.setdefault(each.topic, []).append(each.raw)
    for topic, partition in forgotten:
        gone.setdefault(topic.encode(), []).append(i32(partition))
    return write_topics(VERSION, included, gone)


class Side:
    def __init__(self, replica_id: int = CONSUMER) -> None:
        self.quota = Omitting()
        self.engine = QuotaEngine([self.quota])
        self.engine.configure(Limits({}), START)
        topics = OmittablePartitions(self.engine, IdBudget(Names()))
        self.session = FetchSession(self.engine, topics, WHO, VERSION, replica_id)

    def next(self, request: FetchRequest | None = None, at: float = 0.0) -> bytes | None:
        """The request that goes to the broker; None if nothing is left of it."""
        self.session.update(incremental() if request is None else request)
        plan = self.session.plan(START + at, START + at + 0.5)
        return None if self.session.nothing_left(plan) else self.session.incremental()


def test_only_changes_are_told() -> None:
    side = Side()
    both = (entry(HOT, 0), entry(COLD, 0))
    assert side.next(incremental(*both)) == told(*both)
    assert side.next() == told()
    moved = entry(HOT, 0, offset=5)
    assert side.next(incremental(moved)) == told(moved)
    assert side.session.size == 2


def test_an_omitted_partition_is_forgotten_and_comes_back_as_the_client_had_it_last() -> None:
    side = Side()
    hot, cold = entry(HOT, 0), entry(COLD, 0)
    side.next(incremental(hot, cold))
    side.quota.omit(2.0, 0)
    assert side.next() == told(forgotten=[(HOT, 0)])
    moved = entry(HOT, 0, offset=5)
    assert side.next(incremental(moved), at=1.0) == told()
    assert side.next(at=2.0) == told(moved)


def test_a_partition_that_the_client_forgets_is_forgotten_only_where_the_broker_has_it() -> None:
    side = Side()
    side.quota.omit(2.0, 1)
    side.next(incremental(entry(HOT, 0), entry(HOT, 1)))
    gone = [(HOT, 0), (HOT, 1)]
    assert side.next(incremental(entry(COLD, 0), forgotten=gone)) == told(
        entry(COLD, 0), forgotten=[(HOT, 0)]
    )
    assert side.session.size == 1


def test_nothing_is_left_if_every_partition_of_a_consumer_is_omitted() -> None:
    side = Side()
    side.quota.omit(2.0, 0)
    assert side.next(incremental(entry(HOT, 0))) is None


def test_a_followers_omitted_partition_is_asked_about_once_without_bytes() -> None:
    side = Side(FOLLOWER)
    side.quota.omit(2.0, 0)
    assert side.next(incremental(entry(HOT, 0))) == told(entry(HOT, 0, most=0))
    assert side.session.probes == 1


@pytest.mark.parametrize("most", [1, 100])
def test_a_bound_lowers_the_bytes_of_a_partition_until_it_is_lifted(most: int) -> None:
    side = Side()
    side.quota.bounds[0] = most
    assert side.next(incremental(entry(HOT, 0))) == told(entry(HOT, 0, most=most))
    assert side.next() == told()
    del side.quota.bounds[0]
    assert side.next() == told(entry(HOT, 0))
