"""A long name is represented by its beginning and a digest."""

from hashlib import sha256

import pytest

from proxy.wire.long_names import KEPT_BYTES, MARK, MAX_TOPIC_NAME, digest

LONG = b"a" * 1_000_000


@pytest.mark.parametrize("raw", [LONG, "ü".encode() * 300, b"\xff" * 300, b"a" + "\U0001f600".encode() * 64])
def test_it_has_the_beginning_and_the_digest(raw: bytes) -> None:
    first, found = digest(raw).split(MARK)
    assert raw.startswith(first.encode())
    assert len(first.encode()) <= KEPT_BYTES
    assert found == sha256(raw).hexdigest()


def test_names_that_begin_alike_differ() -> None:
    assert digest(LONG + b"1") != digest(LONG + b"2")


def test_it_is_no_topic_s_name() -> None:
    assert len(digest(LONG)) > MAX_TOPIC_NAME
    assert "~" in MARK
