"""Addresses: replaces the brokers' addresses in responses with those of the proxy.

All places with an address share one shape: node_id (int32), host (string), port (int32). Sources:
MetadataResponse, FindCoordinatorResponse, DescribeClusterResponse, and the NodeEndpoints of KIP-951 and
KIP-932.

The proxy has a port for each broker. The wire ring does no I/O, so it only looks addresses up, and raises
UnknownBrokers if some are missing. The shell then binds their ports and fills the table, and the response is
read again.
"""

from typing import Final, final

from mypy_extensions import mypyc_attr

from proxy.wire.edit import Edit, i32, string, uvarint
from proxy.wire.errors import Malformed
from proxy.wire.reader import Reader, text
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


@final
class BrokerAddress:
    """A broker with the address of its own listener, as a response has it."""

    __slots__ = ("host", "node_id", "port")

    def __init__(self, node_id: int, host: str, port: int) -> None:
        self.node_id: Final = node_id
        self.host: Final = host
        self.port: Final = port


class UnknownBrokers(Exception):
    """A response has brokers that the table lacks, or has with another address of their own."""

    def __init__(self, brokers: list[BrokerAddress]) -> None:
        super().__init__(f"unknown brokers: {[broker.node_id for broker in brokers]}")
        self.brokers: Final = brokers


@mypyc_attr(allow_interpreted_subclasses=True)
class Addresses:
    """Where clients reach the brokers: a table that the shell fills, shared by a listener's connections."""

    def __init__(self, rewrites: bool = True) -> None:
        self.rewrites: Final = rewrites
        """Whether addresses are replaced at all."""
        self._known: Final[dict[int, tuple[str, int, Address]]] = {}
        self._unknown: list[BrokerAddress] = []

    def put(self, broker: BrokerAddress, address: Address) -> None:
        """Advertise a broker, whose own address is this, at the proxy's `address`."""
        self._known[broker.node_id] = (broker.host, broker.port, address)

    def find(self, node_id: int, host: str, port: int) -> Address | None:
        """The proxy's address for a broker; None if the table does not have the broker at `host`:`port`."""
        known = self._known.get(node_id)
        if known is None or known[0] != host or known[1] != port:
            return None
        return known[2]

    def begin(self) -> None:
        """Begin to read the brokers of a response; forget those that a malformed response has left."""
        if self._unknown:
            self._unknown = []

    def miss(self, broker: BrokerAddress) -> None:
        """Store a broker that find() has not found."""
        self._unknown.append(broker)

    def require(self) -> None:
        """End the brokers of a response. Raises UnknownBrokers with those that find() has not found."""
        if self._unknown:
            brokers = self._unknown
            self._unknown = []
            raise UnknownBrokers(brokers)


@final
class Unchanged(Addresses):
    """The addresses for relays between brokers: no response changes."""

    def __init__(self) -> None:
        super().__init__(False)


def rewrite_address(reader: Reader, view: ResponseView, addresses: Addresses) -> None:
    """Read node_id, host and port, and replace host and port, unless they stand for no node (-1, or no host).

    Call Addresses.begin() before the brokers of a response, and Addresses.require() after them.
    """
    node_id = reader.i32()
    start = reader.offset
    host = reader.raw_string(view.flexible)
    port = reader.i32()
    replacement = _replacement(node_id, host, port, view, addresses)
    if replacement:
        view.edits.append(Edit(start, reader.offset, replacement))


@final
class RewrittenBroker:
    """A broker of a response that has many places with few brokers."""

    __slots__ = ("host", "port", "replacement")

    def __init__(self, host: bytes, port: int, replacement: bytes) -> None:
        self.host: Final = host
        self.port: Final = port
        self.replacement: Final = replacement
        """The proxy's host and port, as the response has them; empty if nothing is replaced."""


def rewrite_repeated(
    reader: Reader, view: ResponseView, addresses: Addresses, brokers: dict[int, RewrittenBroker]
) -> None:
    """Do as rewrite_address(), and look up a broker only if it is not in `brokers`, by node id."""
    node_id = reader.i32()
    start = reader.offset
    host = reader.raw_string(view.flexible)
    port = reader.i32()
    broker = brokers.get(node_id)
    if broker is None or broker.port != port or broker.host != host:
        broker = RewrittenBroker(host, port, _replacement(node_id, host, port, view, addresses))
        brokers[node_id] = broker
    if broker.replacement:
        view.edits.append(Edit(start, reader.offset, broker.replacement))


def _replacement(node_id: int, host: bytes, port: int, view: ResponseView, addresses: Addresses) -> bytes:
    """The bytes that replace a broker's host and port; empty for none."""
    if node_id < 0 or not host or not addresses.rewrites:
        return b""
    name = text(host)
    proxy = addresses.find(node_id, name, port)
    if proxy is None:
        addresses.miss(BrokerAddress(node_id, name, port))
        return b""
    return string(proxy.host, view.flexible) + i32(proxy.port)


def _rewrite_endpoints(reader: Reader, view: ResponseView, addresses: Addresses) -> None:
    """Read an array of NodeEndpoint: node_id, host, port, rack, tags."""
    left = reader.count(True)
    addresses.begin()
    while left > 0:
        rewrite_address(reader, view, addresses)
        reader.skip_string(True)
        reader.skip_tags()
        left -= 1
    addresses.require()


def rewrite_endpoints_tag(reader: Reader, view: ResponseView, addresses: Addresses) -> None:
    """Read a response's last tag section, in which tag 0 is NodeEndpoints (Produce 10+, Fetch 16+: KIP-951).

    If the frame's length has been forwarded, the endpoints become an unknown tag full of zeros. They are only
    a hint: without them, clients request metadata.
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
        elif view.cursor.length_sent:
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

    If the frame's length has been forwarded, the array becomes empty, and an unknown tag takes the rest of
    its bytes.
    """
    start = reader.offset
    before = len(view.edits)
    _rewrite_endpoints(reader, view, addresses)
    reader.skip_tags()
    if view.cursor.length_sent and len(view.edits) > before:
        del view.edits[before:]
        view.edits.append(Edit(start, reader.offset, _no_endpoints(reader.offset - start)))


def _no_endpoints(size: int) -> bytes:
    """Return an empty array and a section with one unknown tag, `size` bytes in all. They fit, because one
    endpoint takes 13 bytes or more.
    """
    head = uvarint(1) + uvarint(1) + uvarint(UNKNOWN_TAG)
    fill = size - len(head) - 3
    # The length of the tag as a varint of three bytes, whatever its value, so that every size is possible.
    return head + bytes([fill & 0x7F | 0x80, fill >> 7 & 0x7F | 0x80, fill >> 14 & 0x7F]) + bytes(fill)
