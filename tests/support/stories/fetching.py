"""Fetches of several partitions, inside sessions and outside, for stories about omitted partitions."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from kio.schema.errors import ErrorCode

from proxy.quota.engine import QuotaEngine
from proxy.quota.fetch.consumer_plan import ConsumerPlan
from proxy.quota.fetch.follower_plan import FollowerItem, FollowerPlan, SessionState
from proxy.quota.fetch.plan import FetchItem, FetchPlan
from proxy.quota.identity import Identity
from proxy.quota.limits.limits import Limits
from proxy.quota.quota import Quota
from proxy.relay.counters.traffic import Traffic
from proxy.relay.fetch.gate import FetchGate
from proxy.relay.fetch.sessions import SESSION_MASK, FetchSessions
from proxy.wire.api_keys import FETCH
from proxy.wire.topic_names import TopicNames
from tests.support.messages.exchanges import milliseconds, record_batch
from tests.support.messages.kio_messages import (
    Ports,
    request_frame,
    request_type,
    response_frame,
    response_type,
)
from tests.support.messages.requests import build, part
from tests.support.stories.playbook import START, Playbook, drive

TOPIC_IDS_FROM: Final = 13
REPLICA_STATE_FROM: Final = 15
HOT: Final = "hot"
"""The topic that quotas limit."""
COLD: Final = "cold"
MAX_BYTES: Final = 1 << 20
"""The partition_max_bytes of each partition."""
MAX_WAIT_MS: Final = 500
UPDATED_MS: Final = 11
"""A fetch of MAX_PARTITIONS is taken into its session, and planned, a part in each millisecond."""
UPDATED_SECONDS: Final = 0.015
"""A time at which this is over."""

Partition = tuple[str, int]

ALL: Final = {(HOT, 0): 10, (HOT, 1): 20, (COLD, 0): 30}
"""The partitions of a story, and their fetch offsets."""
BATCH: Final = record_batch(100)
NOTHING_NEW: Final = dict.fromkeys(ALL, (70, b""))
"""A response for all of them without records."""
OURS: Final = 12345
"""The session's id at the broker, and the client's id of it."""
THEIRS: Final = OURS ^ SESSION_MASK


def topic_id(topic: str) -> UUID:
    return UUID(bytes=topic.encode().ljust(16, b"."))


class Names(TopicNames):
    """Knows the names of all topics whose ids are made by topic_id(), except hidden ones."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden: set[str] = set()
        self.awaited: set[str] = set()
        """Topics whose names have been requested."""

    def look_up(self, topic_id: bytes) -> str:
        name = topic_id.rstrip(b".").decode()
        return "" if name in self.hidden else name

    def awaits(self, topic_id: bytes) -> bool:
        return topic_id.rstrip(b".").decode() in self.awaited


class Omitting(Quota):
    """A quota that omits the partitions of HOT that a story names, until a given time."""

    def __init__(self) -> None:
        super().__init__((FETCH,))
        self.omits = True
        self.topics: set[str] = {HOT}
        """The topics that it may omit."""
        self.until: Final[dict[int, float]] = {}
        """By partition: the end of the omission, in seconds since the story began."""
        self.bounds: Final[dict[int, int]] = {}
        """By partition: its bound in bytes."""
        self.plans: Final[list[list[int]]] = []
        """The partitions of each plan, in the plan's order."""
        self.items: Sequence[FetchItem] = []
        """The items of the last plan."""
        self.seen: Final[dict[int, tuple[int, int, int]]] = {}
        """By partition: its fetch_offset, max_bytes and high watermark in the last plan."""
        self._followers: Final[dict[SessionState, dict[FollowerItem, None]]] = {}
        """The items of each follower's session."""

    def may_omit(self, topic: str, partition: int, replica_id: int, who: Identity) -> bool:
        return topic in self.topics

    def plan_consumer_fetch(self, plan: ConsumerPlan, who: Identity, now: float) -> None:
        self.plan(plan, plan.items, now)

    def plan_follower_fetch(self, plan: FollowerPlan, who: Identity, now: float) -> None:
        self.plan(plan, self._every_item(plan), now)

    def plan(self, plan: FetchPlan, items: Sequence[FetchItem], now: float) -> None:
        """Decide about every item of a session."""
        self.plans.append([item.partition for item in items])
        self.items = items
        for item in items:
            self.seen[item.partition] = (item.fetch_offset, item.max_bytes, item.marks.high_watermark)
            until = START + self.until.get(item.partition, 0.0)
            if until > now:
                plan.omit(item, until)
            elif item.partition in self.bounds:
                plan.bound(item, self.bounds[item.partition])

    def _every_item(self, plan: FollowerPlan) -> list[FollowerItem]:
        """All items of the session of a plan, which decides anew about each."""
        state = plan.state = plan.state or SessionState()
        known = self._followers.setdefault(state, {})
        for item in plan.dropped:
            known.pop(item, None)
        for item in [item for item in known if item not in plan.items]:
            plan.include(item)
        known.update(dict.fromkeys(plan.items))
        return list(known)

    def omit(self, until: float, *partitions: int) -> None:
        """Omit these partitions until this time."""
        for partition in partitions:
            self.until[partition] = until


@dataclass
class Story:
    """A relay with one quota that omits partitions of fetches."""

    quota: Omitting = field(default_factory=Omitting)
    names: Names = field(default_factory=Names)
    between_brokers: bool = False

    def __post_init__(self) -> None:
        self.engine = QuotaEngine([self.quota])
        self.engine.configure(Limits({}), START)
        self.connect()

    def connect(self, principal: str = "ANONYMOUS") -> None:
        """Open a new connection."""
        self.relay = drive(
            self.engine,
            Ports(),
            Traffic(),
            principal=principal,
            topic_names=self.names,
            between_brokers=self.between_brokers,
        )

    @property
    def fetches(self) -> FetchSessions | None:
        """The relay's fetch sessions from which quotas may omit partitions."""
        gate: FetchGate | None = self.relay._requests.admission._fetch_gate
        return None if gate is None else gate._fetches

    def new_limits(self) -> None:
        self.engine.configure(Limits({}), START)


def _of(schema: Any, entity: str, topic: str, **values: Any) -> Any:
    return part(schema, entity, topic=topic, topic_id=topic_id(topic), **values)


def _grouped(partitions: Any) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, number in partitions:
        topics.setdefault(topic, []).append(number)
    return topics


def fetch(
    correlation_id: int,
    partitions: dict[Partition, int],
    version: int = 12,
    *,
    session: tuple[int, int] = (0, -1),
    forgotten: tuple[Partition, ...] = (),
    bounds: dict[Partition, int] | None = None,
    leader_epoch: int = 3,
    max_wait_ms: int = MAX_WAIT_MS,
    min_bytes: int = 1,
    replica_id: int = -1,
) -> bytes:
    """A request for these partitions from these offsets; `session`: its id and epoch; `replica_id`: the
    follower's.
    """
    schema = request_type(FETCH, version)
    state = {}
    if version >= REPLICA_STATE_FROM:
        state["replica_state"] = part(schema, "ReplicaState", replica_id=replica_id, replica_epoch=-1)
    topics = []
    for topic, numbers in _grouped(partitions).items():
        entries = tuple(
            part(
                schema,
                "FetchPartition",
                partition=number,
                current_leader_epoch=leader_epoch,
                fetch_offset=partitions[topic, number],
                log_start_offset=-1,
                partition_max_bytes=(bounds or {}).get((topic, number), MAX_BYTES),
            )
            for number in numbers
        )
        topics.append(_of(schema, "FetchTopic", topic, partitions=entries))
    gone = [
        _of(schema, "ForgottenTopic", topic, partitions=tuple(numbers))
        for topic, numbers in _grouped(forgotten).items()
    ]
    request = build(
        schema,
        replica_id=replica_id,
        max_wait=milliseconds(max_wait_ms),
        min_bytes=min_bytes,
        max_bytes=50 << 20,
        isolation_level=0,
        session_id=session[0],
        session_epoch=session[1],
        topics=tuple(topics),
        forgotten_topics_data=tuple(gone),
        rack_id="",
        **state,
    )
    return request_frame(request, correlation_id)


def fetched(
    correlation_id: int,
    partitions: dict[Partition, tuple[int, bytes]],
    version: int = 12,
    *,
    session_id: int = 0,
    error_code: int = 0,
    throttle_ms: int = 0,
    aborted: tuple[()] | None = None,
    failed: ErrorCode = ErrorCode.none,
) -> bytes:
    """The response: by partition its high watermark and records. The last stable offset is one less, and the
    log starts at 1.

    `failed`: what partitions without a known high watermark have instead.
    """
    schema = response_type(FETCH, version)
    topics = []
    for topic, numbers in _grouped(partitions).items():
        entries = tuple(
            part(
                schema,
                "PartitionData",
                partition_index=number,
                error_code=failed if partitions[topic, number][0] < 0 else ErrorCode.none,
                high_watermark=partitions[topic, number][0],
                last_stable_offset=partitions[topic, number][0] - 1,
                log_start_offset=1,
                aborted_transactions=aborted,
                preferred_read_replica=-1,
                records=partitions[topic, number][1],
            )
            for number in numbers
        )
        topics.append(_of(schema, "FetchableTopicResponse", topic, partitions=entries))
    response = build(
        schema,
        throttle_time=milliseconds(throttle_ms),
        error_code=ErrorCode(error_code),
        session_id=session_id,
        responses=tuple(topics),
    )
    return response_frame(response, correlation_id)


def opened(version: int = 12, partitions: dict[Partition, int] = ALL) -> tuple[Story, Playbook]:
    """A story whose client has opened a session, before any partition is omitted."""
    story = Story()
    told = dict.fromkeys(partitions, (70, b""))
    play = Playbook(story.relay)
    play.client(fetch(1, partitions, version, session=(0, 0)))
    play.to_broker(fetch(1, partitions, version, session=(0, 0)))
    play.broker(fetched(1, told, version, session_id=OURS))
    play.to_client(fetched(1, told, version, session_id=THEIRS))
    return story, play
