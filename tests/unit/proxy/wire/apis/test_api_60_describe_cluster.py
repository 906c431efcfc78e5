from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from proxy.wire.api_keys import DESCRIBE_CLUSTER
from tests.support.messages.exchanges import milliseconds
from tests.support.messages.kio_messages import (
    BROKER_HOST,
    read_frame,
    response_frame,
    response_type,
    through_proxy,
    versions,
)
from tests.support.messages.reading import announce, edited, read_response

VERSIONS = versions(DESCRIBE_CLUSTER)


def response(version: int, throttle_ms: int = 0, **fields: int) -> Any:
    message = response_type(DESCRIBE_CLUSTER, version)
    broker = message.__annotations__["brokers"].__args__[0]
    more = {"is_fenced": True} if version >= 2 else {}
    brokers = tuple(
        broker(broker_id=at, host=f"{BROKER_HOST}.{at}", port=9092, rack="r", **more) for at in range(3)
    )
    return message(
        throttle_time=milliseconds(throttle_ms),
        error_code=ErrorCode.none,
        error_message="a message",
        cluster_id="c",
        controller_id=2,
        brokers=brokers,
        **fields,
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_brokers_are_at_the_proxy(version: int) -> None:
    frame = response_frame(response(version))
    changed = edited([frame], read_response(DESCRIBE_CLUSTER, version, [frame]))
    assert BROKER_HOST.encode() not in changed
    assert read_frame(response_type(DESCRIBE_CLUSTER, version), changed) == through_proxy(response(version))


@pytest.mark.parametrize("version", [1, 2])
def test_controllers_stay_where_they_are(version: int) -> None:
    frame = response_frame(response(version, endpoint_type=2))
    assert read_response(DESCRIBE_CLUSTER, version, [frame]).edits == []


@pytest.mark.parametrize("version", VERSIONS)
def test_the_wait_is_known(version: int) -> None:
    frame = response_frame(response(version, 1234))
    view = read_response(DESCRIBE_CLUSTER, version, [frame])
    assert view.throttle_time_ms == 1234
    view.edits.clear()
    announce(view, 5)
    assert edited([frame], view) == response_frame(response(version, 5))
