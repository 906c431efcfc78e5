"""A client's fetch session at the relay, without a relay: its requests, and those to the broker."""

import struct
from collections.abc import Sequence
from typing import Any, Final

from proxy.quota.engine import QuotaEngine
from proxy.quota.identity import Identity
from proxy.quota.limits.limits import Limits
from proxy.relay.budgets.id_budget import IdBudget
from proxy.relay.fetch.consumer_session import ConsumerFetchSession
from proxy.relay.fetch.follower_session import FollowerFetchSession
from proxy.relay.fetch.omittable import OmittablePartitions
from proxy.relay.fetch.session import FetchSession
from proxy.wire.edit import i32
from proxy.wire.fetch.request import FetchEntry, FetchRequest, write_topics
from proxy.wire.fetch.rewrite import FetchRewrite
from tests.support.stories.fetching import Names, Omitting
from tests.support.stories.playbook import START

VERSION: Final = 11
WHO: Final = Identity("u", "c", "127.0.0.1")
CONSUMER, FOLLOWER = -1, 2


def entry(topic: str, partition: int, offset: int = 0, most: int = 1000, epoch: int = -1) -> FetchEntry:
    raw = struct.pack(">iiqqi", partition, epoch, offset, 0, most)
    return FetchEntry(topic.encode(), partition, epoch, offset, most, raw)


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
    """A session whose quota omits what the test says. `replica_id`: CONSUMER, or a follower's node id."""

    def __init__(self, replica_id: int = CONSUMER) -> None:
        self.quota = Omitting()
        self.engine = QuotaEngine([self.quota])
        self.configure()
        self.topics = OmittablePartitions(self.engine, IdBudget(Names()))
        self.session: Any = self.new_session(replica_id)

    def configure(self) -> None:
        """Apply limits again, because the quota omits other topics."""
        self.engine.configure(Limits({}), START)

    def new_session(self, replica_id: int = CONSUMER) -> FetchSession:
        kind = ConsumerFetchSession if replica_id == CONSUMER else FollowerFetchSession
        return kind(self.engine, self.topics, WHO, VERSION, replica_id)

    def next(self, request: FetchRequest | None = None, at: float = 0.0) -> bytes | None:
        """The topics of the incremental request to the broker; None if nothing is left of it."""
        self.session.update(incremental() if request is None else request)
        plan = self.session.plan(START + at, START + at + 0.5)
        return None if self.session.nothing_left(plan) else self.session.incremental()

    def full(self, *entries: FetchEntry, at: float = 0.0) -> tuple[bytes | None, int]:
        """The topics of the full request to the broker, and the number of those that the response gets."""
        self.session.update(incremental(*entries))
        self.session.plan(START + at, START + at + 0.5)
        rewrite = FetchRewrite(VERSION)
        topics = self.session.full(rewrite)
        return topics, rewrite.added_topics
