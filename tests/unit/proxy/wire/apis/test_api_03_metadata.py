from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from proxy.wire.api_keys import METADATA
from proxy.wire.errors import Short
from tests.support.messages.exchanges import milliseconds
from tests.support.messages.kio_messages import (
    BROKER_HOST,
    read_frame,
    response_frame,
    response_type,
    through_proxy,
    versions,
)
from tests.support.messages.reading import (
    PORTS,
    announce,
    api_of,
    edited,
    read_response,
    request_view,
    start_response,
)

VERSIONS = versions(METADATA)


def response(version: int, throttle_ms: int = 0) -> Any:
    message = response_type(METADATA, version)
    broker = message.__annotations__["brokers"].__args__[0]
    rack = {"rack": "r"} if version >= 1 else {}
    brokers = tuple(broker(node_id=at, host=f"{BROKER_HOST}.{at}", port=9092, **rack) for at in range(3))
    fields: dict[str, Any] = {"throttle_time": milliseconds(throttle_ms)} if version >= 3 else {}
    if version >= 13:
        fields["error_code"] = ErrorCode.none
    return message(brokers=brokers, topics=(), **fields)


@pytest.mark.parametrize("version", VERSIONS)
def test_brokers_are_at_the_proxy(version: int) -> None:
    frame = response_frame(response(version))
    view = read_response(METADATA, version, [frame])
    assert read_frame(response_type(METADATA, version), edited([frame], view)) == through_proxy(
        response(version)
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_the_wait_is_known_from_v3_on(version: int) -> None:
    frame = response_frame(response(version, 1234))
    view = read_response(METADATA, version, [frame])
    if version < 3:
        assert view.throttle_at == -1
    else:
        assert view.throttle_time_ms == 1234
        view.edits.clear()
        announce(view, 5)
        assert edited([frame], view) == response_frame(response(version, 5))


@pytest.mark.parametrize("version", [2, 12])
def test_in_a_partial_frame_the_mark_is_behind_the_brokers(version: int) -> None:
    frame = response_frame(response(version))
    api = api_of(METADATA)
    for size in range(20, len(frame)):
        reader, view = start_response(api, version, [frame[:size]], False)
        view.partial = True
        try:
            api.read_response(reader, request_view(api, version), view, PORTS)
        except Short:
            assert view.cursor.mark is None
        else:
            assert view.cursor.mark is not None
            assert frame.rindex(BROKER_HOST.encode()) < view.cursor.mark.base + view.cursor.mark.pos <= size
