"""Skipped records: they are counted and logged within bounds, until another record supersedes them."""

import pytest

from proxy.store.skipped_records import MAX_KEYS, MAX_REASON_CHARACTERS, MAX_REASONS, SkippedRecords


@pytest.fixture
def skipped() -> SkippedRecords:
    return SkippedRecords("quotas")


def test_nothing_is_skipped(skipped: SkippedRecords) -> None:
    skipped.supersede(b"a")
    assert (skipped.total, skipped.current, skipped.warning) == (0, 0, "")


def test_a_key_counts_once_until_it_is_superseded(skipped: SkippedRecords) -> None:
    for offset, key in enumerate((b"a", b"b", b"a")):
        skipped.skip(key, offset, f"reason {offset}")
    assert (skipped.total, skipped.current) == (3, 2)
    assert all(named in skipped.warning for named in ("topic quotas", "2 records", "offset 2: reason 2;"))
    skipped.supersede(b"a")
    assert skipped.current == 1
    assert "offset 1" in skipped.warning
    skipped.supersede(b"b")
    assert (skipped.total, skipped.current, skipped.warning) == (3, 0, "")


def test_a_reason_is_logged_once(skipped: SkippedRecords, caplog: pytest.LogCaptureFixture) -> None:
    for offset in range(3):
        skipped.skip(str(offset).encode(), offset, "not JSON")
    assert len(caplog.messages) == 1


def test_the_log_is_bounded(skipped: SkippedRecords, caplog: pytest.LogCaptureFixture) -> None:
    for offset in range(MAX_REASONS + 5):
        skipped.skip(b"a", offset, f"{offset} {'x' * 2000}")
    assert len(caplog.messages) == MAX_REASONS + 1
    assert max(map(len, caplog.messages)) < MAX_REASON_CHARACTERS + 200


def test_memory_is_bounded(skipped: SkippedRecords) -> None:
    """Records beyond the bound count until the topic is read from its start."""
    for offset in range(MAX_KEYS + 5):
        skipped.skip(str(offset).encode(), offset, "not JSON")
    assert skipped.current == MAX_KEYS + 5
    skipped.supersede(str(MAX_KEYS + 4).encode())
    assert skipped.current == MAX_KEYS + 5
    skipped.forget()
    assert (skipped.current, skipped.warning, skipped.total) == (0, "", MAX_KEYS + 5)
