"""The items of a Produce request that a broker has not appended, by the errors in its response."""

from typing import Final

from proxy.wire.error_codes import appended
from proxy.wire.views import Item, RequestView, ResponseView, partition_key

NotAppended = tuple[Item, int]
"""An item of the request, and the error code of its partition in the response."""
_NOTHING: Final[list[NotAppended]] = []
"""A shared object that never changes."""


def not_appended(request: RequestView, response: ResponseView) -> list[NotAppended]:
    """Return the items whose records are not in the log, in the order of the response; read-only."""
    found = _NOTHING
    sent: dict[tuple[bytes, str, int], Item] | None = None
    for result in response.items:
        if appended(result.error_code):
            continue
        if sent is None:
            items = request.sent if request.sent else request.items
            sent = {partition_key(item): item for item in items}
            found = []
        item = sent.pop(partition_key(result), None)
        if item is not None:
            found.append((item, result.error_code))
    return found
