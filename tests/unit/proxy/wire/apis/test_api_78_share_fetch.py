"""tests/unit/proxy/wire/apis/test_share_response.py has what it shares with ShareAcknowledge."""

import pytest

from proxy.wire.api_keys import SHARE_FETCH
from tests.support.messages.kio_messages import BROKER_HOST, response_frame, versions
from tests.support.messages.reading import edited, items_of, read_response
from tests.support.messages.sharing import TOPIC_ID, share_response

VERSIONS = versions(SHARE_FETCH)


@pytest.mark.parametrize("version", VERSIONS)
def test_partitions_with_their_records_are_read(version: int) -> None:
    frame = response_frame(share_response(SHARE_FETCH, version))
    view = read_response(SHARE_FETCH, version, [frame])
    assert items_of(view) == [("", TOPIC_ID.bytes, 3, 70)]
    assert view.body_size == len(frame) - 9


@pytest.mark.parametrize("version", VERSIONS)
def test_addresses_are_replaced_if_no_items_are_wanted(version: int) -> None:
    frame = response_frame(share_response(SHARE_FETCH, version))
    view = read_response(SHARE_FETCH, version, [frame], want_items=False)
    assert view.items == []
    assert BROKER_HOST.encode() not in edited([frame], view)
