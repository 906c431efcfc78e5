"""Who is a follower: only where brokers ask each other, and by the id that the request gives; and what
becomes of its sessions.
"""

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from proxy.quota.engine import QuotaEngine
from proxy.quota.identity import Identity
from proxy.quota.kinds.replication.throttled_replicas import METADATA_TOPIC
from proxy.quota.verdict import ALLOW, Verdict
from proxy.relay.counters.traffic import Traffic
from proxy.relay.fetch.free_sessions import MAX_SESSIONS
from proxy.relay.fetch.sessions import SESSION_MASK
from proxy.wire.addresses import Unchanged
from proxy.wire.views import RequestView, ResponseView
from tests.support.messages.exchanges import milliseconds, record_batch
from tests.support.messages.kio_messages import (
    request_frame,
    request_type,
    response_frame,
    response_type,
    versions,
)
from tests.support.messages.requests import build, part
from tests.support.present import present
from tests.support.simulations.move import START as LIMITED_AT
from tests.support.simulations.move import quotas, throttled
from tests.support.stories.fetching import BATCH, COLD, HOT, Omitting, Partition, Story, fetch, fetched
from tests.support.stories.playbook import Playbook, drive

ASKED = {(HOT, 0): 10}
TOLD = {(HOT, 0): (70, record_batch(100))}
TOLD_EMPTY = {(HOT, 0): (70, b"")}
CONSUMER = -1
OURS = 77
"""A session's id, as the broker knows it, and as its client does."""
THEIRS = OURS ^ SESSION_MASK
NOTHING = {(COLD, 0): (5, b"")}


@dataclass
class Seen:
    """Which replica ids the quota was told."""

    planned: list[int] = field(default_factory=list)
    charged: list[tuple[int, int]] = field(default_factory=list)
    """With the bytes that came."""


class Watching(Omitting):
    def __init__(self, seen: Seen) -> None:
        super().__init__()
        self.told = seen
        self.item_api_keys = (1,)

    def may_omit(self, topic: str, partition: int, replica_id: int, who: Identity) -> bool:
        if replica_id not in self.told.planned:
            self.told.planned.append(replica_id)
        return super().may_omit(topic, partition, replica_id, who)

    def charge(self, request: RequestView, response: ResponseView, who: Identity, now: float) -> Verdict:
        self.told.charged.append((request.replica_id, sum(item.size for item in response.items)))
        return ALLOW


def seen(version: int, between_brokers: bool, replica_id: int) -> Seen:
    """What a quota sees of one fetch, which passes unchanged."""
    found = Seen()
    story = Story(Watching(found), between_brokers=between_brokers)
    asked = fetch(1, ASKED, version, replica_id=replica_id)
    told = fetched(1, TOLD, version)
    Playbook(story.relay).client(asked).to_broker(asked).broker(told).to_client(told).idle()
    return found


@pytest.mark.parametrize("version", versions(1))
def test_a_follower_is_known_by_its_id(version: int) -> None:
    assert seen(version, True, 2) == Seen([2], [(2, 100)])


@pytest.mark.parametrize("version", versions(1))
def test_a_forged_id_is_a_consumers(version: int) -> None:
    assert seen(version, False, 2) == Seen([CONSUMER], [(CONSUMER, 100)])


@pytest.mark.parametrize("replica_id", [CONSUMER, -2, -3], ids=["", "debugging", "moving to another disk"])
@pytest.mark.parametrize("version", [12, 17])
def test_a_consumer_among_brokers_is_one(version: int, replica_id: int) -> None:
    assert seen(version, True, replica_id) == Seen([replica_id], [(replica_id, 100)])


@pytest.mark.parametrize("version", [12, 17])
def test_a_throttle_that_comes_while_a_follower_fetches_finds_its_session_taken_over(version: int) -> None:
    """Nothing is rejected, so the in-sync replicas of the same connection notice nothing of it. The broker is
    asked for the watermarks of the omitted replica, and responds at once.
    """
    story = Story(between_brokers=True)
    story.quota.omits = False
    story.new_limits()
    cold = {(COLD, 0): 5}
    play = Playbook(story.relay)
    opens = fetch(1, cold, version, session=(0, 0), replica_id=2)
    play.client(opens).to_broker(opens)
    play.broker(fetched(1, NOTHING, version, session_id=OURS))
    play.to_client(fetched(1, NOTHING, version, session_id=THEIRS))
    story.quota.omits = True
    story.quota.omit(9.0, 0)
    story.new_limits()
    both = {(HOT, 0): 10, (COLD, 0): 6}
    probe: dict[str, Any] = {"bounds": {(HOT, 0): 0}, "max_wait_ms": 0}
    play.client(fetch(2, both, version, session=(THEIRS, 1), replica_id=2))
    play.to_broker(fetch(2, both, version, session=(OURS, 1), replica_id=2, **probe))
    told = {(HOT, 0): (70, b""), (COLD, 0): (70, record_batch(100))}
    play.broker(fetched(2, told, version, session_id=OURS))
    play.to_client(fetched(2, told, version, session_id=THEIRS))
    play.client(fetch(3, {(COLD, 0): 7}, version, session=(THEIRS, 2), replica_id=2))
    gone = ((HOT, 0),)
    play.to_broker(fetch(3, {(COLD, 0): 7}, version, session=(OURS, 2), forgotten=gone, replica_id=2))


def following(
    version: int = 17,
    partitions: dict[Partition, int] = ASKED,
    told: dict[Partition, tuple[int, bytes]] = TOLD,
    session_id: int = 0,
    failed: ErrorCode = ErrorCode.none,
) -> tuple[Story, Playbook]:
    """A story, its playbook, and follower 2's first fetch in it."""
    story = Story(between_brokers=True)
    play = Playbook(story.relay)
    play.client(fetch(1, partitions, version, session=(session_id, 0), replica_id=2))
    broker_id = session_id ^ SESSION_MASK if session_id else 0
    play.to_broker(fetch(1, partitions, version, session=(broker_id, 0), replica_id=2))
    play.broker(fetched(1, told, version, session_id=OURS, failed=failed))
    play.to_client(fetched(1, told, version, session_id=THEIRS, failed=failed))
    return story, play


def test_a_session_of_an_earlier_connection_is_closed_at_the_broker() -> None:
    """A follower whose connection broke names it, to have a new one in its place."""
    _, play = following(session_id=55 ^ SESSION_MASK)
    play.idle()


def test_a_session_is_closed_at_the_broker_though_nothing_was_left_of_the_request_that_closed_it() -> None:
    story, play = following()
    story.quota.omit(0.7, 0)
    play.client(fetch(2, ASKED, 17, session=(THEIRS, 0), replica_id=2)).to_broker()
    play.at(0.5).to_client(fetched(2, TOLD_EMPTY, 17))
    play.at(0.7).client(fetch(3, ASKED, 17, session=(0, 0), replica_id=2))
    play.to_broker(fetch(3, ASKED, 17, session=(OURS, 0), replica_id=2))
    play.broker(fetched(3, TOLD, 17)).to_client(fetched(3, TOLD, 17))
    play.client(fetch(4, ASKED, 17, session=(0, 0), replica_id=2))
    play.to_broker(fetch(4, ASKED, 17, session=(0, 0), replica_id=2))


@pytest.mark.parametrize(
    ("error", "next_session"),
    [
        (ErrorCode.fetch_session_id_not_found, (0, 0)),
        (ErrorCode.invalid_fetch_session_epoch, (THEIRS, 0)),
        (ErrorCode.fetch_session_topic_id_error, (THEIRS, 0)),
    ],
)
def test_a_session_that_the_broker_has_lost_is_opened_anew(
    error: ErrorCode, next_session: tuple[int, int]
) -> None:
    """As Kafka's followers do it, more often than a connection may have sessions; no other one is left."""
    story, play = following()
    ours = OURS
    for number in range(MAX_SESSIONS + 2):
        at = 10 * number
        theirs = ours ^ SESSION_MASK
        play.client(fetch(at + 2, {(HOT, 0): 20}, 17, session=(theirs, 1), replica_id=2))
        play.to_broker(fetch(at + 2, {(HOT, 0): 20}, 17, session=(ours, 1), replica_id=2))
        rejected = fetched(at + 2, {}, 17, error_code=error.value)
        play.broker(rejected).to_client(rejected)
        named = theirs if next_session[0] else 0
        play.client(fetch(at + 3, ASKED, 17, session=(named, 0), replica_id=2))
        play.to_broker(fetch(at + 3, ASKED, 17, session=(ours if named else 0, 0), replica_id=2))
        ours += 1
        play.broker(fetched(at + 3, TOLD, 17, session_id=ours))
        play.to_client(fetched(at + 3, TOLD, 17, session_id=ours ^ SESSION_MASK))
    assert len(present(story.fetches)._sessions) == 1


def test_a_broker_without_room_for_a_session_is_asked_for_all_each_time() -> None:
    story = Story(between_brokers=True)
    play = Playbook(story.relay)
    for correlation_id in (1, 2):
        asked = fetch(correlation_id, ASKED, 17, session=(0, 0), replica_id=2)
        told = fetched(correlation_id, TOLD, 17)
        play.client(asked).to_broker(asked).broker(told).to_client(told)
    assert story.relay.status.follower == (2, 60)
    story.quota.omit(9.0, 0)
    both = {(HOT, 0): 10, (COLD, 0): 1}
    play.client(fetch(3, both, 17, session=(0, 0), replica_id=2))
    play.to_broker(fetch(3, {(COLD, 0): 1}, 17, session=(0, 0), replica_id=2))
    play.broker(fetched(3, {(COLD, 0): (5, BATCH)}, 17))
    play.to_client(fetched(3, {(HOT, 0): (70, b""), (COLD, 0): (5, BATCH)}, 17)).idle()


@pytest.mark.parametrize("version", [12, 17])
def test_a_topic_that_is_made_again_is_another_one(version: int) -> None:
    """The follower forgets the deleted one; what was known of it is not told of its successor."""
    story, play = following(version)
    again = {(HOT, 0): 0}
    play.client(fetch(2, {}, version, session=(THEIRS, 1), forgotten=((HOT, 0),), replica_id=2))
    play.to_broker(fetch(2, {}, version, session=(OURS, 1), forgotten=((HOT, 0),), replica_id=2))
    play.broker(fetched(2, {}, version)).to_client(fetched(2, {}, version))
    assert story.relay.status.follower == (2, 0)
    play.client(fetch(3, again, version, session=(0, 0), replica_id=2))
    play.to_broker(fetch(3, again, version, session=(0, 0), replica_id=2))
    assert story.quota.seen[0][2] == -1


@pytest.mark.parametrize("failed", [ErrorCode.not_leader_or_follower, ErrorCode.unknown_topic_id])
def test_a_partition_without_a_leader_passes(failed: ErrorCode) -> None:
    """Its response has no high watermark, so nothing is learned from it."""
    story, play = following(told={(HOT, 0): (-1, b"")}, failed=failed)
    assert story.relay.status.follower == (2, 0)
    story.quota.omit(9.0, 0)
    # Where nothing is known of it, whoever opens a session has to ask.
    play.client(fetch(2, ASKED, 17, session=(THEIRS, 0), replica_id=2))
    play.to_broker(fetch(2, ASKED, 17, session=(OURS, 0), bounds={(HOT, 0): 0}, max_wait_ms=0, replica_id=2))


def newcomer() -> tuple[Story, Playbook]:
    """A follower whose session gets a first partition under a quota, all of which is omitted."""
    story, play = following(partitions={(COLD, 0): 5}, told=NOTHING)
    story.quota.omit(9.0, 0)
    play.client(fetch(2, ASKED, 17, session=(THEIRS, 1), forgotten=((COLD, 0),), replica_id=2))
    probe: dict[str, Any] = {"bounds": {(HOT, 0): 0}, "max_wait_ms": 0}
    gone = ((COLD, 0),)
    play.to_broker(fetch(2, ASKED, 17, session=(OURS, 1), forgotten=gone, replica_id=2, **probe))
    return story, play


def test_a_replica_of_which_nothing_is_known_is_asked_about_though_nothing_else_is_left() -> None:
    """When it turns out to be in sync, the broker gets it as the follower has it."""
    story, play = newcomer()
    play.broker(fetched(2, {(HOT, 0): (10, b"")}, 17, session_id=OURS))
    play.to_client(fetched(2, {(HOT, 0): (10, b"")}, 17, session_id=THEIRS))
    story.quota.omit(0.0, 0)
    play.client(fetch(3, {}, 17, session=(THEIRS, 2), replica_id=2))
    assert story.quota.seen[0][2] == 10
    play.to_broker(fetch(3, ASKED, 17, session=(OURS, 2), replica_id=2))


def test_a_replica_whose_broker_does_not_respond_to_the_question_is_asked_about_once() -> None:
    """Else the follower would fetch without a pause."""
    _, play = newcomer()
    play.broker(
        fetched(2, {(HOT, 0): (-1, b"")}, 17, session_id=OURS, failed=ErrorCode.not_leader_or_follower)
    )
    play.relay.take_to_client()
    play.client(fetch(3, {}, 17, session=(THEIRS, 2), replica_id=2)).to_broker().muted(0.5)


def test_a_new_leader_epoch_does_not_make_a_replica_unknown() -> None:
    """A broker does not repeat a high watermark in a session, so a replica in sync would stay omitted."""
    story, play = following()
    play.client(fetch(2, ASKED, 17, session=(THEIRS, 1), leader_epoch=4, replica_id=2))
    play.to_broker(fetch(2, ASKED, 17, session=(OURS, 1), leader_epoch=4, replica_id=2))
    play.broker(fetched(2, {}, 17, session_id=OURS)).to_client(fetched(2, {}, 17, session_id=THEIRS))
    play.client(fetch(3, {}, 17, session=(THEIRS, 2), replica_id=2))
    assert story.quota.seen[0][2] == 70


def test_what_a_follower_lacks_is_known_of_all_its_replicas() -> None:
    """Throttled or not, by what the leader has said last of each."""
    both = {(HOT, 0): 10, (COLD, 0): 1}
    story, play = following(partitions=both, told={(HOT, 0): (70, BATCH), (COLD, 0): (5, BATCH)})
    assert story.relay.status.follower == (2, 60 + 4)
    play.client(fetch(2, {(HOT, 0): 60, (COLD, 0): 5}, 17, session=(THEIRS, 1), replica_id=2))
    assert story.relay.status.follower == (2, 10)
    play.to_broker(fetch(2, {(HOT, 0): 60, (COLD, 0): 5}, 17, session=(OURS, 1), replica_id=2))
    play.broker(fetched(2, {(COLD, 0): (8, BATCH)}, 17, session_id=OURS))
    play.to_client(fetched(2, {(COLD, 0): (8, BATCH)}, 17, session_id=THEIRS))
    assert story.relay.status.follower == (2, 10 + 3)
    play.client(fetch(3, {}, 17, session=(THEIRS, 2), forgotten=((HOT, 0),), replica_id=2))
    assert story.relay.status.follower == (2, 3)


def test_of_a_consumer_nothing_is_known() -> None:
    story = Story(between_brokers=True)
    play = Playbook(story.relay)
    assert story.relay.status.follower is None
    play.client(fetch(1, ASKED, 17)).to_broker(fetch(1, ASKED, 17))
    play.broker(fetched(1, TOLD, 17)).to_client(fetched(1, TOLD, 17)).idle()
    assert story.relay.status.follower is None


def metadata_log(version: int, replica_id: int = 3) -> tuple[bytes, bytes]:
    """A controller's fetch of the metadata log, and the response, which has what no other one has."""
    of_topic = {"topic": METADATA_TOPIC, "topic_id": UUID(int=1)}
    schema = request_type(1, version)
    state: dict[str, Any] = {"replica_id": replica_id}
    if version >= 15:
        state = {"replica_state": part(schema, "ReplicaState", replica_id=replica_id, replica_epoch=-1)}
    asked = part(
        schema,
        "FetchPartition",
        partition=0,
        log_start_offset=-1,
        current_leader_epoch=4,
        fetch_offset=100,
        last_fetched_epoch=4,
        partition_max_bytes=8 << 20,
        replica_directory_id=UUID(int=9),
    )
    request = build(
        schema,
        cluster_id="a cluster",
        max_wait=milliseconds(500),
        min_bytes=0,
        max_bytes=8 << 20,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=(part(schema, "FetchTopic", partitions=(asked,), **of_topic),),
        forgotten_topics_data=(),
        rack_id="",
        **state,
    )
    schema = response_type(1, version)
    leader = part(schema, "LeaderIdAndEpoch", leader_id=1, leader_epoch=5)
    told = part(
        schema,
        "PartitionData",
        partition_index=0,
        error_code=ErrorCode.none,
        high_watermark=200,
        last_stable_offset=-1,
        log_start_offset=50,
        aborted_transactions=None,
        preferred_read_replica=-1,
        current_leader=leader,
        snapshot_id=part(schema, "SnapshotId", end_offset=50, epoch=3),
        records=BATCH,
    )
    topic = part(schema, "FetchableTopicResponse", partitions=(told,), **of_topic)
    endpoints = {}
    if version >= 16:
        node = part(schema, "NodeEndpoint", node_id=1, host="controller", port=9093, rack=None)
        endpoints = {"node_endpoints": (node,)}
    head = {"throttle_time": milliseconds(0), "error_code": ErrorCode.none, "session_id": 0}
    response = build(schema, responses=(topic,), **head, **endpoints)
    return request_frame(request, 1), response_frame(response, 1)


@pytest.mark.parametrize("version", [12, 17])
def test_the_metadata_log_passes_as_it_is(version: int) -> None:
    """Whatever is throttled: here all that any broker sends or fetches, and nothing may come of it."""
    switched = {"leader.replication.throttled": "true", "follower.replication.throttled": "true"}
    quota = quotas(throttled(0, 0, topics={}, brokers={"1": switched, "3": switched}), [1])[1]
    engine = QuotaEngine([quota])
    engine.configure(quota.shared.limits, LIMITED_AT)
    relay = drive(engine, Unchanged(), Traffic(), principal="u", between_brokers=True, node_id=1)
    asked, told = metadata_log(version)
    Playbook(relay).client(asked).to_broker(asked).broker(told).to_client(told).idle()


def test_a_plan_learns_what_the_broker_has_reported_and_what_the_follower_has_fetched() -> None:
    """A throttled replica is in the broker's session while it is in sync, and only then: the limit is 0."""
    lists = {HOT: {"leader.replication.throttled.replicas": "*"}}
    quota = quotas(throttled(0, topics=lists), [1])[1]
    engine = QuotaEngine([quota])
    engine.configure(quota.shared.limits, LIMITED_AT)
    names = Story().names
    relay = drive(engine, Unchanged(), Traffic(), between_brokers=True, node_id=1, topic_names=names)
    play = Playbook(relay)
    all_of_it = {(HOT, 0): 70, (HOT, 1): 10, (COLD, 0): 5}
    probes: dict[str, Any] = {"bounds": {(HOT, 0): 0, (HOT, 1): 0}, "max_wait_ms": 0}

    def step(number: int, asked: Any, sent: Any, told: Any, **change: Any) -> None:
        epoch = number - 1
        ours, theirs = (OURS, THEIRS) if epoch else (0, 0)
        play.client(fetch(number, asked, 17, session=(theirs, epoch), replica_id=2))
        play.to_broker(fetch(number, sent, 17, session=(ours, epoch), replica_id=2, **change))
        play.broker(fetched(number, told, 17, session_id=OURS))
        play.to_client(fetched(number, told, 17, session_id=THEIRS))

    step(1, all_of_it, all_of_it, {(HOT, 0): (70, b""), (HOT, 1): (70, b""), (COLD, 0): (5, b"")}, **probes)
    step(2, {}, {(HOT, 0): 70}, {(HOT, 0): (80, b"")}, forgotten=((HOT, 1),))
    step(3, {}, {}, {}, forgotten=((HOT, 0),))
    step(4, {(HOT, 0): 80}, {(HOT, 0): 80}, {(HOT, 0): (80, b"")})
    step(5, {}, {}, {})
