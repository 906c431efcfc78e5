"""MetadataBroker: a broker on a real socket that responds to ApiVersions and Metadata only."""

import asyncio
from typing import Any, ClassVar, Final
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.schema.metadata.v12.request import MetadataRequest

from proxy.wire.api_keys import METADATA
from tests.support.messages.kio_messages import response_type
from tests.support.messages.mutations import NO_TIME
from tests.support.messages.requests import build, part
from tests.support.process.socket_broker import SocketBroker

ORDERS: Final = UUID(int=1)


class MetadataBroker(SocketBroker):
    """Node 1 of a cluster that has one topic, `orders`."""

    newest: ClassVar = {METADATA: 12}

    def __init__(self) -> None:
        self.asked: list[MetadataRequest] = []
        self.asked_at: list[float] = []
        """When, on the event loop's clock."""
        self.partitions: list[tuple[int, tuple[int, ...], tuple[int, ...]]] = [
            (1, (1, 2), (1,)),
            (-1, (2, 3), (2,)),
        ]
        """Leader, replicas and ISR."""
        self.others: dict[int, tuple[str, int]] = {}
        """Addresses of more nodes; that of node 1 replaces its own."""
        self.cluster_id = "c"
        self.fault = ErrorCode.none
        self.silent = False
        """Whether it sends no responses."""

    async def respond(self, request: Any) -> Any:
        self.asked.append(request)
        self.asked_at.append(asyncio.get_running_loop().time())
        if self.silent:
            return None
        schema = response_type(METADATA, request.__version__)
        host, port = self.address
        partitions = (
            part(
                schema,
                "MetadataResponsePartition",
                error_code=ErrorCode.none,
                partition_index=number,
                leader_id=leader,
                replica_nodes=replicas,
                isr_nodes=isr,
            )
            for number, (leader, replicas, isr) in enumerate(self.partitions)
        )
        topic = part(
            schema,
            "MetadataResponseTopic",
            error_code=self.fault,
            name="orders",
            topic_id=ORDERS,
            partitions=tuple(partitions),
        )
        nodes = (
            part(schema, "MetadataResponseBroker", node_id=node_id, host=node_host, port=node_port)
            for node_id, (node_host, node_port) in {1: (host, port), **self.others}.items()
        )
        return build(
            schema,
            throttle_time=NO_TIME,
            brokers=tuple(nodes),
            cluster_id=self.cluster_id,
            topics=() if request.topics == () else (topic,),
        )
