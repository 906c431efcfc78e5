"""throttle_time_ms in responses that begin with this field, of APIs that the proxy does not read otherwise.

A broker sets the field in the response to each request that exceeds request_percentage (KIP-124).
"""

from typing import Final

from proxy.wire.api_keys import NAMES
from proxy.wire.edit import Edit, apply, i32
from proxy.wire.errors import ProtocolError
from proxy.wire.reader import Reader

FIRST: Final[dict[str, tuple[int, int, int]]] = {
    "AddOffsetsToTxn": (0, 3, 4),
    "AddPartitionsToTxn": (0, 3, 5),
    "AddRaftVoter": (0, 0, 1),
    "AlterClientQuotas": (0, 1, 1),
    "AlterConfigs": (0, 2, 2),
    "AlterPartitionReassignments": (0, 0, 1),
    "AlterReplicaLogDirs": (1, 2, 2),
    "AlterShareGroupOffsets": (0, 0, 0),
    "AlterUserScramCredentials": (0, 0, 0),
    "ConsumerGroupDescribe": (0, 0, 1),
    "ConsumerGroupHeartbeat": (0, 0, 1),
    "CreateAcls": (1, 2, 3),
    "CreatePartitions": (0, 2, 3),
    "CreateTopics": (2, 5, 7),
    "DeleteAcls": (1, 2, 3),
    "DeleteGroups": (0, 2, 2),
    "DeleteRecords": (0, 2, 2),
    "DeleteShareGroupOffsets": (0, 0, 0),
    "DeleteTopics": (1, 4, 6),
    "DescribeAcls": (1, 2, 3),
    "DescribeClientQuotas": (0, 1, 1),
    "DescribeConfigs": (1, 4, 4),
    "DescribeGroups": (1, 5, 6),
    "DescribeLogDirs": (1, 2, 5),
    "DescribeProducers": (0, 0, 0),
    "DescribeShareGroupOffsets": (0, 0, 1),
    "DescribeTopicPartitions": (0, 0, 0),
    "DescribeTransactions": (0, 0, 0),
    "DescribeUserScramCredentials": (0, 0, 0),
    "ElectLeaders": (0, 2, 2),
    "EndTxn": (0, 3, 5),
    "GetTelemetrySubscriptions": (0, 0, 0),
    "Heartbeat": (1, 4, 4),
    "IncrementalAlterConfigs": (0, 1, 1),
    "InitProducerId": (0, 2, 6),
    "JoinGroup": (2, 6, 9),
    "LeaveGroup": (1, 4, 5),
    "ListConfigResources": (0, 0, 1),
    "ListGroups": (1, 3, 5),
    "ListOffsets": (2, 6, 11),
    "ListPartitionReassignments": (0, 0, 0),
    "ListTransactions": (0, 0, 2),
    "Metadata": (3, 9, 13),
    "OffsetCommit": (3, 8, 10),
    "OffsetFetch": (3, 6, 10),
    "OffsetForLeaderEpoch": (2, 4, 4),
    "PushTelemetry": (0, 0, 0),
    "RemoveRaftVoter": (0, 0, 0),
    "ShareGroupDescribe": (1, 1, 1),
    "ShareGroupHeartbeat": (1, 1, 1),
    "StreamsGroupDescribe": (0, 0, 0),
    "StreamsGroupHeartbeat": (0, 0, 0),
    "SyncGroup": (1, 4, 5),
    "TxnOffsetCommit": (0, 3, 5),
    "UnregisterBroker": (0, 0, 0),
    "UpdateFeatures": (0, 0, 2),
}
"""By name of the API: the first version whose response begins with throttle_time_ms, the first flexible one,
and the newest known one. Responses of newer versions are not changed, because they may differ.
"""
_BY_KEY: Final = {NAMES.index(name): versions for name, versions in FIRST.items()}


def announce(
    pieces: list[bytes], reader: Reader, api_key: int, api_version: int, throttle_time_ms: int
) -> None:
    """Raise the throttle_time_ms of a response to this value, if the response begins with this field.

    `pieces` have at least the first part of the frame, and `reader` is behind the correlation_id. A response
    that does not parse stays as it is.
    """
    versions = _BY_KEY.get(api_key)
    if versions is None or not versions[0] <= api_version <= versions[2]:
        return
    try:
        if api_version >= versions[1]:
            reader.skip_tags()
        at = reader.offset
        if reader.i32() < throttle_time_ms:
            pieces[:] = apply(pieces, [Edit(at, at + 4, i32(throttle_time_ms))])
    except ProtocolError:
        return
