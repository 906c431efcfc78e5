from dataclasses import fields

import pytest

from bench.attacks.catalogue import ATTACKS, FLEXIBLE, NOWHERE, PLAIN, Target, title
from proxy.wire.apis.api import read_request_header
from proxy.wire.reader import Reader
from tests.support.messages.kio_messages import response_type

TARGET = Target(0, "topic", bytes(range(16)))


@pytest.mark.parametrize("name", ATTACKS)
def test_every_attack_makes_requests(name: str) -> None:
    flood = ATTACKS[name](TARGET)
    assert (flood.tls_handshakes or flood.connections == 0) == (not flood.requests)
    assert ATTACKS[name].__doc__


def test_titles() -> None:
    assert title("nothing") == "No attack"
    assert title("fetch_at_most") == "Fetch of 18,000 partitions that do not exist, 512 KB"


@pytest.mark.parametrize("name", ATTACKS)
def test_where_responses_have_their_throttle_time(name: str) -> None:
    flood = ATTACKS[name](TARGET)
    for request in flood.requests:
        header = read_request_header(Reader([request], 4))
        if header.api_version == 99:
            assert flood.throttle_at == NOWHERE
            continue
        response = response_type(header.api_key, header.api_version)
        first = fields(response)[0].name == "throttle_time"
        tagged = response.__header_schema__.__flexible__
        assert flood.throttle_at == ((FLEXIBLE if tagged else PLAIN) if first else NOWHERE)
