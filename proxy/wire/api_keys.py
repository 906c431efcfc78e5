"""Kafka's API keys and names, as in `ApiMessageType`: the only table of them."""

from typing import Final

PRODUCE: Final = 0
FETCH: Final = 1
LIST_OFFSETS: Final = 2
METADATA: Final = 3
OFFSET_COMMIT: Final = 8
OFFSET_FETCH: Final = 9
FIND_COORDINATOR: Final = 10
JOIN_GROUP: Final = 11
HEARTBEAT: Final = 12
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
CREATE_ACLS: Final = 30
DELETE_ACLS: Final = 31
DESCRIBE_CONFIGS: Final = 32
ALTER_CONFIGS: Final = 33
ALTER_REPLICA_LOG_DIRS: Final = 34
DESCRIBE_LOG_DIRS: Final = 35
SASL_AUTHENTICATE: Final = 36
CREATE_PARTITIONS: Final = 37
ELECT_LEADERS: Final = 43
INCREMENTAL_ALTER_CONFIGS: Final = 44
ALTER_PARTITION_REASSIGNMENTS: Final = 45
LIST_PARTITION_REASSIGNMENTS: Final = 46
OFFSET_DELETE: Final = 47
DESCRIBE_CLIENT_QUOTAS: Final = 48
ALTER_CLIENT_QUOTAS: Final = 49
DESCRIBE_USER_SCRAM_CREDENTIALS: Final = 50
ALTER_USER_SCRAM_CREDENTIALS: Final = 51
DESCRIBE_QUORUM: Final = 55
UPDATE_FEATURES: Final = 57
DESCRIBE_CLUSTER: Final = 60
DESCRIBE_PRODUCERS: Final = 61
DESCRIBE_TRANSACTIONS: Final = 65
LIST_TRANSACTIONS: Final = 66
CONSUMER_GROUP_HEARTBEAT: Final = 68
CONSUMER_GROUP_DESCRIBE: Final = 69
PUSH_TELEMETRY: Final = 72
DESCRIBE_TOPIC_PARTITIONS: Final = 75
SHARE_GROUP_HEARTBEAT: Final = 76
SHARE_GROUP_DESCRIBE: Final = 77
SHARE_FETCH: Final = 78
SHARE_ACKNOWLEDGE: Final = 79
ADD_RAFT_VOTER: Final = 80
STREAMS_GROUP_HEARTBEAT: Final = 88
STREAMS_GROUP_DESCRIBE: Final = 89
DESCRIBE_SHARE_GROUP_OFFSETS: Final = 90
ALTER_SHARE_GROUP_OFFSETS: Final = 91

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

BOUNDED_OTHERWISE: Final = frozenset(
    [
        PRODUCE,
        *(CREATE_TOPICS, CREATE_PARTITIONS, DESCRIBE_CONFIGS, ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS),
        *(DESCRIBE_CLIENT_QUOTAS, ALTER_CLIENT_QUOTAS),
    ]
)
"""Requests of clients that limits.max_list_request_bytes does not bound: the proxy reads them, and bounds
their elements.
"""
MAY_BE_LARGE: Final = frozenset(
    [
        # What the members of a group give each other, and metrics.
        *(JOIN_GROUP, SYNC_GROUP, PUSH_TELEMETRY),
        # An administrator may list every partition, ACL or user of a cluster.
        *(CREATE_ACLS, DELETE_ACLS, ALTER_REPLICA_LOG_DIRS, DESCRIBE_LOG_DIRS, ELECT_LEADERS),
        *(ALTER_PARTITION_REASSIGNMENTS, LIST_PARTITION_REASSIGNMENTS),
        *(DESCRIBE_USER_SCRAM_CREDENTIALS, ALTER_USER_SCRAM_CREDENTIALS),
    ]
)
"""Requests of clients that may have eight times as many bytes. All others are small, or list partitions,
topics, groups or transactions, each of which a broker looks at. A broker parses a whole request before it
checks the client's rights, so the bound holds also for requests that only brokers send.
"""

NO_LISTS: Final = frozenset(
    [
        *(PRODUCE, JOIN_GROUP, SYNC_GROUP, PUSH_TELEMETRY),
        *(SASL_HANDSHAKE, SASL_AUTHENTICATE),
    ]
)
"""Requests that are large because of records, metrics or credentials, or of what the members of a group give
each other: a broker does not work on each entry. All others count as lists if they are large.
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
