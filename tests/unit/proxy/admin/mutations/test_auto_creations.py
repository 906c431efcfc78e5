"""Topics that Metadata requests create: what is admitted, charged and forwarded."""

from typing import Any

import pytest

from proxy.admin.broker import Broker
from proxy.admin.messages.fields import MAX_REQUEST_BYTES
from proxy.admin.mutations.auto_creations import PENDING_SECONDS, AutoCreations
from proxy.admin.mutations.permits import PermitCosts
from proxy.quota.identity import QuotaEntity
from proxy.quota.kinds.controller_mutation import CONTROLLER_MUTATION_RATE, ControllerMutation
from proxy.quota.limits.limits import Limits
from proxy.relay.close_reasons import RelayError
from proxy.wire.api_keys import METADATA
from proxy.wire.apis.api import read_request_header
from proxy.wire.edit import LENGTH_SIZE
from proxy.wire.errors import Malformed
from proxy.wire.reader import Reader
from tests.support.admin.mutation_story import CLUSTER, FORBIDDEN, NODE_ID, NOT_THERE, USER, Counts
from tests.support.admin.rights import FixedRights
from tests.support.messages.kio_messages import read_frame, request_frame, request_type
from tests.support.messages.mutations import intercepted, payload_of, to_end
from tests.unit.proxy.admin.messages.test_metadata import requested, responded

RATE = 2.0
BURST = 22
INVALID = 17


class Cluster:
    """A client, the quota and a broker that creates topics; the clock is a number."""

    def __init__(self, rate: float = RATE) -> None:
        self.now = 1000.0
        self.quota = ControllerMutation()
        self.limit(rate)
        self.counts = Counts()
        self.exist = {"old"}
        self.behind = False
        """Whether the broker does not know yet what it has created."""
        self.rejects: dict[str, int] = {}
        self.created: list[str] = []
        self.asked = 0
        self.slept: list[float] = []
        self.garbled = False
        self.costs = PermitCosts(lambda: self.now)
        self.answers = AutoCreations(self.quota, self._costs, lambda: self.now, self._sleep)

    def limit(self, rate: float | None) -> None:
        quotas = {} if rate is None else {QuotaEntity(USER, None): {CONTROLLER_MUTATION_RATE: rate}}
        self.quota.configure(Limits(quotas), self.now)

    def _costs(self, cluster_id: str) -> PermitCosts:
        assert cluster_id == CLUSTER
        return self.costs

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    async def ask(self, frame: bytes) -> bytes:
        self.asked += 1
        if self.garbled:
            return b"\0\0\0\0\0"
        header = read_request_header(Reader([frame], LENGTH_SIZE))
        request = read_frame(request_type(METADATA, header.api_version), frame)
        return payload_of(responded(header.api_version, self._topics(request)), header.correlation_id)

    def _topics(self, request: Any) -> dict[str, int]:
        """Kafka's handleTopicMetadataRequest: by name the error codes."""
        names = dict.fromkeys(topic.name for topic in request.topics)
        create = getattr(request, "allow_auto_topic_creation", True)
        codes = {}
        for name in names:
            error = self.rejects.get(name, 0)
            if name in self.exist:
                codes[name] = 0
            elif error == INVALID or (error and create):
                codes[name] = error
            else:
                codes[name] = NOT_THERE
                if create:
                    self.created.append(name)
        if not self.behind:
            self.exist.update(self.created)
        return codes

    def send(self, message: Any, user: str = USER) -> dict[str, int]:
        """Send a request; return the error codes in its response. The proxy's own come before it."""
        broker = Broker(CLUSTER, NODE_ID, self.counts, self.ask, FixedRights())
        reply = to_end(self.answers.answer(intercepted(request_frame(message), user), broker))
        assert reply.forwards
        header = read_request_header(Reader([reply.frame], LENGTH_SIZE))
        assert header.api_version == message.__version__
        return self._topics(read_frame(request_type(METADATA, header.api_version), reply.frame))

    @property
    def tokens(self) -> float:
        [bucket] = self.quota.live()
        tokens = bucket.state(self.now).tokens
        assert tokens is not None
        return tokens


def many(count: int) -> list[str]:
    return [f"new-{number}" for number in range(count)]


@pytest.mark.parametrize("version", [4, 8, 9, 10, 13])
def test_topics_are_created_as_far_as_the_quota_admits_them(version: int) -> None:
    cluster = Cluster()
    codes = cluster.send(requested(version, ["old", *many(100)]))
    # As with CreateTopics, the topic that crosses the limit is created.
    assert cluster.created == many(BURST + 1)
    assert cluster.tokens == -1.0
    assert codes == {"old": 0, **{name: 0 if name in cluster.exist else NOT_THERE for name in many(100)}}


def test_the_next_ones_are_created_at_the_rate() -> None:
    cluster = Cluster()
    for _ in range(50):
        cluster.send(requested(9, many(100)))
        cluster.now += 0.4
    assert len(cluster.created) == pytest.approx(BURST + 1 + RATE * 20, abs=1)


def test_new_names_in_every_request_are_created_at_the_rate() -> None:
    cluster = Cluster()
    for index in range(400):
        cluster.send(requested(9, [f"another-{index}"]))
        cluster.now += 0.1
    assert len(cluster.created) == pytest.approx(BURST + 1 + RATE * 40, abs=1)


def test_each_topic_costs_the_brokers_default() -> None:
    cluster = Cluster()
    cluster.counts.num_partitions = 10
    cluster.send(requested(9, many(10)))
    assert cluster.created == many(3)
    assert cluster.tokens == BURST - 30


@pytest.mark.parametrize("version", [0, 1, 3])
def test_old_versions_wait_for_the_quota(version: int) -> None:
    cluster = Cluster()
    cluster.send(requested(version, many(BURST + 5)))
    assert cluster.created == many(BURST + 5)
    assert sum(cluster.slept) == pytest.approx(2.0, abs=0.1)


def test_old_versions_wait_no_longer_than_the_limit_lasts() -> None:
    cluster = Cluster(0.01)
    cluster.send(requested(9, many(1)))
    removed = cluster._sleep

    async def remove(seconds: float) -> None:
        await removed(seconds)
        cluster.limit(None)

    cluster.answers = AutoCreations(cluster.quota, cluster._costs, lambda: cluster.now, remove)
    cluster.send(requested(1, ["b", "c", "d"]))
    assert cluster.created == ["new-0", "b", "c", "d"]
    assert cluster.slept == [1.0]


def test_a_topic_that_is_being_created_is_charged_once() -> None:
    cluster = Cluster()
    cluster.behind = True
    for _ in range(5):
        cluster.send(requested(9, ["a"]))
        cluster.now += 0.1
    assert cluster.tokens == pytest.approx(BURST - 1 + 1, abs=0.01)
    before = cluster.tokens
    cluster.now += PENDING_SECONDS
    cluster.send(requested(9, ["a"]))
    assert cluster.tokens == pytest.approx(min(before + PENDING_SECONDS * RATE, BURST) - 1)


def test_a_topic_that_was_deleted_is_charged_again() -> None:
    cluster = Cluster()
    cluster.send(requested(9, ["a"]))
    left = cluster.tokens
    cluster.exist.remove("a")
    cluster.created.clear()
    cluster.costs.recent.forget("a")  # as after a DeleteTopics
    cluster.send(requested(9, ["a"]))
    assert cluster.tokens == left - 1.0


@pytest.mark.parametrize(("code", "seen"), [(FORBIDDEN, FORBIDDEN), (INVALID, INVALID)])
def test_a_topic_that_the_broker_does_not_create_costs_nothing(code: int, seen: int) -> None:
    cluster = Cluster()
    cluster.rejects = {"a": code}
    assert cluster.send(requested(9, ["a"])) == {"a": seen}
    assert cluster.quota.live() == [] or cluster.tokens == BURST
    assert cluster.created == []


def test_existing_topics_cost_nothing_and_may_not_be_created_meanwhile() -> None:
    cluster = Cluster()
    assert cluster.send(requested(9, ["old"])) == {"old": 0}
    cluster.asked = 0
    broker = Broker(CLUSTER, NODE_ID, cluster.counts, cluster.ask, FixedRights())
    frame = request_frame(requested(9, ["old"]))
    reply = to_end(cluster.answers.answer(intercepted(frame, USER), broker))
    assert not read_frame(request_type(METADATA, 9), reply.frame).allow_auto_topic_creation
    assert cluster.asked == 1
    assert cluster.tokens == BURST


@pytest.mark.parametrize("names", [None, []])
def test_a_request_that_creates_nothing_is_forwarded_as_it_is(names: list[str] | None) -> None:
    cluster = Cluster()
    broker = Broker(CLUSTER, NODE_ID, cluster.counts, cluster.ask, FixedRights())
    frame = request_frame(requested(9, names))
    assert to_end(cluster.answers.answer(intercepted(frame, USER), broker)).frame == frame
    assert cluster.asked == 0


def test_brokers_that_create_no_topics_are_not_asked() -> None:
    cluster = Cluster()
    cluster.counts.creates = False
    cluster.send(requested(9, ["a"]))
    assert cluster.asked == 0
    assert cluster.tokens == BURST


def test_a_client_without_a_quota() -> None:
    cluster = Cluster()
    cluster.send(requested(9, many(100)), user="other")
    assert cluster.created == many(100)
    assert cluster.asked == 0


def test_a_request_too_large() -> None:
    cluster = Cluster()
    with pytest.raises(Malformed, match=f"Metadata .*{MAX_REQUEST_BYTES}"):
        cluster.send(requested(9, ["x" * 200] * (MAX_REQUEST_BYTES // 200)))


def test_a_response_that_does_not_parse() -> None:
    cluster = Cluster()
    cluster.garbled = True
    with pytest.raises(RelayError, match="Metadata v9"):
        cluster.send(requested(9, ["a"]))
