"""tests/relay/fetch/test_share_fetch.py has what share consumers notice."""

from proxy.relay.record_locks import UNLIMITED_SECONDS, RecordLocks


def test_waits_are_bounded_once_there_are_records() -> None:
    locks = RecordLocks()
    assert locks.longest_wait == UNLIMITED_SECONDS
    locks.deliver(30_000)
    assert locks.longest_wait == 7.5
    locks.deliver(1_000)
    assert locks.longest_wait == 0.25
