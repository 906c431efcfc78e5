"""Internal topics that the heartbeats of streams groups create: what is charged, and what waits."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

from proxy.admin.broker import Broker
from proxy.admin.messages.streams_groups import MISSING_INTERNAL_TOPICS
from proxy.admin.mutations import streams_topics
from proxy.admin.mutations.mutations import ControllerMutations
from proxy.admin.mutations.permits import PermitCosts
from proxy.admin.mutations.streams_topics import StreamsTopics
from proxy.admin.mutations.turns import LONGEST_SLEEP, MutationTurns
from proxy.quota.identity import Identity, QuotaEntity
from proxy.quota.kinds.controller_mutation import CONTROLLER_MUTATION_RATE, ControllerMutation
from proxy.quota.limits.limits import Limits
from proxy.relay.close_reasons import RelayError
from proxy.upstream.partitions import Partitions, TopicKey
from proxy.wire.api_keys import CREATE_TOPICS, STREAMS_GROUP_DESCRIBE, STREAMS_GROUP_HEARTBEAT
from proxy.wire.apis.api import read_request_header
from proxy.wire.edit import LENGTH_SIZE
from proxy.wire.reader import Reader
from tests.support.admin.mutation_story import CLUSTER, NODE_ID, USER, Counts
from tests.support.admin.rights import FixedRights
from tests.support.messages.kio_messages import read_frame, request_frame, request_type, response_type
from tests.support.messages.mutations import intercepted, payload_of, to_end
from tests.support.messages.streams_groups import described, heartbeat, heartbeat_response
from tests.support.waiting import reached

RATE = 2.0
BURST = 22
PARTITIONS = 10
UNAUTHORIZED = "; Unauthorized to CREATE on topics a."


class Cluster:
    """A client, the quota and a broker with streams groups; the clock is a number."""

    def __init__(self, rate: float | None = RATE) -> None:
        self.now = 1000.0
        self.quota = ControllerMutation()
        quotas = {} if rate is None else {QuotaEntity(USER, None): {CONTROLLER_MUTATION_RATE: rate}}
        self.quota.configure(Limits(quotas), self.now)
        self.counts = Counts()
        self.counts.known = {"source": PARTITIONS}
        self.groups: dict[str, Any] = {}
        """The request that has brought the topology, by group."""
        self.created: list[str] = []
        self.creates = True
        """Whether the controller creates what the broker asks for."""
        self.error_code = 0
        self.detail = ""
        self.asked: list[int] = []
        self.garbled = -1
        self.hangs = False
        """Whether the broker does not respond."""
        self.slept = 0.0
        self.gives_up = False
        """Whether the client closes its connection instead of waiting."""
        self.before_heartbeat: Callable[[], object] = lambda: None
        """Called when the broker begins with a heartbeat."""
        self.earlier_requests: Callable[[], object] = lambda: None
        """Called when the broker has responded to the earlier requests of the connection."""
        costs = PermitCosts(lambda: self.now)
        self.turns = MutationTurns(self.quota, lambda: self.now, self._sleep)
        self.answers = StreamsTopics(self.quota, lambda cluster_id: costs, self.turns, lambda: self.now)
        self.broker = Broker(
            CLUSTER, NODE_ID, self.counts, self.ask, FixedRights(), earlier_done=self._earlier_done
        )

    async def _earlier_done(self) -> None:
        await asyncio.sleep(0)
        self.earlier_requests()

    async def _sleep(self, seconds: float) -> None:
        if self.gives_up:
            raise asyncio.CancelledError
        self.slept += seconds
        self.now += seconds

    async def ask(self, frame: bytes) -> bytes:
        await asyncio.sleep(0)
        header = read_request_header(Reader([frame], LENGTH_SIZE))
        self.asked.append(header.api_key)
        if self.hangs:
            await asyncio.Event().wait()
        if header.api_key == self.garbled:
            return b"\0\0\0\0\0"
        request = read_frame(request_type(header.api_key, header.api_version), frame)
        if header.api_key == STREAMS_GROUP_DESCRIBE:
            [group] = request.group_ids
            [one] = self.groups[group].topology.subtopologies
            repartitions = {topic.name: topic.partitions for topic in one.repartition_source_topics}
            return payload_of(described(group, _changelogs(one), repartitions, one.source_topics))
        return payload_of(self._beat(request))

    def _beat(self, request: Any) -> Any:
        """Kafka's handleStreamsGroupHeartbeat."""
        self.before_heartbeat()
        if self.error_code:
            return heartbeat_response({}, self.error_code)
        if request.topology is not None:
            self.groups[request.group_id] = request
        [one] = self.groups[request.group_id].topology.subtopologies
        known = self.counts.known
        if not all(name in known for name in one.source_topics):
            return heartbeat_response({1: "Source topics are missing."})
        internal = [*_changelogs(one), *[topic.name for topic in one.repartition_source_topics]]
        missing = [name for name in internal if name not in known]
        if self.creates and not self.detail:
            self.created += missing
            known.update(dict.fromkeys(missing, known[one.source_topics[0]]))
        return heartbeat_response(
            {MISSING_INTERNAL_TOPICS: ", ".join(missing) + self.detail} if missing else {}
        )

    def send(self, message: Any, user: str = USER) -> Any:
        return to_end(self.answer(message, user))

    async def answer(self, message: Any, user: str = USER) -> Any:
        reply = await self.answers.answer(intercepted(request_frame(message), user), self.broker)
        assert not reply.forwards
        return read_frame(response_type(STREAMS_GROUP_HEARTBEAT, 0), reply.frame)

    @property
    def tokens(self) -> float:
        [bucket] = self.quota.live()
        tokens = bucket.state(self.now).tokens
        assert tokens is not None
        return tokens


def _changelogs(subtopology: Any) -> list[str]:
    return [topic.name for topic in subtopology.state_changelog_topics]


def names(group: str, count: int) -> list[str]:
    return [f"{group}-{number}" for number in range(count)]


def joining(group: str, count: int = 1) -> Any:
    return heartbeat(group, "member", names(group, count))


def staying(group: str) -> Any:
    return heartbeat(group, "member", epoch=1)


def test_each_topic_costs_its_partitions() -> None:
    cluster = Cluster()
    response = cluster.send(joining("g", 2))
    assert [status.status_code for status in response.status] == [MISSING_INTERNAL_TOPICS]
    assert cluster.tokens == BURST - 2 * PARTITIONS
    assert cluster.asked == [STREAMS_GROUP_HEARTBEAT]


def test_repartition_topics_have_their_own_partitions() -> None:
    cluster = Cluster(1e6)
    full = 11e6
    cluster.send(heartbeat("g", "member", ["g-0"], repartitions={"g-r": 40, "g-s": 0}))
    # The changelog has as many as the largest topic that it is made from, and so may the other one.
    assert cluster.tokens == full - 3 * 40


def test_the_largest_source_counts() -> None:
    cluster = Cluster(1e6)
    cluster.counts.known["larger"] = 3 * PARTITIONS
    full = 11e6
    cluster.send(heartbeat("g", "member", ["g-0"], sources=["source", "larger"]))
    assert cluster.tokens == full - 3 * PARTITIONS


def test_new_groups_create_topics_at_the_rate() -> None:
    cluster = Cluster()
    for number in range(100):
        cluster.send(joining(f"g{number}"))
    assert len(cluster.created) == 100
    assert cluster.slept == pytest.approx((100 * PARTITIONS - BURST - PARTITIONS) / RATE, abs=1)


def test_groups_at_the_same_time_wait_for_each_other() -> None:
    cluster = Cluster()

    async def together() -> None:
        await asyncio.gather(*[cluster.answer(joining(f"g{number}")) for number in range(20)])

    to_end(together())
    assert cluster.slept == pytest.approx((20 * PARTITIONS - BURST - PARTITIONS) / RATE, abs=1)
    assert cluster.turns._lines == {}


def test_no_topic_is_charged_by_going_through_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A heartbeat may have thousands."""
    sums: list[int] = []
    of = streams_topics._Pending.of

    def counted(pending: Any, topics: dict[str, int]) -> int:
        sums.append(len(topics))
        return of(pending, topics)

    monkeypatch.setattr(streams_topics._Pending, "of", counted)
    cluster = Cluster(1e9)
    cluster.send(joining("g", 900))
    assert len(cluster.created) == 900
    assert len(sums) <= 5


def test_what_is_charged_while_a_heartbeat_looks_for_its_topics_counts() -> None:
    cluster = Cluster()
    who = Identity(USER, "another", "10.0.0.1")
    topics = cluster.counts.topics

    async def charges_another(node_id: int, keys: Sequence[TopicKey]) -> dict[TopicKey, Partitions]:
        bucket = cluster.quota.bucket(who, cluster.now)
        if len(cluster.counts.questions) == 1 and bucket is not None:  # in its turn, it looks once more
            cluster.quota.charge_permissive(bucket, BURST + 20, cluster.now, who, CREATE_TOPICS)
        return await topics(node_id, keys)

    cluster.counts.topics = charges_another  # type: ignore[method-assign]
    cluster.send(joining("g"))
    assert cluster.slept == pytest.approx(20 / RATE)


def test_a_heartbeat_waits_for_requests_of_other_apis() -> None:
    mutations = ControllerMutations(ControllerMutation(), lambda: 0.0)
    assert mutations.streams_topics._turns is mutations._turns


def test_topics_that_exist_cost_nothing() -> None:
    cluster = Cluster()
    cluster.counts.known.update(dict.fromkeys(names("g", 3), PARTITIONS))
    cluster.send(heartbeat("g", "member", names("g", 4)))
    assert cluster.created == ["g-3"]
    assert cluster.tokens == BURST - PARTITIONS


def test_the_heartbeats_of_a_complete_group_are_only_forwarded() -> None:
    cluster = Cluster()
    cluster.send(joining("g", 5))
    cluster.send(staying("g"))  # the group has its topics
    assert cluster.tokens < 0
    cluster.asked.clear()
    slept = cluster.slept
    for _ in range(10):
        assert cluster.send(staying("g")).status is None
    assert cluster.asked == [STREAMS_GROUP_HEARTBEAT] * 10
    assert cluster.slept == slept


def test_a_deleted_topic_of_a_complete_group_is_created_again_when_a_controller_would_admit_it() -> None:
    cluster = Cluster()
    cluster.send(joining("g", 5))
    cluster.send(staying("g"))
    assert cluster.tokens < 0
    slept = cluster.slept
    for name in names("g", 5):
        del cluster.counts.known[name]
    cluster.send(staying("g"))
    assert cluster.created == 2 * names("g", 5)
    assert cluster.slept - slept == pytest.approx(5 * PARTITIONS / RATE)
    assert cluster.tokens == pytest.approx(-PARTITIONS)


def test_topics_that_are_deleted_just_before_the_broker_looks_are_paid_for_afterwards() -> None:
    cluster = Cluster()
    cluster.send(joining("g", 2))
    cluster.send(staying("g"))
    before = cluster.tokens
    cluster.before_heartbeat = lambda: cluster.counts.known.pop("g-1", None)
    cluster.creates = False
    cluster.send(staying("g"))
    assert cluster.tokens == before - PARTITIONS


def test_topics_that_exist_again_after_the_heartbeat_are_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their ids are others."""
    cluster = Cluster()
    cluster.send(joining("g", 2))
    cluster.send(staying("g"))
    before = cluster.tokens
    remaining = cluster.counts.topics

    async def topics(node_id: int, keys: Sequence[TopicKey]) -> dict[TopicKey, Partitions]:
        found = await remaining(node_id, keys)
        if STREAMS_GROUP_HEARTBEAT in cluster.asked:
            found["g-1"] = Partitions(found["g-1"].count, bytes(16))
        return found

    monkeypatch.setattr(cluster.counts, "topics", topics)
    cluster.asked.clear()
    monkeypatch.setattr(
        cluster, "_beat", lambda request: heartbeat_response({MISSING_INTERNAL_TOPICS: "g-1"})
    )
    cluster.send(staying("g"))
    assert cluster.tokens == before - PARTITIONS


def test_a_source_that_grows_before_the_broker_reads_the_heartbeat_makes_its_topics_dearer() -> None:
    cluster = Cluster()
    cluster.before_heartbeat = lambda: cluster.counts.known.update(source=1000)
    cluster.send(joining("g", 2))
    assert cluster.tokens == BURST - 2 * 1000


def test_the_proxy_looks_when_the_broker_has_responded_to_the_earlier_requests() -> None:
    """A Fetch before the heartbeat may wait for minutes, in which topics change."""
    cluster = Cluster()
    cluster.earlier_requests = lambda: cluster.counts.known.update(source=1000)
    cluster.send(joining("g", 2))
    assert cluster.slept == pytest.approx((1000 - BURST) / RATE)
    assert cluster.tokens == pytest.approx(-1000)


def test_a_topology_that_another_proxy_has_seen_is_paid_for() -> None:
    cluster = Cluster()
    cluster.send(joining("g", 1))
    cluster.send(staying("g"))
    before = cluster.tokens
    cluster.groups["g"] = joining("g", 2)
    cluster.creates = False
    cluster.send(staying("g"))
    assert cluster.tokens == before - PARTITIONS


def test_a_group_does_not_wait_for_what_it_has_paid_for() -> None:
    """Its members would lose their sessions."""
    cluster = Cluster()
    cluster.creates = False
    cluster.send(joining("g", 100))
    slept = cluster.slept
    for _ in range(3):
        cluster.send(staying("g"))
    cluster.creates = True
    for _ in range(3):
        cluster.send(staying("g"))
    assert cluster.slept == slept
    assert cluster.tokens == pytest.approx(-PARTITIONS)


@pytest.mark.parametrize("count", [1, 3, 4, 100])
def test_the_last_topic_is_created_when_a_controller_would_admit_it(count: int) -> None:
    """It admits one after the other, each when the tokens are not below zero."""
    cluster = Cluster()
    cluster.send(joining("g", count))
    assert cluster.created == names("g", count)
    assert cluster.slept == pytest.approx(max((count - 1) * PARTITIONS - BURST, 0) / RATE)


def test_a_client_that_does_not_wait_for_the_quota_goes_on_where_it_has_stopped() -> None:
    cluster = Cluster()
    cluster.gives_up = True
    with pytest.raises(asyncio.CancelledError):
        cluster.send(joining("g", 10))
    assert cluster.asked == []
    assert cluster.tokens == BURST - 3 * PARTITIONS
    cluster.gives_up = False
    cluster.send(joining("g", 10))
    assert cluster.slept == pytest.approx((9 * PARTITIONS - BURST) / RATE)
    assert cluster.tokens == pytest.approx(-PARTITIONS)


def test_topics_that_would_have_more_partitions_than_were_charged() -> None:
    cluster = Cluster()
    cluster.creates = False
    cluster.send(joining("g", 5))
    cluster.counts.known["source"] = 3 * PARTITIONS
    cluster.send(staying("g"))
    assert cluster.slept == pytest.approx((5 * 3 * PARTITIONS - 2 * PARTITIONS - BURST) / RATE)
    assert cluster.tokens == pytest.approx(-2 * PARTITIONS)


def test_a_group_whose_source_topics_are_created_later() -> None:
    cluster = Cluster()
    cluster.send(heartbeat("g", "member", names("g", 5), sources=["later"]))
    assert cluster.tokens == BURST
    cluster.counts.known["later"] = 100
    cluster.send(staying("g"))
    assert cluster.created == names("g", 5)
    assert cluster.slept == pytest.approx((4 * 100 - BURST) / RATE)
    assert cluster.tokens == pytest.approx(-100)


def test_who_closes_the_connection_at_once_pays_as_well() -> None:
    cluster = Cluster()
    cluster.hangs = True

    async def close() -> None:
        answering = asyncio.ensure_future(cluster.answer(joining("g", 2)))
        await reached(lambda: cluster.asked, "the heartbeat")
        answering.cancel()
        await asyncio.wait([answering])

    to_end(close())
    assert cluster.tokens == BURST - 2 * PARTITIONS


def test_a_heartbeat_with_an_error_gives_nothing_back_that_another_creates() -> None:
    """The topics do not exist yet."""
    cluster = Cluster()
    cluster.creates = False
    cluster.send(joining("g", 2))
    cluster.error_code = 25
    cluster.send(joining("g", 2))
    cluster.send(joining("g", 3))
    cluster.send(staying("g"))
    assert cluster.tokens <= BURST - 2 * PARTITIONS


@pytest.mark.parametrize("first", [0, 1])
def test_one_with_an_error_at_the_same_moment(first: int) -> None:
    cluster = Cluster()
    cluster.creates = False
    cluster.groups["g"] = joining("g", 2)
    beat = cluster._beat

    def rejects_one(request: Any) -> Any:
        return heartbeat_response({}, 25) if request.member_id == "unknown" else beat(request)

    cluster._beat = rejects_one  # type: ignore[method-assign]
    messages = [heartbeat("g", "unknown", names("g", 2)), joining("g", 2)]

    async def together() -> None:
        await asyncio.gather(*[cluster.answer(messages[(first + place) % 2]) for place in range(2)])

    to_end(together())
    assert cluster.tokens == pytest.approx(BURST - 2 * PARTITIONS)


def test_a_group_that_is_not_known() -> None:
    """It joined before the proxy started."""
    cluster = Cluster()
    cluster.groups["g"] = joining("g", 3)
    cluster.counts.known["g-0"] = PARTITIONS
    cluster.send(staying("g"))
    assert cluster.created == ["g-1", "g-2"]
    assert cluster.tokens == BURST - 2 * PARTITIONS


def test_topics_that_are_deleted_and_created_again() -> None:
    cluster = Cluster()
    cluster.send(joining("g"))
    cluster.send(staying("g"))
    cluster.now += 100
    del cluster.counts.known["g-0"]
    cluster.creates = False  # not yet
    cluster.send(staying("g"))
    assert cluster.tokens == BURST - PARTITIONS


def test_the_same_topics_are_charged_once() -> None:
    """The broker may not know yet that they exist, and asks for them again."""
    cluster = Cluster()
    cluster.creates = False
    cluster.send(joining("g", 2))
    for _ in range(5):
        cluster.send(staying("g"))
    assert cluster.tokens == BURST - 2 * PARTITIONS
    cluster.creates = True
    cluster.send(staying("g"))
    cluster.send(staying("g"))
    assert cluster.tokens == BURST - 2 * PARTITIONS


def test_who_may_not_create_topics_pays_nothing() -> None:
    cluster = Cluster()
    cluster.detail = UNAUTHORIZED
    cluster.send(joining("g", 5))
    assert cluster.tokens == BURST


def test_a_heartbeat_that_the_broker_rejects_costs_nothing() -> None:
    cluster = Cluster()
    cluster.error_code = 25
    assert cluster.send(joining("g", 5)).error_code == 25
    assert cluster.tokens == BURST
    assert cluster.asked == [STREAMS_GROUP_HEARTBEAT]


def test_clients_without_a_quota() -> None:
    cluster = Cluster()
    cluster.send(joining("g", 100), user="another")
    assert cluster.asked == [STREAMS_GROUP_HEARTBEAT]


def test_a_limit_that_is_removed_ends_the_wait() -> None:
    cluster = Cluster()
    cluster.send(joining("g", 100))

    async def remove(seconds: float) -> None:
        cluster.now += seconds
        cluster.quota.configure(Limits({}), cluster.now)

    cluster.turns._sleep = remove
    before = cluster.now
    cluster.send(joining("h"))
    assert cluster.now == before + LONGEST_SLEEP


def test_counts_that_are_not_known_cost_nothing(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster()
    cluster.counts.unreachable = True
    cluster.send(joining("g", 5))
    assert cluster.tokens == BURST
    assert "not applied" in caplog.text


@pytest.mark.parametrize("garbled", [STREAMS_GROUP_HEARTBEAT, STREAMS_GROUP_DESCRIBE])
def test_a_response_that_does_not_parse(garbled: int) -> None:
    cluster = Cluster()
    cluster.garbled = garbled
    cluster.groups["g"] = joining("g")
    with pytest.raises(RelayError, match="does not parse"):
        cluster.send(staying("g"))


def test_the_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams_topics, "GROUPS_AT_MOST", 3)
    cluster = Cluster(1e6)
    cluster.creates = False
    _each(cluster, [joining(f"g{number}") for number in range(5)])
    assert len(cluster.answers._pending) == 3
    cluster.creates = True
    for _ in range(2):
        _each(cluster, [staying(f"g{number}") for number in range(5)])
    assert len(cluster.answers._complete) == 3
    monkeypatch.setattr(streams_topics, "TOPICS_AT_MOST", 100)
    _each(cluster, [joining(f"wide{number}", 40) for number in range(3)])
    for _ in range(2):
        _each(cluster, [staying(f"wide{number}") for number in range(3)])
    assert [group for _, group in cluster.answers._complete] == ["wide1", "wide2"]
    assert cluster.answers._topics == 2 * (40 + 1 + 1)
    long = "g" * (streams_topics.MAX_GROUP_ID + 1)
    _each(cluster, [joining(long), staying(long)])
    assert [group for _, group in cluster.answers._complete] == ["wide1", "wide2"]


def _each(cluster: Cluster, messages: Iterable[Any]) -> None:
    for message in messages:
        cluster.send(message)
