"""Pieces that become TLS records: small ones are joined, and a large one is not copied."""

import pytest

from proxy.server.connection.tls_records import RECORD_BYTES, joined

FULL, LARGE = b"f" * RECORD_BYTES, b"l" * (RECORD_BYTES + 1)


@pytest.mark.parametrize(
    ("pieces", "records"),
    [
        ([b"a"], [b"a"]),
        ([b"a", b"b", b"c"], [b"abc"]),
        ([b"a", FULL[1:], b"b"], [b"a" + FULL[1:], b"b"]),
        ([b"a", FULL, b"b", b"c"], [b"a", FULL, b"bc"]),
        ([LARGE, b"a", b"b", LARGE], [LARGE, b"ab", LARGE]),
        ([b"", b"a"], [b"a"]),
    ],
)
def test_records(pieces: list[bytes], records: list[bytes]) -> None:
    found = joined(list(pieces))
    assert found == records
    assert all(any(record is piece for piece in pieces) for record in found if len(record) > RECORD_BYTES)
