"""How large an intercepted request may be."""

import pytest

from proxy.relay.counters.traffic import Bytes
from proxy.relay.exchange import Client, Exchange
from proxy.relay.intercepted import (
    MAX_ALTER_QUOTAS_BYTES,
    MAX_DESCRIBE_BYTES,
    MAX_INTERCEPTED_REQUEST_BYTES,
    Intercepted,
    max_request_bytes,
)
from proxy.wire.api_keys import ALTER_CLIENT_QUOTAS, CREATE_TOPICS, DESCRIBE_CLIENT_QUOTAS
from proxy.wire.apis.api import read_request_header
from proxy.wire.edit import LENGTH_SIZE
from proxy.wire.reader import Reader
from tests.support.messages.exchanges import opaque


@pytest.mark.parametrize(
    ("api_key", "size"),
    [
        (DESCRIBE_CLIENT_QUOTAS, MAX_DESCRIBE_BYTES),
        (ALTER_CLIENT_QUOTAS, MAX_ALTER_QUOTAS_BYTES),
        (CREATE_TOPICS, MAX_INTERCEPTED_REQUEST_BYTES),
    ],
)
def test_a_filter_is_small_and_other_requests_may_be_large(api_key: int, size: int) -> None:
    assert max_request_bytes(api_key) == size
    assert MAX_DESCRIBE_BYTES < MAX_ALTER_QUOTAS_BYTES < MAX_INTERCEPTED_REQUEST_BYTES


def test_a_request_is_given_out_without_its_length() -> None:
    frame = opaque(7)
    header = read_request_header(Reader([frame], LENGTH_SIZE))
    exchange = Exchange(7, Client("u", "c", "a", Bytes(), b"c"))
    given = Intercepted(exchange, header, frame[LENGTH_SIZE:])
    assert (given.exchange, given.header.correlation_id) == (exchange, 7)
    assert read_request_header(Reader([given.frame], 0)).api_key == header.api_key
