"""Keyed arrays: arrays that a broker reads into a hash table, whose elements must not collide.

Kafka's request classes keep some arrays in an ImplicitLinkedHashMultiCollection: a table with linear probing
and 2n + 1 slots, which keeps duplicates. If n elements have the same hash, each is put behind all others, and
the table grows by moving them one by one: the time is proportional to the cube of n. With Kafka 4.3.1, 1,000
equal keys in a request of 4 KB occupy one of the broker's network threads for 4 s, and 2,000 for 30 s. All
connections of the thread wait meanwhile. The requests are read before the client's rights and quotas count.

So a request with an array of more than UNCHECKED elements is read, and the connection is closed if its keys
collide more than those of real requests do: numbered names, like topic-1 to topic-500, collide, too.
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
from proxy.wire.reader import Reader, text

UNCHECKED: Final = 100
"""So many elements may have any keys."""
ELEMENTS_AT_MOST: Final = 10_000
"""The most elements of an array of a request whose keys are checked."""
STEPS_FREE: Final = 30_000_000
"""The steps that a broker may take to move the elements of any array: 0.2 s."""
STEPS_PER_ELEMENT: Final = 150_000
"""The steps that it may take for each element. Numbered names, such as app0.a to app35.z, take up to
112,000: a broker needs 1.6 s for the 8,652 topics events_0 to events_8651.
"""
SMALLEST_BYTES: Final = 300
"""A request of fewer bytes has no more than UNCHECKED elements in an array."""
_FIXED: Final = {"b": 1, "h": 2, "i": 4, "q": 8, "u": 16}
_LAST: Final = 1 << 15


@final
class Field:
    """A field of a message, in the versions from `since` to `until`."""

    __slots__ = ("fields", "keys", "kind", "since", "size", "until")

    def __init__(self, kind: str, since: int, until: int, keys: int, fields: list["Field"]) -> None:
        self.kind: Final = kind
        """b, h, i, q, u: of a fixed size; s: string; B: bytes; *: an array of `size` bytes each; {: an array
        of structures.
        """
        self.since: Final = since
        self.until: Final = until
        self.size: Final = _FIXED.get(kind[-1], 0)
        self.keys: Final = keys
        """{: how many of `fields`, from the first, are the key; 0 for an array that is a list."""
        self.fields: Final = fields


@final
class KeyedRequest:
    """The fields of a request up to its last keyed array."""

    __slots__ = ("fields", "flexible_from", "newest")

    def __init__(self, newest: int, flexible_from: int, fields: str) -> None:
        self.newest: Final = newest
        self.flexible_from: Final = flexible_from
        self.fields: Final = _parse(fields.split())


def _parse(words: list[str]) -> list[Field]:
    """Parse fields: `i` or `s@3+` or `s@-12`, and `{1 ... }` for an array with one key field."""
    stack: list[list[Field]] = [[]]
    heads: list[str] = []
    for word in words:
        if word.startswith("{"):
            heads.append(word)
            stack.append([])
        elif word == "}":
            fields = stack.pop()
            head = heads.pop()
            keys, _, versions = head[1:].partition("@")
            since, until = _versions(versions)
            stack[-1].append(Field("{", since, until, int(keys), fields))
        else:
            kind, _, versions = word.partition("@")
            since, until = _versions(versions)
            stack[-1].append(Field(kind, since, until, 0, []))
    return stack[0]


def _versions(words: str) -> tuple[int, int]:
    if not words:
        return 0, _LAST
    return (0, int(words[1:])) if words.startswith("-") else (int(words[:-1]), _LAST)


_ACKNOWLEDGED: Final = "{1 u {1 i {0 q q *b } } }"
REQUESTS: Final[dict[int, KeyedRequest]] = {
    PRODUCE: KeyedRequest(13, 9, "s@3+ h i {2 s@-12 u@13+ {0 i B } }"),
    JOIN_GROUP: KeyedRequest(9, 6, "s i i@1+ s s@5+ s {1 s B }"),
    CREATE_TOPICS: KeyedRequest(7, 5, "{1 s i h {1 i *i } {1 s s } }"),
    OFFSET_FOR_LEADER_EPOCH: KeyedRequest(4, 4, "i@3+ {1 s {0 i i@2+ i } }"),
    ADD_PARTITIONS_TO_TXN: KeyedRequest(5, 3, "s@-3 q@-3 h@-3 {1@-3 s *i } {1@4+ s q h b {1 s *i } }"),
    ALTER_CONFIGS: KeyedRequest(2, 2, "{2 b s {1 s s } }"),
    ALTER_REPLICA_LOG_DIRS: KeyedRequest(2, 2, "{1 s {1 s *i } }"),
    DESCRIBE_LOG_DIRS: KeyedRequest(5, 2, "{1 s *i }"),
    CREATE_PARTITIONS: KeyedRequest(3, 2, "{1 s i {0 *i } }"),
    ELECT_LEADERS: KeyedRequest(2, 2, "b@1+ {1 s *i }"),
    INCREMENTAL_ALTER_CONFIGS: KeyedRequest(1, 1, "{2 b s {2 s b s } }"),
    OFFSET_DELETE: KeyedRequest(0, _LAST, "s {1 s {0 i } }"),
    UPDATE_FEATURES: KeyedRequest(2, 0, "i {1 s h b }"),
    SHARE_FETCH: KeyedRequest(2, 0, "s s i i i i i i b@2+ b@2+ " + _ACKNOWLEDGED),
    SHARE_ACKNOWLEDGE: KeyedRequest(2, 0, "s s i b@2+ " + _ACKNOWLEDGED),
    ADD_RAFT_VOTER: KeyedRequest(1, 0, "s i i u {1 s s h }"),
    ALTER_SHARE_GROUP_OFFSETS: KeyedRequest(0, 0, "s {1 s {0 i q } }"),
}
"""The requests that a broker's listeners take."""


def check_keys(
    pieces: list[bytes], body_at: int, api_key: int, api_version: int, complete: bool = True
) -> int:
    """Raise Malformed if the keys of a request collide; return how many elements have been read. `pieces` is
    its frame, or, if it is not `complete`, the first part; `body_at` is the offset behind the client id.

    A request that ends too early is left to the broker, which does not read more of it either. If more of it
    is to come, Malformed is raised if an array with keys has not been read to its end.
    """
    request = REQUESTS.get(api_key)
    if request is None or api_version > request.newest:
        return 0
    reader = Reader(pieces, body_at)
    walk = _Walk(reader, api_key, api_version, api_version >= request.flexible_from)
    try:
        if walk.flexible:
            reader.skip_tags()
        walk.read(request.fields)
    except Short as error:
        if not complete and walk.within > 0:
            raise Malformed(f"{api_name(api_key)} that is too large for its keys to be checked") from error
    return walk.elements


@final
class _Walk:
    def __init__(self, reader: Reader, api_key: int, version: int, flexible: bool) -> None:
        self.flexible: Final = flexible
        self.elements = 0
        self.within = 0
        """How many arrays with keys have not been read to their end, the outer ones included."""
        self._reader: Final = reader
        self._api_key: Final = api_key
        self._version: Final = version

    def read(self, fields: list[Field]) -> None:
        for field in fields:
            if field.since <= self._version <= field.until:
                self._field(field)

    def _field(self, field: Field) -> None:
        reader = self._reader
        kind = field.kind
        if kind == "{":
            self._array(field)
        elif kind == "s":
            reader.skip_string(self.flexible)
        elif kind == "B":
            reader.skip(reader.bytes_length(self.flexible))
        elif kind.startswith("*"):
            reader.skip(max(reader.nullable_count(self.flexible), 0) * field.size)
        else:
            reader.take(field.size)

    def _array(self, field: Field) -> None:
        count = max(self._reader.nullable_count(self.flexible), 0)
        keyed = field.keys > 0 and count > UNCHECKED
        if keyed and count > ELEMENTS_AT_MOST:
            raise Malformed(f"{api_name(self._api_key)} with an array of {count} elements")
        hashes: list[int] = []
        if keyed or _nests(field):
            self.within += 1
        try:
            for _ in range(count):
                if keyed:
                    hashes.append(self._key(field))
                    self.read(field.fields[field.keys :])
                else:
                    self.read(field.fields)
                if self.flexible:
                    self._reader.skip_tags()
        except Short:
            self._check(hashes, count)
            raise
        self._check(hashes, count)
        if keyed or _nests(field):
            self.within -= 1

    def _key(self, field: Field) -> int:
        """Read the key of an element; return its hash code in Java."""
        code = 0
        reader = self._reader
        for part in field.fields[: field.keys]:
            own = 0  # that of an empty name, and of the id of zeros, if the version does not have the field
            if part.since <= self._version <= part.until:
                if part.kind == "s":
                    own = java_hash(reader.raw_string(self.flexible))
                elif part.kind == "u":
                    own = uuid_hash(reader.uuid())
                elif part.kind == "b":
                    own = reader.u8()
                    own = own - 256 if own >= 128 else own
                else:
                    own = reader.i32()
            code = (31 * code + own) & 0xFFFF_FFFF
        return code

    def _check(self, hashes: list[int], count: int) -> None:
        if not hashes:
            return
        self.elements += len(hashes)
        check_hashes(hashes, count, self._api_key)


def check_hashes(hashes: list[int], count: int, api_key: int) -> None:
    """Raise Malformed if the hash codes of the elements of an array collide, which has `count` of them."""
    most = max(STEPS_FREE, STEPS_PER_ELEMENT * len(hashes))
    if moving_cost(hashes, 2 * count + 1) > most or most_equal(hashes) > UNCHECKED:
        raise Malformed(f"{api_name(api_key)} with {len(hashes)} elements whose keys are equal or collide")


def topic_hash(name: bytes, topic_id: bytes) -> int:
    """The hash code of a topic in a Produce request; one of both is empty, or has only zeros."""
    return (31 * java_hash(name) + uuid_hash(topic_id)) & 0xFFFF_FFFF


def uuid_hash(raw: bytes) -> int:
    """The hash code of an id in Kafka, as an unsigned number."""
    whole = int.from_bytes(raw, "big")
    mixed = (whole >> 64) ^ (whole & 0xFFFF_FFFF_FFFF_FFFF)
    return (mixed >> 32) ^ (mixed & 0xFFFF_FFFF)


def _nests(field: Field) -> bool:
    """Whether the elements of an array have arrays with keys."""
    return any(part.keys > 0 for part in field.fields)


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
