"""Under which client id Kafka counts generated requests; the proxy counts each under the same."""

from random import Random
from typing import Final

import pytest

from proxy.quota.client_ids import MAX_BYTES, represented
from proxy.quota.identity import Identity
from proxy.relay.counters.traffic import Traffic
from proxy.relay.exchange import new_client
from proxy.wire.apis.api import read_request_header
from proxy.wire.reader import Reader
from tests.support.kafka.tool_server import run_java

pytestmark = pytest.mark.kafka
SEEDS: Final = 6000
VERSIONS: Final = (8, 12)
"""Of Metadata: one with each version of the request header."""
PARTS: Final = (
    *(
        bytes([byte])
        for byte in (0x00, 0x0A, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2)
    ),
    *(
        bytes([byte])
        for byte in (0xDF, 0xE0, 0xE1, 0xED, 0xEF, 0xF0, 0xF1, 0xF4, 0xF5, 0xF8, 0xFC, 0xFE, 0xFF)
    ),
    *(text.encode() for text in ("app", "é", "李", "\U0001f600", "\ufffd", "\ufeff", "\U0010ffff")),
    b"\xed\xa0\x80",
    b"\xed\xa0\xbd\xed\xb8\x80",
    b"\xc0\x80",
)
"""What UTF-8 allows and forbids: parts of characters, surrogates, overlong forms, NUL."""


def client_id(random: Random) -> bytes:
    made = b"".join(random.choice(PARTS) for _ in range(random.choice((1, 2, 3, 4, 6))))
    return made * random.choice((1, 1, 1, 1, 60))


def header(random: Random, raw: bytes | None) -> bytes:
    version = random.choice(VERSIONS)
    size = -1 if raw is None else len(raw)
    fixed = b"".join(number.to_bytes(2, "big") for number in (3, version))
    tags = b"\0" if version == VERSIONS[1] else b""
    return fixed + random.randbytes(4) + size.to_bytes(2, "big", signed=True) + (raw or b"") + tags


def proxys(raw: bytes) -> str:
    """The client id under which the proxy counts a request with this header."""
    read = read_request_header(Reader([raw]))
    return new_client(Identity("alice", "", "127.0.0.1"), read.raw_client_id, Traffic(), 1).client_id


def test_a_client_is_counted_as_itself() -> None:
    randoms = [Random(seed) for seed in range(SEEDS)]
    headers = [header(random, client_id(random)) for random in randoms] + [header(Random(0), None)]
    kafkas = [bytes.fromhex(line).decode() for line in run_java("ClientIds", given=_lines(headers))]
    assert len(kafkas) == len(headers)
    for raw, name in zip(headers, kafkas, strict=True):
        assert proxys(raw) == represented(name), raw
    assert sum("\ufffd" in name for name in kafkas) > SEEDS / 2
    assert sum(len(name.encode()) > MAX_BYTES for name in kafkas) > SEEDS / 20


def _lines(headers: list[bytes]) -> str:
    return "".join(raw.hex() + "\n" for raw in headers)
