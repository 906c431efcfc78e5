"""Bounds: how much a fetch may bring, and how long it may take."""

from proxy.wire.edit import Edit, i32, insert
from proxy.wire.views import RequestView


def lower_max_bytes(view: RequestView, max_bytes: int) -> None:
    """Let the broker send no more than the quota allows, and not wait for more than that (KAFKA-9677).

    Fetch before version 3 stays as it is: its partitions' own limits are hard, and a batch above one never
    comes.
    """
    if view.max_bytes <= max_bytes:
        return
    if view.min_bytes > max_bytes:
        view.min_bytes = max_bytes
        view.edits.append(Edit(view.min_bytes_at, view.min_bytes_at + 4, i32(max_bytes)))
    view.edits.append(Edit(view.max_bytes_at, view.max_bytes_at + 4, i32(max_bytes)))
    view.bounded = True


def lower_max_wait(view: RequestView, max_wait_ms: int) -> None:
    """Let the broker respond no later than this."""
    if view.max_wait_ms > max_wait_ms:
        view.max_wait_ms = max_wait_ms
        insert(view.edits, Edit(view.min_bytes_at - 4, view.min_bytes_at, i32(max_wait_ms)))
