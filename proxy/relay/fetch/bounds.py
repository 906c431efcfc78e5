"""Bounds of a fetch: the bytes that its response may have, and the time that the broker may wait."""

from proxy.wire.edit import LENGTH_SIZE, Edit, i32, insert
from proxy.wire.views import RequestView


def lower_max_bytes(view: RequestView, max_bytes: int) -> None:
    """Lower max_bytes to what the quota allows, and min_bytes with it, so that the broker does not wait for
    more (KAFKA-9677). Fetch before version 3 does not change: the limits of its partitions are hard, so the
    broker would never send a batch that is larger.
    """
    if view.max_bytes <= max_bytes:
        return
    if view.min_bytes > max_bytes:
        view.min_bytes = max_bytes
        view.edits.append(Edit(view.min_bytes_at, view.min_bytes_at + 4, i32(max_bytes)))
    view.edits.append(Edit(view.max_bytes_at, view.max_bytes_at + 4, i32(max_bytes)))
    view.bounded = True


def ask_for_no_records(view: RequestView) -> None:
    """Change a ShareFetch so that the broker takes its acknowledgements and acquires no records: max_records,
    which follows max_bytes, becomes 0.
    """
    at = view.max_bytes_at + 4
    if view.max_bytes_at >= 0 and at + 4 <= LENGTH_SIZE + view.size:
        insert(view.edits, Edit(at, at + 4, i32(0)))


def lower_max_wait(view: RequestView, max_wait_ms: int) -> None:
    """Lower max_wait_ms, so that the broker responds no later than this."""
    if view.max_wait_ms > max_wait_ms:
        view.max_wait_ms = max_wait_ms
        # In Fetch and ShareFetch, max_wait_ms is the field before min_bytes.
        insert(view.edits, Edit(view.min_bytes_at - 4, view.min_bytes_at, i32(max_wait_ms)))
