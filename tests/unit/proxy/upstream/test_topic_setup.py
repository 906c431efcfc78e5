"""prepare_topic(): which topics are fit for the proxy; creating them is tested on real brokers."""

from contextlib import suppress
from typing import Any, ClassVar

import pytest
from kio.schema.create_topics.v7.request import CreateTopicsRequest
from kio.schema.errors import ErrorCode

from proxy.errors import UpstreamUnavailable
from proxy.upstream.cluster_access import ClusterAccess
from proxy.upstream.topic_setup import STORE, TopicPlan, prepare_topic
from proxy.wire.api_keys import CREATE_TOPICS, METADATA
from tests.support.messages.kio_messages import response_type
from tests.support.messages.mutations import NO_TIME
from tests.support.messages.requests import build, part
from tests.support.process.metadata_broker import ORDERS, MetadataBroker

MANY = TopicPlan(3)


class SlowBroker(MetadataBroker):
    """Creates the topic, and does not know it at the next look-ups."""

    newest: ClassVar = {METADATA: 12, CREATE_TOPICS: 7}
    late = 3
    """Number of these look-ups."""

    def __init__(self) -> None:
        super().__init__()
        self.fault = ErrorCode.unknown_topic_or_partition
        self.created = 0

    async def respond(self, request: Any) -> Any:
        if isinstance(request, CreateTopicsRequest):
            self.created += 1
            return build(response_type(CREATE_TOPICS, 7), throttle_time=NO_TIME, topics=())
        if self.created and len(self.asked) > self.late:
            self.fault = ErrorCode.none
        return await super().respond(request)


async def prepare(broker: MetadataBroker, plan: TopicPlan) -> object:
    return await prepare_topic(ClusterAccess((broker.address,), 5.0), "orders", create=False, plan=plan)


async def test_a_topic_that_exists_is_looked_up_and_never_created_by_the_way() -> None:
    async with MetadataBroker() as broker:
        assert await prepare(broker, MANY) == ORDERS
        [asked] = broker.asked
        assert not asked.allow_auto_topic_creation


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (ErrorCode.unknown_topic_or_partition, "does not exist"),
        (ErrorCode.topic_authorization_failed, "Describe, Read and Write"),
        (ErrorCode.invalid_topic_exception, "invalid_topic_exception"),
    ],
)
async def test_a_topic_that_cannot_be_used(fault: ErrorCode, says: str) -> None:
    async with MetadataBroker() as broker:
        broker.fault = fault
        with pytest.raises(UpstreamUnavailable, match=says):
            await prepare(broker, MANY)


async def test_a_new_topic_that_a_broker_does_not_know_at_once() -> None:
    async with SlowBroker() as broker:
        cluster = ClusterAccess((broker.address,), 5.0)
        assert await prepare_topic(cluster, "orders", create=True, plan=MANY) == ORDERS
        assert broker.created == 1


class RejectingBroker(SlowBroker):
    """Rejects the creation of the topic."""

    def __init__(self, error: ErrorCode) -> None:
        super().__init__()
        self._error = error

    async def respond(self, request: Any) -> Any:
        response = await super().respond(request)
        if not isinstance(request, CreateTopicsRequest):
            return response
        schema = response_type(CREATE_TOPICS, 7)
        result = part(
            schema,
            "CreatableTopicResult",
            name="orders",
            topic_id=None,
            error_code=self._error,
            error_message="WHY.",
            num_partitions=-1,
            replication_factor=-1,
            configs=(),
        )
        return build(schema, throttle_time=NO_TIME, topics=(result,))


@pytest.mark.parametrize(
    ("error", "advises"),
    [(ErrorCode.topic_authorization_failed, True), (ErrorCode.invalid_replication_factor, False)],
)
async def test_a_topic_that_cannot_be_created(error: ErrorCode, advises: bool) -> None:
    async with RejectingBroker(error) as broker:
        cluster = ClusterAccess((broker.address,), 5.0)
        with pytest.raises(UpstreamUnavailable, match=r"orders.*cannot be created: WHY") as caught:
            await prepare_topic(cluster, "orders", create=True, plan=MANY)
    assert ("Create, Describe, Read and Write on topic orders" in str(caught.value)) == advises


async def test_a_topic_that_another_proxy_has_created_meanwhile() -> None:
    async with RejectingBroker(ErrorCode.topic_already_exists) as broker:
        cluster = ClusterAccess((broker.address,), 5.0)
        assert await prepare_topic(cluster, "orders", create=True, plan=MANY) == ORDERS


async def test_a_store_of_two_partitions_has_no_order() -> None:
    async with MetadataBroker() as broker:
        with pytest.raises(UpstreamUnavailable, match="2 partitions"):
            await prepare(broker, STORE)


async def test_a_broker_that_hangs_is_not_the_only_one_asked() -> None:
    async with MetadataBroker() as hung, MetadataBroker() as broker:
        hung.silent = True
        cluster = ClusterAccess((hung.address, broker.address), 0.2)
        found: object = None
        while found is None:
            # On a busy machine the other one may be too slow, too.
            with suppress(UpstreamUnavailable):
                found = await prepare_topic(cluster, "orders", create=False, plan=MANY)
        assert found == ORDERS
        assert hung.asked


async def test_a_leader_that_has_failed_has_to_respond_first() -> None:
    async with MetadataBroker() as broker:
        broker.others = {2: ("127.0.0.1", 1)}
        broker.partitions = [(2, (2,), (2,))]
        cluster = ClusterAccess((broker.address,), 5.0)
        assert await prepare_topic(cluster, "orders", create=False, plan=MANY) == ORDERS
        cluster.note_failure(broker.others[2])
        with pytest.raises(UpstreamUnavailable, match=r"its leader 127\.0\.0\.1:1: "):
            await prepare_topic(cluster, "orders", create=False, plan=MANY)


async def test_no_broker() -> None:
    with pytest.raises(UpstreamUnavailable):
        await prepare_topic(ClusterAccess((("127.0.0.1", 1),), 1.0), "orders", create=True)
