"""Responses of more than 1 MiB, of every API whose responses have addresses."""

from dataclasses import replace
from typing import Any, Final

from kio.schema.errors import ErrorCode

from tests.support.messages.exchanges import (
    TOPIC,
    fetch_response,
    milliseconds,
)
from tests.support.messages.kio_messages import (
    BROKER_HOST,
    response_type,
)

MIB: Final = 1 << 20


def _endpoints(response: Any) -> Any:
    node = response.__annotations__["node_endpoints"].__args__[0]
    return tuple(node(node_id=at, host=f"{BROKER_HOST}.{at}", port=9092, rack=None) for at in (1, 2))


def large_fetch_response(version: int) -> Any:
    response = fetch_response(version, bytes(2 * MIB))
    return replace(response, node_endpoints=_endpoints(type(response)))


def large_produce_response(version: int) -> Any:
    message = response_type(0, version)
    topic = message.__annotations__["responses"].__args__[0]
    partition = topic.__annotations__["partition_responses"].__args__[0]
    partitions = (
        partition(
            index=0,
            error_code=ErrorCode(6),
            base_offset=0,
            record_errors=(),
            error_message="not the leader " * (2 * MIB // 15),
        ),
    )
    name = {"name": TOPIC} if version < 13 else {"topic_id": None}
    topics = (topic(partition_responses=partitions, **name),)
    return message(responses=topics, node_endpoints=_endpoints(message))


def large_share_response(api_key: int, version: int) -> Any:
    """A response to ShareFetch (78) or ShareAcknowledge (79)."""
    message = response_type(api_key, version)
    topic = message.__annotations__["responses"].__args__[0]
    partition = topic.__annotations__["partitions"].__args__[0]
    leader = partition.__annotations__["current_leader"]
    fields: dict[str, Any] = (
        {"acknowledge_error_code": 0, "records": b"", "acquired_records": ()} if api_key == 78 else {}
    )
    part = partition(
        partition_index=0,
        error_code=ErrorCode(6),
        error_message="not the leader " * (2 * MIB // 15),
        current_leader=leader(leader_id=1, leader_epoch=1),
        **fields,
    )
    more: dict[str, Any] = {}
    if "acquisition_lock_timeout" in message.__annotations__:
        more["acquisition_lock_timeout"] = milliseconds(0)
    return message(
        throttle_time=milliseconds(0),
        error_code=ErrorCode.none,
        responses=(topic(topic_id=None, partitions=(part,)),),
        node_endpoints=_endpoints(message),
        **more,
    )


LARGE: Final = [
    *[large_fetch_response(version) for version in (16, 17, 18)],
    *[large_produce_response(version) for version in (10, 11, 12, 13)],
    *[large_share_response(key, version) for key in (78, 79) for version in (1, 2)],
]


def metadata(topics: int) -> Any:
    """A Metadata response with 300 brokers and this many topics of a kilobyte each."""
    message = response_type(3, 12)
    broker = message.__annotations__["brokers"].__args__[0]
    topic = message.__annotations__["topics"].__args__[0]
    made = topic(error_code=ErrorCode.none, name="n" * 1000, topic_id=None, partitions=())
    brokers = tuple(broker(node_id=at, host=f"{BROKER_HOST}.{at}", port=9092) for at in range(300))
    return message(throttle_time=milliseconds(0), brokers=brokers, topics=(made,) * topics)


def find_coordinator() -> Any:
    message = response_type(10, 4)
    coordinator = message.__annotations__["coordinators"].__args__[0]
    made = coordinator(
        key="k", node_id=1, host=BROKER_HOST, port=9092, error_code=ErrorCode.none, error_message="e" * MIB
    )
    return message(throttle_time=milliseconds(0), coordinators=(made, made))


def describe_cluster() -> Any:
    message = response_type(60, 2)
    broker = message.__annotations__["brokers"].__args__[0]
    made = broker(broker_id=3, host=BROKER_HOST, port=9092, rack="r" * MIB, is_fenced=False)
    return message(
        throttle_time=milliseconds(0), error_code=ErrorCode.none, cluster_id="c", brokers=(made, made)
    )
