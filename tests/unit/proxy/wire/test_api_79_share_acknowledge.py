import uuid

import pytest
from kio.schema.errors import ErrorCode

from proxy.wire.api_keys import SHARE_ACKNOWLEDGE
from tests.support.messages.exchanges import milliseconds
from tests.support.messages.kio_messages import (
    BROKER_HOST,
    is_without_endpoints,
    read_frame,
    response_frame,
    response_type,
    through_proxy,
    versions,
)
from tests.support.messages.reading import announce, edited, items_of, read_response

VERSIONS = versions(SHARE_ACKNOWLEDGE)
TOPIC_ID = uuid.UUID(int=77)


def response(version, throttle_ms=0, nodes=(1, 2)):
    message = response_type(SHARE_ACKNOWLEDGE, version)
    node = message.__annotations__["node_endpoints"].__args__[0]
    topic = message.__annotations__["responses"].__args__[0]
    partition = topic.__annotations__["partitions"].__args__[0]
    leader = partition.__annotations__["current_leader"]
    part = partition(
        partition_index=3,
        error_code=ErrorCode(6),
        error_message="a message",
        current_leader=leader(leader_id=1, leader_epoch=2),
    )
    fields = {"acquisition_lock_timeout": milliseconds(9)} if version >= 2 else {}
    return message(
        throttle_time=milliseconds(throttle_ms),
        error_code=ErrorCode.none,
        error_message="another",
        responses=(topic(topic_id=TOPIC_ID, partitions=(part, part)),),
        node_endpoints=tuple(node(node_id=at, host=BROKER_HOST, port=9092, rack="r") for at in nodes),
        **fields,
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_addresses_are_read(version):
    frame = response_frame(response(version))
    view = read_response(SHARE_ACKNOWLEDGE, version, [frame])
    assert items_of(view) == [("", TOPIC_ID.bytes, 3, 0)] * 2
    changed = edited([frame], view)
    assert read_frame(response_type(SHARE_ACKNOWLEDGE, version), changed) == through_proxy(response(version))


@pytest.mark.parametrize("version", VERSIONS)
def test_the_wait_is_known(version):
    frame = response_frame(response(version, 1234, nodes=()))
    view = read_response(SHARE_ACKNOWLEDGE, version, [frame])
    assert view.throttle_time_ms == 1234
    announce(view, 5)
    assert edited([frame], view) == response_frame(response(version, 5, nodes=()))


@pytest.mark.parametrize("version", VERSIONS)
def test_when_the_length_is_sent_the_addresses_are_taken_out(version):
    frame = response_frame(response(version))
    view = read_response(SHARE_ACKNOWLEDGE, version, [frame], length_sent=True)
    assert is_without_endpoints(edited([frame], view), response(version))
