"""Addresses: wherever Kafka sends a broker's address, the client must read the proxy's.

All such places share one shape: node_id (int32), host (string), port (int32). Sources: MetadataResponse,
FindCoordinatorResponse, DescribeClusterResponse, and the NodeEndpoints of KIP-951 and KIP-932.
"""

from typing import Final, final

from mypy_extensions import mypyc_attr

from proxy.wire.edit import Edit, i32, string, uvarint
from proxy.wire.errors import Malformed
from proxy.wire.reader import Reader
from proxy.wire.views import ResponseView

UNKNOWN_TAG: Final = 127
"""A tagged field that Kafka does not define: readers skip it. It takes one byte, as the tags that it
replaces.
"""


@final
class Address:
    """A host and port."""

    __slots__ = ("host", "port")

    def __init__(self, host: str, port: int) -> None:
        self.host: Final = host
        self.port: Final = port


@mypyc_attr(allow_interpreted_subclasses=True)
class Addresses:
    """Tells where clients reach a broker."""

    def advertised(self, node_id: int, host: str, port: int) -> Address:
        """The proxy's address for broker `node_id`, whose own is `host`:`port`."""
        raise NotImplementedError


@final
class Unchanged(Addresses):
    """Between brokers: each is where it says."""

    def advertised(self, node_id: int, host: str, port: int) -> Address:
        return Address(host, port)


def rewrite_address(reader: Reader, view: ResponseView, addresses: Addresses) -> None:
    """Read node_id, host and port, and replace the latter two; no node (-1, or no host) is left alone."""
    node_id = reader.i32()
    start = reader.offset
    host = reader.string(view.flexible)
    port = reader.i32()
    if node_id < 0 or not host:
        return
    proxy = addresses.advertised(node_id, host, port)
    view.edits.append(Edit(start, reader.offset, string(proxy.host, view.flexible) + i32(proxy.port)))


def _rewrite_endpoints(reader: Reader, view: ResponseView, addresses: Addresses) -> None:
    """Read an array of NodeEndpoint: node_id, host, port, rack, tags."""
    left = reader.count(True)
    while left > 0:
        rewrite_address(reader, view, addresses)
        reader.skip_string(True)
        reader.skip_tags()
        left -= 1


def rewrite_endpoints_tag(reader: Reader, view: ResponseView, addresses: Addresses) -> None:
    """Read a response's last tag section, in which tag 0 is NodeEndpoints (Produce 10+, Fetch 16+: KIP-951).

    Where the frame's length is on its way already, the endpoints become an unknown tag full of zeros: they
    are a hint, without which clients ask for metadata.
    """
    left = reader.uvarint()
    while left > 0:
        tag_at = reader.offset
        tag = reader.uvarint()
        size_at = reader.offset
        size = reader.uvarint()
        start = reader.offset
        if tag != 0:
            reader.skip(size)
        elif view.length_sent:
            reader.skip(size)
            view.edits.append(Edit(tag_at, tag_at + 1, uvarint(UNKNOWN_TAG)))
            view.edits.append(Edit(start, start + size, bytes(size)))
        else:
            before = len(view.edits)
            _rewrite_endpoints(reader, view, addresses)
            if reader.offset != start + size:
                raise Malformed(f"NodeEndpoints take {reader.offset - start} bytes in a tag of {size}")
            grown = size
            for edit in view.edits[before:]:
                grown += edit.growth
            view.edits.insert(before, Edit(size_at, start, uvarint(grown)))
        left -= 1


def rewrite_endpoints_array(reader: Reader, view: ResponseView, addresses: Addresses) -> None:
    """Read an ordinary array of NodeEndpoints and the tag section that ends the response (KIP-932).

    Where the frame's length is on its way already, the array becomes empty, and an unknown tag fills its
    place.
    """
    start = reader.offset
    before = len(view.edits)
    _rewrite_endpoints(reader, view, addresses)
    reader.skip_tags()
    if view.length_sent and len(view.edits) > before:
        del view.edits[before:]
        view.edits.append(Edit(start, reader.offset, _no_endpoints(reader.offset - start)))


def _no_endpoints(size: int) -> bytes:
    """`size` bytes that say: no endpoints, one unknown tag. One endpoint took 13 bytes or more, so they
    suffice.
    """
    head = uvarint(1) + uvarint(1) + uvarint(UNKNOWN_TAG)
    fill = size - len(head) - 3
    # A varint of three bytes whatever its value, so that every size can be met.
    return head + bytes([fill & 0x7F | 0x80, fill >> 7 & 0x7F | 0x80, fill >> 14 & 0x7F]) + bytes(fill)
