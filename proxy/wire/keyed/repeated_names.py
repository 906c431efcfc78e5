"""Repeated names: a group, partition or transaction that one request names again and again.

A broker describes it each time, so a small request may have a response that exhausts the broker's heap: with
Kafka 4.3.1, an OffsetFetch of 44 KB that names a group 4,000 times exhausts a heap of 1 GB if the group has
committed offsets with 400 KB of metadata, and a DescribeGroups of 920 bytes has a response of 270 MB. No
client needs a description twice, so the connection is closed if a request has more than REPEATS_AT_MOST
elements that are equal to another one of their array.
"""

from typing import Final, final

from mypy_extensions import i64 as native

from proxy.wire.api_keys import (
    CONSUMER_GROUP_DESCRIBE,
    DESCRIBE_GROUPS,
    DESCRIBE_PRODUCERS,
    DESCRIBE_SHARE_GROUP_OFFSETS,
    DESCRIBE_TRANSACTIONS,
    OFFSET_FETCH,
    SHARE_GROUP_DESCRIBE,
    STREAMS_GROUP_DESCRIBE,
    api_name,
)
from proxy.wire.errors import Malformed
from proxy.wire.keyed.layout import UUID, Field, RequestLayout
from proxy.wire.keyed.layout_walk import LayoutWalk
from proxy.wire.reader import Reader

REPEATS_AT_MOST: Final[native] = 10
"""A client that collects names itself may repeat a few."""
NAMES_AT_MOST: Final[native] = 45_000
"""The most names of all arrays of a request: as many as 512 KiB have room for, if a name has eight bytes. The
event loop serves nobody else while it reads them.
"""
DESCRIBING: Final[dict[int, RequestLayout]] = {
    OFFSET_FETCH: RequestLayout(10, 6, "{1@8+ s s@9+ i@9+ {2 s@-9 u@10+ *i } } s@-7 {1@-7 s *i }"),
    DESCRIBE_GROUPS: RequestLayout(6, 5, "*s"),
    DESCRIBE_PRODUCERS: RequestLayout(0, 0, "{1 s *i }"),
    DESCRIBE_TRANSACTIONS: RequestLayout(0, 0, "*s"),
    CONSUMER_GROUP_DESCRIBE: RequestLayout(1, 0, "*s"),
    SHARE_GROUP_DESCRIBE: RequestLayout(1, 0, "*s"),
    STREAMS_GROUP_DESCRIBE: RequestLayout(1, 0, "*s"),
    DESCRIBE_SHARE_GROUP_OFFSETS: RequestLayout(1, 0, "{1 s {1 s *i } }"),
}
"""Requests whose response has what a broker knows of each element."""


def check_repeats(
    pieces: list[bytes], body_at: int, api_key: int, api_version: int, complete: bool = True
) -> int:
    """Raise Malformed if a request names the same things again and again; return how many names it has.
    `pieces` is its frame, or, if it is not `complete`, the first part; `body_at` is the offset behind the
    client id.

    A request that ends too early is left to the broker, which does not execute it. If more of it is to come,
    Malformed is raised.
    """
    layout = DESCRIBING.get(api_key)
    if layout is None or api_version > layout.newest:
        return 0
    walk = _NameWalk(Reader(pieces, body_at), api_key, api_version, api_version >= layout.flexible_from)
    if not walk.read_request(layout) and not complete:
        raise Malformed(f"{api_name(api_key)} that is too large for its names to be checked")
    return walk.names


@final
class _NameWalk(LayoutWalk):
    """Counts the names of each array that occur before in it."""

    def __init__(self, reader: Reader, api_key: int, version: native, flexible: bool) -> None:
        super().__init__(reader, api_key, version, flexible)
        self.names: native = 0
        """Those of all arrays so far."""
        self._repeats: native = 0
        """How many of them are equal to another one of their array."""

    def structures(self, field: Field) -> None:
        total = self._count_names()
        left = total
        seen: set[bytes] = set()
        while left > 0:
            seen.add(self._key(field))
            self.end_element(field, field.keys)
            left -= 1
            self._check(total - left - len(seen))
        self._repeats += total - len(seen)

    def _key(self, field: Field) -> bytes:
        """Read the key of an element."""
        reader = self.reader
        key = b""
        at: native = 0
        while at < field.keys:
            part = field.fields[at]
            at += 1
            if part.since > self.version or part.until < self.version:
                continue
            key = reader.uuid() if part.kind == UUID else reader.raw_string(self.flexible)
        return key

    def strings(self) -> None:
        reader = self.reader
        left = self._count_names()
        total = left
        seen: set[bytes] = set()
        while left > 0:
            seen.add(reader.raw_string(self.flexible))
            left -= 1
            self._check(total - left - len(seen))
        self._repeats += total - len(seen)

    def numbers(self, field: Field) -> None:
        """Read an array of numbers: in one step, because a request may have a hundred thousand."""
        reader = self.reader
        total = reader.count(self.flexible)
        size = total * field.size
        at = reader.take(size)
        repeats = total - len(set(memoryview(reader.data)[at : at + size].cast("i")))
        self._check(repeats)
        self._repeats += repeats

    def _count_names(self) -> native:
        number = self.reader.count(self.flexible)
        self.names += number
        if self.names > NAMES_AT_MOST:
            raise Malformed(f"{api_name(self.api_key)} with an array of {number} names")
        return number

    def _check(self, repeats: native) -> None:
        """Raise Malformed if there are too many repeats, with those of the array that is being read."""
        if self._repeats + repeats > REPEATS_AT_MOST:
            raise Malformed(f"{api_name(self.api_key)} that names the same things again and again")
