"""The PROXY protocol, versions 1 and 2: the header with which a load balancer states its client's address.

Source: "The PROXY protocol", doc/proxy-protocol.txt of HAProxy. Version 1 is one line of text:

    PROXY TCP4 192.0.2.1 198.51.100.1 56324 9092\\r\\n

Version 2 is binary: a signature of 12 bytes, version and command (4 bits each), family and protocol (4 bits
each), the length of the rest (uint16), the addresses, and TLVs, which are skipped.
"""

from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Final, final

from proxy.wire.errors import Malformed

V1_START: Final = b"PROXY "
V1_MOST: Final = 107
"""The longest line, with its CRLF."""
V2_SIGNATURE: Final = b"\r\n\r\n\x00\r\nQUIT\n"
V2_FIXED: Final = 16
"""Bytes before the addresses."""
V2_MOST: Final = 4096
"""Accepted bytes of a header. Addresses take 52; TLVs with the names of a certificate take some hundred."""
LOCAL: Final = 0x20
PROXY: Final = 0x21
"""Version 2 with its commands: a connection of the load balancer's own, and one of a client."""
TCP4: Final = 0x11
TCP6: Final = 0x21
"""Families and protocols of TCP clients."""
UNKNOWN: Final = frozenset([0x00, 0x12, 0x22, 0x31, 0x32])
"""Families and protocols without the address of a TCP client: unspecified, UDP, and Unix sockets."""
TCP4_BYTES: Final = 12
TCP6_BYTES: Final = 36
"""The bytes of two addresses and two ports, by family."""


@final
class ProxyHeader:
    """A whole header. `host` is the client's IP address, and empty if the header does not state it."""

    __slots__ = ("host", "port", "size")

    def __init__(self, size: int, host: str, port: int) -> None:
        self.size: Final = size
        """The header's bytes; the client's own bytes follow."""
        self.host: Final = host
        self.port: Final = port


def read_header(data: bytes) -> ProxyHeader | None:
    """Read the header with which `data` begins; None if it is not whole yet. Raises Malformed."""
    if data[: len(V1_START)] == V1_START[: len(data)]:
        return _read_v1(data)
    if data[: len(V2_SIGNATURE)] == V2_SIGNATURE[: len(data)]:
        return _read_v2(data)
    raise Malformed("the connection does not begin with a PROXY header")


def _read_v1(data: bytes) -> ProxyHeader | None:
    end = data.find(b"\r\n", 0, V1_MOST)
    if end < 0:
        if len(data) >= V1_MOST:
            raise Malformed(f"the PROXY header has no end within {V1_MOST} bytes")
        return None
    size = end + 2
    try:
        fields = data[len(V1_START) : end].decode("ascii").split(" ")
    except UnicodeDecodeError:
        raise Malformed("the PROXY header is not ASCII") from None
    if fields[0] == "UNKNOWN":
        return ProxyHeader(size, "", 0)
    if fields[0] not in ("TCP4", "TCP6") or len(fields) != 5:
        raise Malformed("the PROXY header is not `PROXY TCP4|TCP6 SOURCE DESTINATION PORT PORT`")
    host = _address(fields[0], fields[1])
    _address(fields[0], fields[2])
    port = _port(fields[3])
    _port(fields[4])
    return ProxyHeader(size, host, port)


def _address(family: str, text: str) -> str:
    try:
        if family == "TCP4":
            return str(IPv4Address(text))
        if "%" in text:
            raise AddressValueError
        return _spelled(IPv6Address(text))
    except AddressValueError:
        raise Malformed(f"an address in the PROXY header is not a {family} address") from None


def _spelled(address: IPv6Address) -> str:
    """The address as text; an IPv4-mapped one as IPv4, so that each client has one address."""
    mapped = address.ipv4_mapped
    return str(address) if mapped is None else str(mapped)


def _port(text: str) -> int:
    # The protocol forbids leading zeros.
    if not (text.isdigit() and len(text) <= 5 and (text == "0" or text[0] != "0") and int(text) <= 65535):
        raise Malformed("a port in the PROXY header is not a number up to 65535 without leading zeros")
    return int(text)


def _read_v2(data: bytes) -> ProxyHeader | None:
    if len(data) < V2_FIXED:
        return None
    command, family = data[12], data[13]
    if command not in (LOCAL, PROXY):
        raise Malformed(f"the PROXY header has version and command {command:#04x}; expected 0x20 or 0x21")
    length = int.from_bytes(data[14:16], "big")
    size = V2_FIXED + length
    if size > V2_MOST:
        raise Malformed(f"the PROXY header has {size} bytes; the maximum is {V2_MOST}")
    if command == PROXY and family not in UNKNOWN:
        if family not in (TCP4, TCP6):
            raise Malformed(f"the PROXY header has the unknown family and protocol {family:#04x}")
        least = TCP4_BYTES if family == TCP4 else TCP6_BYTES
        if length < least:
            raise Malformed(f"the PROXY header has {length} bytes of addresses instead of {least}")
    if len(data) < size:
        return None
    if command == LOCAL or family in UNKNOWN:
        return ProxyHeader(size, "", 0)
    if family == TCP4:
        host, ports = str(IPv4Address(data[16:20])), 24
    else:
        host, ports = _spelled(IPv6Address(data[16:32])), 48
    return ProxyHeader(size, host, int.from_bytes(data[ports : ports + 2], "big"))
