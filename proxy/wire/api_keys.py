"""Kafka's API keys and names, as in `ApiMessageType`: the only table of them."""

from typing import Final

PRODUCE: Final = 0
FETCH: Final = 1
LIST_OFFSETS: Final = 2
METADATA: Final = 3
LEADER_AND_ISR: Final = 4
STOP_REPLICA: Final = 5
UPDATE_METADATA: Final = 6
CONTROLLED_SHUTDOWN: Final = 7
OFFSET_COMMIT: Final = 8
OFFSET_FETCH: Final = 9
FIND_COORDINATOR: Final = 10
JOIN_GROUP: Final = 11
LEAVE_GROUP: Final = 13
SYNC_GROUP: Final = 14
DESCRIBE_GROUPS: Final = 15
LIST_GROUPS: Final = 16
SASL_HANDSHAKE: Final = 17
API_VERSIONS: Final = 18
CREATE_TOPICS: Final = 19
DELETE_TOPICS: Final = 20
DELETE_RECORDS: Final = 21
OFFSET_FOR_LEADER_EPOCH: Final = 23
ADD_PARTITIONS_TO_TXN: Final = 24
WRITE_TXN_MARKERS: Final = 27
TXN_OFFSET_COMMIT: Final = 28
DESCRIBE_CONFIGS: Final = 32
ALTER_CONFIGS: Final = 33
SASL_AUTHENTICATE: Final = 36
CREATE_PARTITIONS: Final = 37
DESCRIBE_DELEGATION_TOKEN: Final = 41
DELETE_GROUPS: Final = 42
INCREMENTAL_ALTER_CONFIGS: Final = 44
OFFSET_DELETE: Final = 47
DESCRIBE_CLIENT_QUOTAS: Final = 48
ALTER_CLIENT_QUOTAS: Final = 49
DESCRIBE_CLUSTER: Final = 60
DESCRIBE_PRODUCERS: Final = 61
DESCRIBE_TRANSACTIONS: Final = 65
LIST_TRANSACTIONS: Final = 66
CONSUMER_GROUP_HEARTBEAT: Final = 68
CONSUMER_GROUP_DESCRIBE: Final = 69
DESCRIBE_TOPIC_PARTITIONS: Final = 75
SHARE_GROUP_HEARTBEAT: Final = 76
SHARE_GROUP_DESCRIBE: Final = 77
SHARE_FETCH: Final = 78
SHARE_ACKNOWLEDGE: Final = 79
STREAMS_GROUP_HEARTBEAT: Final = 88
STREAMS_GROUP_DESCRIBE: Final = 89
DESCRIBE_SHARE_GROUP_OFFSETS: Final = 90
ALTER_SHARE_GROUP_OFFSETS: Final = 91
DELETE_SHARE_GROUP_OFFSETS: Final = 92

CHANGES_OF_CLIENTS: Final = (
    DELETE_TOPICS,
    DELETE_RECORDS,
    ALTER_CONFIGS,
    CREATE_PARTITIONS,
    INCREMENTAL_ALTER_CONFIGS,
    ALTER_CLIENT_QUOTAS,
)
"""Requests that no broker sends to another, so their sender is not a broker. CreateTopics, Produce and a
consumer's Fetch are not among them: brokers with tiered storage send these.
"""

LISTS: Final = (
    FETCH,
    LIST_OFFSETS,
    METADATA,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    FIND_COORDINATOR,
    LEAVE_GROUP,
    DESCRIBE_GROUPS,
    LIST_GROUPS,
    DELETE_TOPICS,
    DELETE_RECORDS,
    OFFSET_FOR_LEADER_EPOCH,
    ADD_PARTITIONS_TO_TXN,
    TXN_OFFSET_COMMIT,
    DESCRIBE_DELEGATION_TOKEN,
    DELETE_GROUPS,
    OFFSET_DELETE,
    DESCRIBE_PRODUCERS,
    DESCRIBE_TRANSACTIONS,
    LIST_TRANSACTIONS,
    CONSUMER_GROUP_HEARTBEAT,
    CONSUMER_GROUP_DESCRIBE,
    DESCRIBE_TOPIC_PARTITIONS,
    SHARE_GROUP_HEARTBEAT,
    SHARE_GROUP_DESCRIBE,
    SHARE_FETCH,
    SHARE_ACKNOWLEDGE,
    STREAMS_GROUP_HEARTBEAT,
    STREAMS_GROUP_DESCRIBE,
    DESCRIBE_SHARE_GROUP_OFFSETS,
    ALTER_SHARE_GROUP_OFFSETS,
    DELETE_SHARE_GROUP_OFFSETS,
)
"""Requests that list partitions, topics, groups or transactions, each of which a broker looks at, and that a
client without rights on the cluster may send.
"""

END: Final = 128
"""Above every key: Kafka 4.1 ends at 92. A table by key has this many places."""

NAMES: Final[list[str]] = [
    # 0; 4 to 7 were for ZooKeeper's controllers. Kafka 4 removed them, and metrics show them as numbers.
    *("Produce", "Fetch", "ListOffsets", "Metadata", "", "", "", "", "OffsetCommit", "OffsetFetch"),
    # 10
    *("FindCoordinator", "JoinGroup", "Heartbeat", "LeaveGroup", "SyncGroup"),
    *("DescribeGroups", "ListGroups", "SaslHandshake", "ApiVersions", "CreateTopics"),
    # 20
    *("DeleteTopics", "DeleteRecords", "InitProducerId", "OffsetForLeaderEpoch", "AddPartitionsToTxn"),
    *("AddOffsetsToTxn", "EndTxn", "WriteTxnMarkers", "TxnOffsetCommit", "DescribeAcls"),
    # 30
    *("CreateAcls", "DeleteAcls", "DescribeConfigs", "AlterConfigs", "AlterReplicaLogDirs"),
    *("DescribeLogDirs", "SaslAuthenticate", "CreatePartitions", "CreateDelegationToken"),
    *("RenewDelegationToken",),
    # 40
    *("ExpireDelegationToken", "DescribeDelegationToken", "DeleteGroups", "ElectLeaders"),
    *("IncrementalAlterConfigs", "AlterPartitionReassignments", "ListPartitionReassignments"),
    *("OffsetDelete", "DescribeClientQuotas", "AlterClientQuotas"),
    # 50
    *("DescribeUserScramCredentials", "AlterUserScramCredentials", "Vote", "BeginQuorumEpoch"),
    *("EndQuorumEpoch", "DescribeQuorum", "AlterPartition", "UpdateFeatures", "Envelope", "FetchSnapshot"),
    # 60
    *("DescribeCluster", "DescribeProducers", "BrokerRegistration", "BrokerHeartbeat", "UnregisterBroker"),
    *("DescribeTransactions", "ListTransactions", "AllocateProducerIds", "ConsumerGroupHeartbeat"),
    *("ConsumerGroupDescribe",),
    # 70
    *("ControllerRegistration", "GetTelemetrySubscriptions", "PushTelemetry", "AssignReplicasToDirs"),
    *("ListConfigResources", "DescribeTopicPartitions", "ShareGroupHeartbeat", "ShareGroupDescribe"),
    *("ShareFetch", "ShareAcknowledge"),
    # 80
    *("AddRaftVoter", "RemoveRaftVoter", "UpdateRaftVoter", "InitializeShareGroupState"),
    *("ReadShareGroupState", "WriteShareGroupState", "DeleteShareGroupState"),
    *("ReadShareGroupStateSummary", "StreamsGroupHeartbeat", "StreamsGroupDescribe"),
    # 90
    *("DescribeShareGroupOffsets", "AlterShareGroupOffsets", "DeleteShareGroupOffsets"),
]
"""Names by key. Metrics and usage events use them as label values."""


def api_name(api_key: int) -> str:
    """Return Kafka's name of an API, such as ApiVersions, or `api_N` for a key without a known name."""
    name = NAMES[api_key] if 0 <= api_key < len(NAMES) else ""
    return name or f"api_{api_key}"
