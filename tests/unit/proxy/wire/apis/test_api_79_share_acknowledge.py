"""tests/unit/proxy/wire/apis/test_share_response.py has what it shares with ShareFetch."""

import pytest

from proxy.wire.api_keys import SHARE_ACKNOWLEDGE
from tests.support.messages.kio_messages import response_frame, versions
from tests.support.messages.reading import read_response
from tests.support.messages.sharing import share_response


@pytest.mark.parametrize("version", versions(SHARE_ACKNOWLEDGE))
def test_no_partition_has_records(version: int) -> None:
    view = read_response(
        SHARE_ACKNOWLEDGE, version, [response_frame(share_response(SHARE_ACKNOWLEDGE, version))]
    )
    assert (view.cursor.done, view.items) == (True, [])
