"""The items of a Produce request that a broker has not appended, by the errors in its response."""

from typing import Final

from proxy.wire.error_codes import appended
from proxy.wire.views import UNCHARGED, Item, RequestView, ResponseView, partition_key

NotAppended = tuple[Item, int]
"""An item of the request, and the error code of its partition in the response."""
_NOTHING: Final[list[NotAppended]] = []
_NO_ITEMS: Final[list[Item]] = []
"""Shared objects that never change."""


def not_appended(request: RequestView, response: ResponseView) -> list[NotAppended]:
    """Return the items whose records are not in the log, in the order of the response; read-only.

    A request may have a partition several times. A broker appends the records of the last, and has one result
    for all of them.
    """
    found = _NOTHING
    sent: dict[tuple[bytes, str, int], list[Item]] | None = None
    for result in response.items:
        if appended(result.error_code):
            continue
        if sent is None:
            items = request.sent if request.sent else request.items
            sent = {}
            for item in items:
                sent.setdefault(partition_key(item), []).append(item)
            found = []
        for item in sent.pop(partition_key(result), _NO_ITEMS):
            found.append((item, result.error_code))
    return found


def appended_items(request: RequestView, response: ResponseView) -> list[Item]:
    """Return copies of the UNCHARGED items whose records are in the log, to be charged."""
    failed = {partition_key(result) for result in response.items if not appended(result.error_code)}
    return [
        Item(item.topic, item.topic_id, item.partition, item.size)
        for item in (request.sent if request.sent else request.items)
        if item.error_code == UNCHARGED and partition_key(item) not in failed
    ]
