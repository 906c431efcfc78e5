"""Regular expressions in requests: those that a broker would compile without end, or until it has no memory.

A broker compiles the pattern of ListTransactions (KIP-1152) and of ConsumerGroupHeartbeat (KIP-848) with
RE2/J. This takes a time that is linear in a name to match, but not in the pattern: RE2/J writes counted
repetitions out, so `(((a{100}){100}){100}){100}` has 10^8 elements, and a broker with a heap of 1 GB runs out
of memory. With Kafka 4.3.1 on Java 17, `(?i)` before U+1C80 to U+1C88, or a class that has them, occupies a
thread for ever. So the connection is closed if a pattern

    has more than BYTES_AT_MOST,
    has more than COPIES_AT_MOST elements in addition when its repetitions are written out,
    has groups in more than DEPTH_AT_MOST other groups, or
    ignores case and may have characters beyond ASCII.

Names of topics are ASCII. The grammar is that of RE2/J. A pattern that it does not compile costs little, and
is left to the broker.
"""

from typing import Final, final

from mypy_extensions import i64 as native

from proxy.wire.api_keys import CONSUMER_GROUP_HEARTBEAT, LIST_TRANSACTIONS, api_name
from proxy.wire.errors import Malformed, Short
from proxy.wire.reader import Reader

BYTES_AT_MOST: Final[native] = 4096
COPIES_AT_MOST: Final[native] = 1000
"""Each name of 249 characters takes RE2/J 50 ms to match with 1,000 optional elements. Two parts such as
[a-z]{1,249} have fewer.
"""
DEPTH_AT_MOST: Final[native] = 200
"""RE2/J is recursive: 5,000 groups exhaust the stack of a thread."""
NAMES_AT_MOST: Final[native] = 45_000
"""The most strings before the pattern, as in proxy.wire.keyed.repeated_names."""
VERSIONS: Final = {LIST_TRANSACTIONS: (2, 2), CONSUMER_GROUP_HEARTBEAT: (1, 1)}
"""The oldest and the newest version with a pattern that the proxy reads."""
GROUP: Final[native] = 2
"""The elements of a group in addition to those in it: its begin and its end."""
_MOST_COPIES: Final[native] = 1000
"""RE2/J rejects a count beyond."""

_BACKSLASH: Final = 0x5C
_OPENING: Final[dict[int, native]] = {ord("["): 1, ord("("): 2, ord(")"): 3, ord("{"): 4}
_QUANTIFIERS: Final = b"*+?"
_CASE_OF_UNICODE: Final = (b"\\x", b"\\p", b"\\P")
"""What may be characters beyond ASCII."""


def check_pattern(
    pieces: list[bytes], body_at: int, api_key: int, api_version: int, complete: bool = True
) -> int:
    """Raise Malformed if the pattern of a request would occupy a broker; return for how many names the time
    has been taken that it takes to check one. `pieces` is its frame, or, if it is not `complete`, the first
    part; `body_at` is the offset behind the client id.

    A request that ends too early is left to the broker, which does not execute it.
    """
    oldest, newest = VERSIONS[api_key]
    if api_version < oldest or api_version > newest:
        return 0
    reader = Reader(pieces, body_at)
    try:
        reader.skip_tags()
        names = _skip_lists(reader, api_key)
        size = reader.length(True)
        if size > BYTES_AT_MOST:
            raise Malformed(f"{api_name(api_key)} with a pattern of {size} bytes")
        if size <= 0:
            return int(names)
        at = reader.take(size)
        pattern = reader.data[at : at + size]
    except Short as error:
        if not complete:
            raise Malformed(f"{api_name(api_key)} that is too large for its pattern to be checked") from error
        return 0
    check_regex(pattern, api_key)
    return int(names + size)


def _skip_lists(reader: Reader, api_key: int) -> native:
    """Step over what is before the pattern; return the number of strings."""
    if api_key == CONSUMER_GROUP_HEARTBEAT:
        reader.skip_string(True)  # group_id
        reader.skip_string(True)  # member_id
        reader.take(4)  # member_epoch
        reader.skip_string(True)  # instance_id
        reader.skip_string(True)  # rack_id
        reader.take(4)  # rebalance_timeout_ms
    names = reader.count(True)  # subscribed_topic_names, state_filters
    if names > NAMES_AT_MOST:
        raise Malformed(f"{api_name(api_key)} with an array of {names} names")
    left = names
    while left > 0:
        reader.skip_string(True)
        left -= 1
    if api_key == LIST_TRANSACTIONS:
        reader.skip(8 * reader.count(True))  # producer_id_filters
        reader.take(8)  # duration_filter
    return names


def check_regex(pattern: bytes, api_key: int) -> None:
    """Raise Malformed if a broker must not compile a pattern."""
    size = PatternSize(pattern)
    if size.copies > COPIES_AT_MOST or size.deepest > DEPTH_AT_MOST:
        raise Malformed(f"{api_name(api_key)} with a pattern that repeats too much")
    if not size.ignores_case:
        return
    if not pattern.isascii() or any(part in pattern for part in _CASE_OF_UNICODE):
        raise Malformed(f"{api_name(api_key)} with a pattern that ignores the case of Unicode characters")


@final
class PatternSize:
    """How much RE2/J adds to a pattern when it writes its repetitions out; it may be a little less.

    It is counted until it is too much.
    """

    def __init__(self, pattern: bytes) -> None:
        self.copies: native = 0
        """The elements (characters, classes, groups, quantifiers) that are added."""
        self.deepest: native = 0
        """How many groups are in each other."""
        self.ignores_case = False
        """Whether a part has the flag i."""
        self._pattern: Final = pattern
        self._at: native = 0
        self._sizes: Final[list[int]] = [0]
        """The elements before the end of each open group."""
        self._last: native = 0
        """The elements to which a quantifier applies; 0: none."""
        end: native = len(pattern)
        while self._at < end and self.copies <= COPIES_AT_MOST:
            self._read()

    def _read(self) -> None:
        """Read one token."""
        pattern = self._pattern
        at = self._at
        byte = pattern[at]
        kind = _OPENING.get(byte, 0)
        if byte == _BACKSLASH:
            self._escape()
        elif kind == 1:
            self._at = _class_end(pattern, at + 1)
            self._add(1)
        elif kind == 2:
            self._open()
        elif kind == 3:
            self._close()
        elif kind == 4 and self._counted():
            pass
        elif byte in _QUANTIFIERS:
            self._at = at + 1
            self._repeat(1)
        else:
            self._at = at + 1
            self._add(1)

    def _add(self, size: native) -> None:
        self._last = size
        self._sizes[-1] += size

    def _repeat(self, copies: native) -> None:
        """Apply a quantifier to what is before it."""
        if self._last > 0:
            added = (self._last + 1) * copies - self._last
            self.copies += added
            self._sizes[-1] += added
            self._last += added

    def _escape(self) -> None:
        pattern = self._pattern
        at = self._at
        if pattern[at + 1 : at + 2] == b"Q":
            end = pattern.find(b"\\E", at + 2)
            if end < 0:
                end = len(pattern)
            self._at = end + 2
            if end > at + 2:
                self._add(end - at - 2)
                self._last = 1
            return
        self._at = at + 2
        if pattern[at + 1 : at + 3] in (b"p{", b"P{", b"x{"):
            self._at = _behind(pattern, b"}", at)
        self._add(1)

    def _open(self) -> None:
        """Read the beginning of a group, or flags, which are no group."""
        pattern = self._pattern
        at = self._at + 1
        if pattern[at : at + 2] == b"?<" or pattern[at : at + 3] == b"?P<":
            at = _behind(pattern, b">", at)
        elif pattern[at : at + 1] == b"?":
            first = at
            while at < len(pattern) and pattern[at] not in b":)":
                at += 1
            self.ignores_case = self.ignores_case or b"i" in pattern[first:at]
            at += 1
            if pattern[at - 1 : at] == b")":
                self._at = at
                return
        self._at = at
        self._sizes.append(self._sizes[-1])
        self._last = 0
        self.deepest = max(self.deepest, len(self._sizes) - 1)

    def _close(self) -> None:
        self._at += 1
        if len(self._sizes) > 1:
            size = self._sizes.pop() - self._sizes[-1]
            self._add(max(size, 1) + GROUP)

    def _counted(self) -> bool:
        """Read {n}, {n,} or {n,m}; return False if the brace is an ordinary character."""
        end = self._pattern.find(b"}", self._at)
        if end < 0:
            return False
        least, comma, most = self._pattern[self._at + 1 : end].partition(b",")
        if not least.isdigit() or (most and not most.isdigit()):
            return False
        copies: native = 1
        for number in (least, most):
            count: native = int(number) if 0 < len(number) <= 4 else 0 if not number else _MOST_COPIES
            copies = max(copies, count)
        if comma and not most:
            copies += 1
        self._at = end + 1
        self._repeat(copies)
        return True


def _class_end(pattern: bytes, at: native) -> native:
    """Return the offset behind a class of characters; `at` is behind its bracket."""
    end: native = len(pattern)
    if pattern[at : at + 1] == b"^":
        at += 1
    first = at
    while at < end:
        byte = pattern[at]
        if byte == _BACKSLASH:
            at += 2
        elif byte == 0x5D and at > first:
            return at + 1
        elif pattern[at : at + 2] == b"[:" and pattern.find(b":]", at + 2) >= 0:
            at = _behind(pattern, b":]", at)
        else:
            at += 1
    return end


def _behind(pattern: bytes, mark: bytes, at: native) -> native:
    """Return the offset behind the next mark; the end if there is none."""
    found = pattern.find(mark, at)
    return len(pattern) if found < 0 else found + len(mark)
