"""may_stream(): which first parts it takes. tests/relay/large/test_streamed_requests.py has the stories."""

import pytest

from proxy.relay.counters.traffic import Traffic
from proxy.relay.requests.parser import RequestParser
from proxy.relay.requests.streams import may_stream
from proxy.relay.settings import RelaySettings
from proxy.wire.errors import Malformed
from proxy.wire.frames import Frame
from proxy.wire.spare_items import SpareItems
from tests.support.messages.exchanges import fetch, opaque, produce
from tests.support.stories.playbook import START, engine

LARGE = produce(1, 200_000, version=9)


def takes(*pieces: bytes) -> bool:
    limits = engine({})
    settings = RelaySettings(max_frame_bytes=1 << 20)
    parser = RequestParser(limits, Traffic(), settings, SpareItems(settings.spare_items))
    return may_stream(Frame(list(pieces), 200_004, False), limits, parser, settings, START)


def test_a_produce_request_from_its_last_head_on() -> None:
    head = LARGE.index(bytes(1000))
    assert not takes(LARGE[: head - 10])
    assert takes(LARGE[: head + 1000])
    assert takes(LARGE[:20], LARGE[20 : head + 1000])


@pytest.mark.parametrize("version", [14, 32767])
def test_not_a_version_that_the_proxy_does_not_read(version: int) -> None:
    assert not takes(LARGE[:6] + version.to_bytes(2, "big") + LARGE[8:70_000])


@pytest.mark.parametrize("frame", [fetch(1, version=12), opaque(1, body=bytes(1000))])
def test_not_another_api(frame: bytes) -> None:
    assert not takes(frame)


def test_a_part_that_does_not_parse_ends_the_connection_as_the_whole_would() -> None:
    bad = LARGE.replace(b"\x07orders", b"\xff\xff\xff\xff\x7f", 1)
    with pytest.raises(Malformed):
        takes(bad[:70_000])
