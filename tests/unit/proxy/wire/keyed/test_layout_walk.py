"""The walk through a request: fields are read in their versions, and arrays are left to the subclass."""

from typing import Final, final

import pytest

from proxy.wire.keyed.layout import Field, RequestLayout
from proxy.wire.keyed.layout_walk import LayoutWalk
from proxy.wire.reader import Reader


@final
class Arrays(LayoutWalk):
    """Notes the arrays, and the number of elements of each."""

    def __init__(self, data: bytes, version: int, flexible: bool) -> None:
        super().__init__(Reader([data]), 0, version, flexible)
        self.found: Final[list[tuple[str, int]]] = []

    def structures(self, field: Field) -> None:
        count = self.reader.count(self.flexible)
        self.found.append(("structures", count))
        for _ in range(count):
            self.end_element(field, 0)

    def strings(self) -> None:
        count = self.reader.count(self.flexible)
        self.found.append(("strings", count))
        for _ in range(count):
            self.reader.skip_string(self.flexible)


def int32(value: int) -> bytes:
    return value.to_bytes(4, "big")


def string(text: bytes) -> bytes:
    return len(text).to_bytes(2, "big") + text


LAYOUT: Final = RequestLayout(3, 2, "i@1+ s B *q b@-0 u@3+ {1 s *i } *s")
BODY: Final = string(b"name") + int32(3) + b"abc" + int32(2) + bytes(16)
NESTED: Final = int32(2) + 2 * (string(b"in") + int32(1) + int32(7))
STRINGS: Final = int32(1) + string(b"last")


@pytest.mark.parametrize(("version", "before", "behind"), [(0, b"", b"b"), (1, int32(9), b"")])
def test_each_field_of_the_version_is_read(version: int, before: bytes, behind: bytes) -> None:
    data = before + BODY + behind + NESTED + STRINGS
    walk = Arrays(data + b"rest", version, False)
    assert walk.read_request(LAYOUT)
    assert walk.found == [("structures", 2), ("strings", 1)]
    assert walk.reader.offset == len(data)


@pytest.mark.parametrize(("tags", "element_tags"), [(b"\0", b"\0"), (b"\1\0\2ab", b"\1\5\1x")])
def test_tagged_fields_are_skipped(tags: bytes, element_tags: bytes) -> None:
    body = tags + int32(9) + b"\5name" + b"\4abc" + b"\2" + bytes(8) + bytes(16)
    data = body + b"\3" + 2 * (b"\3in\2" + int32(7) + element_tags) + b"\2\5last"
    walk = Arrays(data, 3, True)
    assert walk.read_request(LAYOUT)
    assert walk.found == [("structures", 2), ("strings", 1)]
    assert walk.reader.offset == len(data)


def test_a_request_that_ends_too_early() -> None:
    data = BODY + b"b" + NESTED + STRINGS
    assert all(not Arrays(data[:end], 0, False).read_request(LAYOUT) for end in range(len(data)))


def test_some_fields_of_an_element_may_have_been_read() -> None:
    [array] = RequestLayout(0, 0, "{1 s i }").fields
    walk = Arrays(int32(5) + b"rest", 0, False)
    walk.end_element(array, 1)
    assert walk.reader.offset == 4
