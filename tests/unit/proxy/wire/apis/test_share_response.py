"""What the responses to ShareFetch and ShareAcknowledge have in common."""

import pytest

from proxy.wire.api_keys import SHARE_ACKNOWLEDGE, SHARE_FETCH
from tests.support.messages.kio_messages import (
    is_without_endpoints,
    read_frame,
    response_frame,
    response_type,
    through_proxy,
    versions,
)
from tests.support.messages.reading import announce, edited, read_response
from tests.support.messages.sharing import share_response

EACH = [(key, version) for key in (SHARE_FETCH, SHARE_ACKNOWLEDGE) for version in versions(key)]
each = pytest.mark.parametrize(("api_key", "version"), EACH)


@each
def test_addresses_are_replaced(api_key: int, version: int) -> None:
    response = share_response(api_key, version)
    frame = response_frame(response)
    changed = edited([frame], read_response(api_key, version, [frame]))
    assert read_frame(response_type(api_key, version), changed) == through_proxy(response)


@each
def test_the_throttle_time_is_read_and_replaced(api_key: int, version: int) -> None:
    frame = response_frame(share_response(api_key, version, 1234, nodes=()))
    view = read_response(api_key, version, [frame])
    assert view.throttle_time_ms == 1234
    announce(view, 5)
    assert edited([frame], view) == response_frame(share_response(api_key, version, 5, nodes=()))


@each
def test_when_the_length_is_sent_the_addresses_are_taken_out(api_key: int, version: int) -> None:
    response = share_response(api_key, version)
    frame = response_frame(response)
    view = read_response(api_key, version, [frame], length_sent=True)
    assert is_without_endpoints(edited([frame], view), response)
