from dataclasses import replace
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from proxy.wire.api_keys import FIND_COORDINATOR
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

VERSIONS = versions(FIND_COORDINATOR)


def response(version: int, throttle_ms: int = 0, node_id: int = 1, host: str = BROKER_HOST) -> Any:
    message = response_type(FIND_COORDINATOR, version)
    fields = {"throttle_time": milliseconds(throttle_ms)} if version >= 1 else {}
    found = {"node_id": node_id, "host": host, "port": 9092, "error_code": ErrorCode.none}
    if version >= 1:
        found["error_message"] = "a message"
    if version < 4:
        return message(**found, **fields)
    coordinator = message.__annotations__["coordinators"].__args__[0]
    return message(coordinators=(coordinator(key="g", **found), coordinator(key="h", **found)), **fields)


@pytest.mark.parametrize("version", VERSIONS)
def test_coordinators_are_at_the_proxy(version: int) -> None:
    frame = response_frame(response(version))
    changed = edited([frame], read_response(FIND_COORDINATOR, version, [frame]))
    assert BROKER_HOST.encode() not in changed
    assert read_frame(response_type(FIND_COORDINATOR, version), changed) == through_proxy(response(version))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_coordinator_that_was_not_found_stays_as_it_is(version: int) -> None:
    frame = response_frame(response(version, node_id=-1, host=""))
    assert read_response(FIND_COORDINATOR, version, [frame]).edits == []


@pytest.mark.parametrize("version", VERSIONS)
def test_the_wait_is_known_from_v1_on(version: int) -> None:
    frame = response_frame(response(version, 1234, -1, ""))
    view = read_response(FIND_COORDINATOR, version, [frame])
    if version == 0:
        assert view.throttle_at == -1
    else:
        assert view.throttle_time_ms == 1234
        announce(view, 5)
        assert edited([frame], view) == response_frame(response(version, 5, -1, ""))


def test_no_coordinators() -> None:
    empty = replace(response(4), coordinators=())
    assert read_response(FIND_COORDINATOR, 4, [response_frame(empty)]).edits == []
