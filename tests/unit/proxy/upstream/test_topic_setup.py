"""prepare_topic(): which topics are fit for the proxy; creating them is tested on real brokers."""

import pytest
from kio.schema.errors import ErrorCode

from proxy.errors import UpstreamUnavailable
from proxy.upstream.cluster_access import ClusterAccess
from proxy.upstream.topic_setup import STORE, TopicPlan, prepare_topic
from tests.support.process.metadata_broker import ORDERS, MetadataBroker

MANY = TopicPlan(3)


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


async def test_a_store_of_two_partitions_has_no_order() -> None:
    async with MetadataBroker() as broker:
        with pytest.raises(UpstreamUnavailable, match="2 partitions"):
            await prepare(broker, STORE)


async def test_no_broker() -> None:
    with pytest.raises(UpstreamUnavailable):
        await prepare_topic(ClusterAccess((("127.0.0.1", 1),), 1.0), "orders", create=True)
