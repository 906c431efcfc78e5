"""PROXY headers: a header that is whole is read in the same way from any number of further bytes, its address
is one, and none of its beginnings is rejected.

Input: the bytes that a load balancer sends.
"""

import struct
from collections.abc import Iterator
from ipaddress import ip_address
from typing import Final

from proxy.wire.errors import Malformed
from proxy.wire.proxy_protocol import V2_MOST, V2_SIGNATURE, ProxyHeader, read_header
from tests.fuzz.harness import Target


def run(data: bytes) -> None:
    header = _read(data)
    if header is None:
        return
    assert 0 < header.size <= min(len(data), V2_MOST)
    assert header.host == "" or str(ip_address(header.host)) == header.host
    assert 0 <= header.port <= 65535
    again = _read(data[: header.size])
    assert again is not None
    assert (again.size, again.host, again.port) == (header.size, header.host, header.port)
    for end in range(header.size):
        assert read_header(data[:end]) is None


def _read(data: bytes) -> ProxyHeader | None:
    try:
        return read_header(data)
    except Malformed:
        return None


def seeds() -> Iterator[bytes]:
    yield b"PROXY TCP4 192.0.2.1 198.51.100.1 56324 9092\r\n\0\0\0\1"
    yield b"PROXY TCP6 fd00::7 ::ffff:192.0.2.1 1 65535\r\n"
    yield b"PROXY UNKNOWN\r\n"
    for command, family, size in ((0x21, 0x11, 12), (0x21, 0x21, 36), (0x20, 0, 0), (0x21, 0x11, 17)):
        yield V2_SIGNATURE + struct.pack("!BBH", command, family, size) + bytes(range(size)) + b"\0\0\0\1"


WORDS: Final = (V2_SIGNATURE, b"PROXY ", b"TCP4", b"TCP6", b"UNKNOWN", b"\r\n", b"::", b"255.255.255.255")
TARGET: Final = Target(run, seeds, WORDS)
