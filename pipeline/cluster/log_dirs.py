"""Reads partitions, replicas and log sizes from brokers (Metadata, DescribeLogDirs)."""

from typing import Final

from kio.schema.describe_log_dirs.v2.request import DescribeLogDirsRequest
from kio.schema.describe_log_dirs.v2.response import DescribeLogDirsResponse
from kio.schema.metadata.v12.request import MetadataRequest
from kio.schema.metadata.v12.response import MetadataResponse

from pipeline.errors import InputError, PipelineError
from pipeline.transforms.reassignment import Cluster, Partition
from proxy.security.access import PLAINTEXT, Access
from proxy.upstream.addresses import split_address
from proxy.upstream.broker_connection import BrokerConnection

_EVERY_TOPIC: Final = MetadataRequest(
    topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=False
)


async def read_cluster(bootstrap: str, access: Access = PLAINTEXT) -> Cluster:
    """Read the cluster, without moves and inbound rates; a partition has the bytes of its largest
    replica.

    Raises OSError or EOFError if a broker cannot be reached, UpstreamUnavailable if it rejects the login, and
    PipelineError if it does not report its logs.
    """
    try:
        host, port = split_address(bootstrap)
    except ValueError as error:
        raise InputError(f"--bootstrap {bootstrap}: expected HOST:PORT") from error
    connection = await BrokerConnection.open(host, port, access)
    try:
        metadata = await connection.ask(_EVERY_TOPIC, MetadataResponse)
    finally:
        connection.close()
    sizes: dict[tuple[str, int], int] = {}
    for broker in metadata.brokers:
        for partition, size in (await _sizes(broker.host, broker.port, access)).items():
            sizes[partition] = max(sizes.get(partition, 0), size)
    return Cluster(
        sorted(int(broker.node_id) for broker in metadata.brokers),
        [
            Partition(
                str(topic.name),
                int(partition.partition_index),
                [int(node_id) for node_id in partition.replica_nodes],
                sizes.get((str(topic.name), int(partition.partition_index)), 0),
                leader=int(partition.leader_id) if partition.leader_id >= 0 else None,
            )
            for topic in metadata.topics
            for partition in topic.partitions
        ],
        [],
    )


async def _sizes(host: str, port: int, access: Access) -> dict[tuple[str, int], int]:
    """Bytes of each log on one broker, over all its log.dirs, without future replicas."""
    connection = await BrokerConnection.open(host, port, access)
    try:
        found = await connection.ask(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse)
    finally:
        connection.close()
    if not found.results:
        # Version 2 has no error code: without the right, the response is empty, and all sizes would be 0.
        raise PipelineError(
            f"broker {host}:{port} reports no log directories; the user of --access needs the ACL operation "
            "Describe on the cluster"
        )
    return {
        (str(topic.name), int(partition.partition_index)): int(partition.partition_size)
        for result in found.results
        for topic in result.topics
        for partition in topic.partitions
        if not partition.is_future_key
    }
