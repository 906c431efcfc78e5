"""PROXY headers: what the protocol's text allows is read, everything else is Malformed."""

import socket
import struct

import pytest

from proxy.wire.errors import Malformed
from proxy.wire.proxy_protocol import V1_MOST, V2_FIXED, V2_MOST, V2_SIGNATURE, ProxyHeader, read_header

REST = b"\0\0\0\x0e\0\x12 the client's own bytes"
LONGEST_V1 = b"PROXY UNKNOWN " + b"f" * 91 + b"\r\n"


def v2(command: int, family: int, body: bytes, length: int | None = None) -> bytes:
    head = struct.pack("!BBH", command, family, len(body) if length is None else length)
    return V2_SIGNATURE + head + body


def tcp4(source: str, port: int) -> bytes:
    return socket.inet_aton(source) + socket.inet_aton("198.51.100.1") + struct.pack("!HH", port, 9092)


def tcp6(source: str, port: int) -> bytes:
    addresses = [socket.inet_pton(socket.AF_INET6, text) for text in (source, "fd00::2")]
    return b"".join(addresses) + struct.pack("!HH", port, 9092)


def shown(header: ProxyHeader | None) -> tuple[int, str, int] | None:
    return None if header is None else (header.size, header.host, header.port)


WHOLE = [
    (b"PROXY TCP4 192.0.2.1 198.51.100.1 56324 9092\r\n", "192.0.2.1", 56324),
    (b"PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n", "255.255.255.255", 65535),
    (b"PROXY TCP4 127.0.0.1 127.0.0.1 0 0\r\n", "127.0.0.1", 0),
    (b"PROXY TCP6 fd00:0:0::7 fd00::1 1 2\r\n", "fd00::7", 1),
    (b"PROXY TCP6 ::ffff:192.0.2.1 ::1 1 2\r\n", "192.0.2.1", 1),
    (b"PROXY UNKNOWN\r\n", "", 0),
    (b"PROXY UNKNOWN 1 2 \x7f\r\n", "", 0),
    (LONGEST_V1, "", 0),
    (v2(0x21, 0x11, tcp4("192.0.2.1", 56324)), "192.0.2.1", 56324),
    (v2(0x21, 0x11, tcp4("192.0.2.1", 1) + b"\x04\0\x02\xaa\xbb"), "192.0.2.1", 1),
    (v2(0x21, 0x21, tcp6("fd00::7", 56324)), "fd00::7", 56324),
    (v2(0x21, 0x21, tcp6("::ffff:192.0.2.1", 5)), "192.0.2.1", 5),
    (v2(0x20, 0x00, b""), "", 0),
    (v2(0x20, 0x11, tcp4("192.0.2.1", 1)), "", 0),
    (v2(0x20, 0x11, b"too short for its family"[:3]), "", 0),
    (v2(0x21, 0x00, b""), "", 0),
    (v2(0x21, 0x31, b"\0" * 216), "", 0),
    (v2(0x21, 0x11, tcp4("192.0.2.1", 1).ljust(V2_MOST - V2_FIXED, b"\0")), "192.0.2.1", 1),
]


@pytest.mark.parametrize(("data", "host", "port"), WHOLE)
def test_a_whole_header_and_its_parts(data: bytes, host: str, port: int) -> None:
    expected = (len(data), host, port)
    assert shown(read_header(data)) == expected
    assert shown(read_header(data + REST)) == expected
    for end in range(len(data)):
        assert read_header(data[:end]) is None


def test_the_longest_line_is_as_long_as_allowed() -> None:
    assert len(LONGEST_V1) == V1_MOST


@pytest.mark.parametrize(
    "data",
    [
        REST,
        b"\x16\x03\x01\x02\0",
        b"GET / HTTP/1.1\r\n",
        b"PROXY\r\n",
        b"proxy TCP4 192.0.2.1 198.51.100.1 56324 9092\r\n",
        b"PROXY  TCP4 192.0.2.1 198.51.100.1 56324 9092\r\n",
        b"PROXY TCP4 192.0.2.1 198.51.100.1 56324\r\n",
        b"PROXY TCP4 192.0.2.1 198.51.100.1 56324 9092 1\r\n",
        b"PROXY TCP4 192.0.2.1 198.51.100.1  9092\r\n",
        b"PROXY TCP4 192.0.2 198.51.100.1 56324 9092\r\n",
        b"PROXY TCP4 192.0.2.01 198.51.100.1 56324 9092\r\n",
        b"PROXY TCP4 192.0.2.1 localhost 56324 9092\r\n",
        b"PROXY TCP4 fd00::7 fd00::1 56324 9092\r\n",
        b"PROXY TCP6 192.0.2.1 192.0.2.1 56324 9092\r\n",
        b"PROXY TCP6 fe80::1%lo fd00::1 56324 9092\r\n",
        b"PROXY TCP4 192.0.2.1 198.51.100.1 65536 9092\r\n",
        b"PROXY TCP4 192.0.2.1 198.51.100.1 056 9092\r\n",
        b"PROXY TCP4 192.0.2.1 198.51.100.1 +56 9092\r\n",
        b"PROXY TCP4 192.0.2.1 198.51.100.1 56324 -1\r\n",
        b"PROXY UDP4 192.0.2.1 198.51.100.1 56324 9092\r\n",
        "PROXY TCP4 ١٩٢.0.2.1 198.51.100.1 56324 9092\r\n".encode(),
        b"PROXY TCP4 192.0.2.1 198.51.100.1 56324 9092\n".ljust(V1_MOST, b"x"),
        LONGEST_V1.replace(b"\r\n", b"f\r\n"),
        v2(0x11, 0x11, tcp4("192.0.2.1", 1)),
        v2(0x22, 0x11, tcp4("192.0.2.1", 1)),
        v2(0x21, 0x13, tcp4("192.0.2.1", 1)),
        v2(0x21, 0x41, tcp4("192.0.2.1", 1)),
        v2(0x21, 0x11, tcp4("192.0.2.1", 1)[:11]),
        v2(0x21, 0x21, tcp4("192.0.2.1", 1)),
        v2(0x21, 0x11, b"", length=V2_MOST - V2_FIXED + 1),
        v2(0x20, 0x00, b"", length=65535),
    ],
)
def test_malformed(data: bytes) -> None:
    with pytest.raises(Malformed):
        read_header(data)
