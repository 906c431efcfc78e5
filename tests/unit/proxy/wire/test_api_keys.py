"""Kafka's API keys and names; compared with kio's index of Kafka's message definitions."""

from typing import Final

from kio.schema.index import api_key_map

from proxy.wire import api_keys
from proxy.wire.api_keys import END, LISTS, NAMES, api_name
from tests.support.messages.kio_messages import request_type, versions

CONSTANTS: Final = {
    name: value for name, value in vars(api_keys).items() if isinstance(value, int) and name != "END"
}
REMOVED_IN_KAFKA_4: Final = {
    "LEADER_AND_ISR": 4,
    "STOP_REPLICA": 5,
    "UPDATE_METADATA": 6,
    "CONTROLLED_SHUTDOWN": 7,
}


OPAQUE: Final = {"Produce", "JoinGroup", "SyncGroup"}
"""Their bytes are records, or what the members of a group give each other."""
INTERCEPTED: Final = {
    "CreateTopics",
    "CreatePartitions",
    "DescribeConfigs",
    "AlterConfigs",
    "IncrementalAlterConfigs",
    "DescribeClientQuotas",
    "AlterClientQuotas",
}
"""The proxy reads them, and has bounds of its own for each."""
OF_ADMINISTRATORS: Final = {
    *("CreateAcls", "DeleteAcls", "AlterReplicaLogDirs", "DescribeLogDirs", "CreateDelegationToken"),
    *("ElectLeaders", "AlterPartitionReassignments", "ListPartitionReassignments", "UpdateFeatures"),
    *("DescribeUserScramCredentials", "AlterUserScramCredentials", "DescribeQuorum", "ListConfigResources"),
    "AddRaftVoter",
    "UpdateRaftVoter",
}
"""They need rights on the cluster, or are lists of a few."""
OF_BROKERS: Final = {
    *("WriteTxnMarkers", "Vote", "BeginQuorumEpoch", "EndQuorumEpoch", "AlterPartition", "FetchSnapshot"),
    *("BrokerRegistration", "BrokerHeartbeat", "ControllerRegistration", "AssignReplicasToDirs"),
    *("InitializeShareGroupState", "ReadShareGroupState", "WriteShareGroupState", "DeleteShareGroupState"),
    "ReadShareGroupStateSummary",
}
"""They need ClusterAction."""


def test_lists_are_all_requests_with_arrays_that_a_tenant_may_send() -> None:
    with_arrays = {
        api_name(key)
        for key in api_key_map
        if any(
            "tuple" in str(kind) for kind in request_type(key, max(versions(key))).__annotations__.values()
        )
    }
    assert {api_name(key) for key in LISTS} == (
        with_arrays - OPAQUE - INTERCEPTED - OF_ADMINISTRATORS - OF_BROKERS
    )


def test_constants_have_kafkas_keys() -> None:
    known = {name.upper(): key for key, name in api_key_map.items()} | REMOVED_IN_KAFKA_4
    assert {name: known.get(name) for name in CONSTANTS} == CONSTANTS


def test_names_are_kafkas() -> None:
    words = {key: name.split("_") for key, name in api_key_map.items()}
    assert {key: name for key, name in enumerate(NAMES) if name} == {
        key: "".join(word.capitalize() for word in parts) for key, parts in words.items()
    }


def test_a_key_without_a_name_is_shown_as_its_number() -> None:
    assert [api_name(key) for key in (4, END, -1, 32767)] == ["api_4", "api_128", "api_-1", "api_32767"]
    assert api_name(18) == "ApiVersions"


def test_tables_by_key_have_room_for_every_known_key() -> None:
    assert len(NAMES) < END
