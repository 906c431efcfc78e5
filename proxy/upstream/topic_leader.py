"""until_it_responds(): waits for the leader of a topic's first partition.

A broker that hangs stays the leader until its session times out (broker.session.timeout.ms). aiokafka would
wait for responses of this leader, while the topic may have a new one already.
"""

import asyncio
from typing import Final

from kio.schema.api_versions.v0.request import ApiVersionsRequest
from kio.schema.api_versions.v0.response import ApiVersionsResponse
from kio.schema.metadata.v12.request import MetadataRequest, MetadataRequestTopic
from kio.schema.metadata.v12.response import MetadataResponse, MetadataResponseTopic
from kio.schema.types import TopicName

from proxy.errors import BadResponse, UpstreamUnavailable
from proxy.upstream.broker_connection import BrokerConnection
from proxy.upstream.cluster_access import ClusterAccess

LOOK_SECONDS: Final = 0.5
"""While the leader does not respond, another broker is asked this often whether there is a new one."""


async def look_up(broker: BrokerConnection, topic: str) -> tuple[MetadataResponseTopic, MetadataResponse]:
    """Ask a broker for the metadata of one topic."""
    request = MetadataRequest(
        topics=(MetadataRequestTopic(topic_id=None, name=TopicName(topic)),),
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
    )
    response = await broker.ask(request, MetadataResponse)
    if len(response.topics) != 1:
        raise BadResponse(f"the metadata response has {len(response.topics)} topics, expected 1")
    return response.topics[0], response


def leader_of(topic: MetadataResponseTopic, metadata: MetadataResponse) -> tuple[str, int] | None:
    """The host and port of the leader of the topic's first partition; None if it has none."""
    leaders = [each.leader_id for each in topic.partitions if each.partition_index == 0]
    for node in metadata.brokers:
        if node.node_id in leaders:
            return node.host, int(node.port)
    return None


async def until_it_responds(
    leader: tuple[str, int] | None, broker: BrokerConnection, topic: str, cluster: ClusterAccess
) -> None:
    """Wait until the leader of the topic's first partition responds, or one that is elected meanwhile; return
    if the partition has no leader any more.

    broker: where to look for a new leader.

    Raises UpstreamUnavailable if the leader does not respond within the cluster's connect_seconds; OSError or
    EOFError if the connection to `broker` ends.
    """
    while leader is not None:
        reaching = asyncio.ensure_future(_reach(leader, cluster))
        try:
            current = await _reached_or_replaced(reaching, leader, broker, topic)
        finally:
            reaching.cancel()
            await asyncio.gather(reaching, return_exceptions=True)
        if current == leader:
            return
        leader = current


async def _reached_or_replaced(
    reaching: asyncio.Task[None], leader: tuple[str, int], broker: BrokerConnection, topic: str
) -> tuple[str, int] | None:
    """Return the leader as soon as it is reached, or another one as soon as there is one."""
    while True:
        await asyncio.wait([reaching], timeout=LOOK_SECONDS)
        if reaching.done():
            reaching.result()
            return leader
        current = leader_of(*await look_up(broker, topic))
        if current != leader:
            return current


async def _reach(leader: tuple[str, int], cluster: ClusterAccess) -> None:
    try:
        connection = await cluster.connect([leader], _responds)
    except UpstreamUnavailable as error:
        raise UpstreamUnavailable(f"its leader {error}") from error
    connection.close()


async def _responds(leader: BrokerConnection) -> None:
    await leader.ask(ApiVersionsRequest(), ApiVersionsResponse)
