"""Responses to ShareFetch and ShareAcknowledge, with two partitions and two NodeEndpoints."""

import uuid
from dataclasses import replace
from typing import Any, Final

from kio.schema.errors import ErrorCode

from proxy.wire.api_keys import SHARE_ACKNOWLEDGE, SHARE_FETCH
from tests.support.messages.exchanges import milliseconds
from tests.support.messages.kio_messages import BROKER_HOST, response_type

TOPIC_ID: Final = uuid.UUID(int=77)


def share_response(api_key: int, version: int, throttle_ms: int = 0, nodes: tuple[int, ...] = (1, 2)) -> Any:
    """A whole response; partition 3 has 70 bytes of records in a ShareFetch."""
    message = response_type(api_key, version)
    node = message.__annotations__["node_endpoints"].__args__[0]
    topic = message.__annotations__["responses"].__args__[0]
    partition = topic.__annotations__["partitions"].__args__[0]
    leader = partition.__annotations__["current_leader"]
    more: dict[str, Any] = {}
    if api_key == SHARE_FETCH:
        acquired = partition.__annotations__["acquired_records"].__args__[0]
        more = {
            "acknowledge_error_code": 0,
            "acknowledge_error_message": None,
            "records": bytes(70),
            "acquired_records": (acquired(first_offset=1, last_offset=2, delivery_count=1),) * 2,
        }
    first = partition(
        partition_index=3,
        error_code=ErrorCode(6),
        error_message="a message",
        current_leader=leader(leader_id=1, leader_epoch=2),
        **more,
    )
    second = replace(first, partition_index=4, **({"records": b""} if more else {}))
    lock = (
        {} if api_key == SHARE_ACKNOWLEDGE and version < 2 else {"acquisition_lock_timeout": milliseconds(9)}
    )
    return message(
        throttle_time=milliseconds(throttle_ms),
        error_code=ErrorCode.none,
        error_message="another",
        responses=(topic(topic_id=TOPIC_ID, partitions=(first, second)),),
        node_endpoints=tuple(node(node_id=at, host=BROKER_HOST, port=9092, rack="r") for at in nodes),
        **lock,
    )
