"""Kafka's API keys and names; compared with kio's index of Kafka's message definitions."""

from typing import Final

from kio.schema.index import api_key_map

from proxy.admin.dispatch import APIS
from proxy.wire import api_keys
from proxy.wire.api_keys import BOUNDED_OTHERWISE, END, MAY_BE_LARGE, NAMES, api_name

CONSTANTS: Final = {
    name: value for name, value in vars(api_keys).items() if isinstance(value, int) and name != "END"
}
LARGE: Final = {
    *("JoinGroup", "SyncGroup", "PushTelemetry"),
    *("CreateAcls", "DeleteAcls", "AlterReplicaLogDirs", "DescribeLogDirs", "ElectLeaders"),
    *("AlterPartitionReassignments", "ListPartitionReassignments"),
    *("DescribeUserScramCredentials", "AlterUserScramCredentials"),
}
"""What members of groups and administrators send in bulk."""


def test_all_other_requests_of_clients_are_bounded() -> None:
    read = {*APIS.read, *APIS.known}
    assert {api_name(key) for key in MAY_BE_LARGE} == LARGE
    assert {api_name(key) for key in BOUNDED_OTHERWISE} <= {api.name for api in read if api is not None}


def test_constants_have_kafkas_keys() -> None:
    known = {name.upper(): key for key, name in api_key_map.items()}
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
