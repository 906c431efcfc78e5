"""Keyed arrays: arrays that a broker reads into a hash table, whose elements must not collide.

Kafka's request classes keep some arrays in an ImplicitLinkedHashMultiCollection: a table with linear probing
and 2n + 1 slots, which keeps duplicates. If n elements have the same hash, each is put behind all others, and
the table grows by moving them one by one: the time is proportional to the cube of n. With Kafka 4.3.1, 1,000
equal keys in a request of 4 KB occupy one of the broker's network threads for 4 s, and 2,000 for 30 s. All
connections of the thread wait meanwhile. The requests are read before the client's rights and quotas count.

So such a request is read, and the connection is closed if its keys collide more than those of real requests
do: numbered names, like topic-1 to topic-500, collide, too. A request may have thousands of small arrays,
such as the configs of each topic, so the steps of all arrays are added up.
"""

from typing import Final, final

from mypy_extensions import i64 as native

from proxy.wire.api_keys import (
    ADD_PARTITIONS_TO_TXN,
    ADD_RAFT_VOTER,
    ALTER_CONFIGS,
    ALTER_REPLICA_LOG_DIRS,
    ALTER_SHARE_GROUP_OFFSETS,
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DESCRIBE_LOG_DIRS,
    ELECT_LEADERS,
    INCREMENTAL_ALTER_CONFIGS,
    JOIN_GROUP,
    OFFSET_DELETE,
    OFFSET_FOR_LEADER_EPOCH,
    PRODUCE,
    SHARE_ACKNOWLEDGE,
    SHARE_FETCH,
    UPDATE_FEATURES,
    api_name,
)
from proxy.wire.errors import Malformed, Short
from proxy.wire.keyed.layout import INT8, LAST, STRING, UUID, Field, RequestLayout
from proxy.wire.keyed.layout_walk import LayoutWalk
from proxy.wire.reader import Reader, text

UNCHECKED: Final = 100
"""So many elements of an array may have the same key."""
FEW: Final[native] = 12
"""The keys of so many elements are not read: they count as if all were equal."""
ELEMENTS_AT_MOST: Final = 10_000
"""The most elements of an array of a request whose keys are checked."""
ALL_ELEMENTS_AT_MOST: Final = 45_000
"""The most elements of all arrays of a request, with those without keys. A controller makes no more than
10,000 changes for a request, and 512 KiB have room for the 40,000 partitions of an OffsetForLeaderEpoch.
"""
STEPS_FREE: Final = 30_000_000
"""The steps that a broker may take to move the elements of any array, and of all arrays of a request but one:
0.2 s.
"""
STEPS_PER_ELEMENT: Final = 150_000
"""The steps that it may take for each element of this one. Numbered names, such as app0.a to app35.z, take up
to 112,000: a broker needs 1.6 s for the 8,652 topics events_0 to events_8651.
"""
SMALLEST_BYTES: Final = 300
"""A request of fewer bytes has no more than UNCHECKED elements in an array."""
_ACKNOWLEDGED: Final = "{1 u {1 i {0 q q *b } } }"
REQUESTS: Final[dict[int, RequestLayout]] = {
    PRODUCE: RequestLayout(13, 9, "s@3+ h i {2 s@-12 u@13+ {0 i B } }"),
    JOIN_GROUP: RequestLayout(9, 6, "s i i@1+ s s@5+ s {1 s B }"),
    CREATE_TOPICS: RequestLayout(7, 5, "{1 s i h {1 i *i } {1 s s } }"),
    OFFSET_FOR_LEADER_EPOCH: RequestLayout(4, 4, "i@3+ {1 s {0 i i@2+ i } }"),
    ADD_PARTITIONS_TO_TXN: RequestLayout(5, 3, "s@-3 q@-3 h@-3 {1@-3 s *i } {1@4+ s q h b {1 s *i } }"),
    ALTER_CONFIGS: RequestLayout(2, 2, "{2 b s {1 s s } }"),
    ALTER_REPLICA_LOG_DIRS: RequestLayout(2, 2, "{1 s {1 s *i } }"),
    DESCRIBE_LOG_DIRS: RequestLayout(5, 2, "{1 s *i }"),
    CREATE_PARTITIONS: RequestLayout(3, 2, "{1 s i {0 *i } }"),
    ELECT_LEADERS: RequestLayout(2, 2, "b@1+ {1 s *i }"),
    INCREMENTAL_ALTER_CONFIGS: RequestLayout(1, 1, "{2 b s {2 s b s } }"),
    OFFSET_DELETE: RequestLayout(0, LAST, "s {1 s {0 i } }"),
    UPDATE_FEATURES: RequestLayout(2, 0, "i {1 s h b }"),
    SHARE_FETCH: RequestLayout(2, 0, "s s i i i i i i b@2+ b@2+ " + _ACKNOWLEDGED),
    SHARE_ACKNOWLEDGE: RequestLayout(2, 0, "s s i b@2+ " + _ACKNOWLEDGED),
    ADD_RAFT_VOTER: RequestLayout(1, 0, "s i i u {1 s s h }"),
    ALTER_SHARE_GROUP_OFFSETS: RequestLayout(0, 0, "s {1 s {0 i q } }"),
}
"""The requests that a broker's listeners take."""


def check_keys(
    pieces: list[bytes], body_at: int, api_key: int, api_version: int, complete: bool = True
) -> int:
    """Raise Malformed if the keys of a request collide; return for how many elements the time has been taken
    that it takes to check a key. `pieces` is its frame, or, if it is not `complete`, the first part;
    `body_at` is the offset behind the client id.

    A request that ends too early is left to the broker, which does not read more of it either. If more of it
    is to come, Malformed is raised if an array with keys has not been read to its end.
    """
    request = REQUESTS.get(api_key)
    if request is None or api_version > request.newest:
        return 0
    walk = _KeyWalk(Reader(pieces, body_at), api_key, api_version, api_version >= request.flexible_from)
    if not walk.read_request(request) and not complete and walk.within > 0:
        raise Malformed(f"{api_name(api_key)} that is too large for its keys to be checked")
    return walk.elements if walk.all <= 10 * UNCHECKED else max(walk.elements, walk.all // 8)


@final
class _KeyWalk(LayoutWalk):
    """Checks the keys of each array."""

    def __init__(self, reader: Reader, api_key: int, version: native, flexible: bool) -> None:
        super().__init__(reader, api_key, version, flexible)
        self.all: native = 0
        """The elements of all arrays so far."""
        self.elements: native = 0
        """Those of arrays of more than UNCHECKED elements with keys."""
        self.within = 0
        """How many arrays with keys have not been read to their end, the outer ones included."""
        self._steps: native = 0
        """Those that a broker takes for all arrays so far."""
        self._most_steps: native = 0
        """Those for the array that takes most."""

    def structures(self, field: Field) -> None:
        count = self.reader.count(self.flexible)
        self.all += count
        keyed = field.keys > 0
        if (keyed and count > ELEMENTS_AT_MOST) or self.all > ALL_ELEMENTS_AT_MOST:
            raise Malformed(f"{api_name(self.api_key)} with an array of {count} elements")
        within = field.nests or (keyed and count > UNCHECKED)
        if within:
            self.within += 1
        if keyed and count > FEW:
            self._keyed_array(field, count)
        else:
            if keyed:
                self._add(count * count * (count - 1) // 2, count)
            left = count
            while left > 0:
                self.end_element(field, 0)
                left -= 1
        if within:
            self.within -= 1

    def _keyed_array(self, field: Field, count: native) -> None:
        hashes: list[int] = []
        try:
            left = count
            while left > 0:
                hashes.append(self._key(field))
                self.end_element(field, field.keys)
                left -= 1
        except Short:
            self._check(hashes, count)
            raise
        self._check(hashes, count)

    def _key(self, field: Field) -> int:
        """Read the key of an element; return its hash code in Java."""
        code: native = 0
        at: native = 0
        reader = self.reader
        while at < field.keys:
            part = field.fields[at]
            at += 1
            own: native = 0  # that of an empty name, and of the id of zeros, if the version lacks the field
            if part.since <= self.version and self.version <= part.until:
                if part.kind == STRING:
                    own = java_hash(reader.raw_string(self.flexible))
                elif part.kind == UUID:
                    own = uuid_hash(reader.uuid())
                elif part.kind == INT8:
                    own = reader.u8()
                    if own >= 128:
                        own -= 256
                else:
                    own = reader.i32()
            code = (31 * code + own) & 0xFFFF_FFFF
        return code

    def _check(self, hashes: list[int], count: native) -> None:
        if not hashes:
            return
        if count > UNCHECKED:
            self.elements += len(hashes)
        self._add(check_hashes(hashes, count, self.api_key), len(hashes))

    def _add(self, steps: native, elements: native) -> None:
        """Add the steps for an array. Raise Malformed if those for the other arrays are too many."""
        self._steps += steps
        self._most_steps = max(self._most_steps, steps)
        if self._steps - self._most_steps > STEPS_FREE:
            raise _collide(self.api_key, elements)


def check_hashes(hashes: list[int], count: int, api_key: int) -> native:
    """Raise Malformed if the hash codes of the elements of an array collide, which has `count` of them.
    Return the steps that a broker takes for it.
    """
    steps: native = moving_cost(hashes, 2 * count + 1)
    equal = len(hashes) > UNCHECKED and most_equal(hashes) > UNCHECKED
    if equal or steps > max(STEPS_FREE, STEPS_PER_ELEMENT * len(hashes)):
        raise _collide(api_key, len(hashes))
    return steps


def _collide(api_key: int, elements: int) -> Malformed:
    return Malformed(f"{api_name(api_key)} with {elements} elements whose keys are equal or collide")


def topic_hash(name: bytes, topic_id: bytes) -> int:
    """The hash code of a topic in a Produce request; one of both is empty, or has only zeros."""
    return (31 * java_hash(name) + uuid_hash(topic_id)) & 0xFFFF_FFFF


def uuid_hash(raw: bytes) -> int:
    """The hash code of an id in Kafka, as an unsigned number."""
    whole = int.from_bytes(raw, "big")
    mixed = (whole >> 64) ^ (whole & 0xFFFF_FFFF_FFFF_FFFF)
    return (mixed >> 32) ^ (mixed & 0xFFFF_FFFF)


def java_hash(raw: bytes) -> int:
    """The hash code of a string in Java, as an unsigned number."""
    code: native = 0
    at: native = 0
    if raw.isascii():
        end: native = len(raw)
        while at < end:
            unit: native = raw[at]
            code = (31 * code + unit) & 0xFFFF_FFFF
            at += 1
        return code
    units = text(raw).encode("utf-16-be", "surrogatepass")
    end = len(units)
    while at < end:
        high: native = units[at]
        low: native = units[at + 1]
        code = (31 * code + high * 256 + low) & 0xFFFF_FFFF
        at += 2
    return code


def most_equal(hashes: list[int]) -> int:
    """How often the most frequent of these occurs."""
    counts: dict[int, int] = {}
    for code in hashes:
        counts[code] = counts.get(code, 0) + 1
    return max(counts.values())


def moving_cost(hashes: list[int], slots: int) -> int:
    """The steps that it takes to move all elements of a table with linear probing, one by one: for each
    element, those behind it without a gap are put into their places again.
    """
    total = 0
    after: native = -2
    length: native = 0
    distance: native = 0
    for home in sorted([(code & 0x7FFF_FFFF) % slots for code in hashes]):
        if home > after + 1:
            total += length * distance
            length = distance = 0
            after = home
        else:
            after += 1
            distance += after - home
        length += 1
    return total + length * distance
