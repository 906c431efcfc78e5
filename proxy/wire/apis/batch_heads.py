"""BatchHeads: reads the heads of a Produce request's record batches.

The heads tell which batches a producer has to send again. That matters only if a quota may reject some of the
request, and most requests are within all limits. So the request is first read without heads.
"""

from typing import Final, final

from proxy.wire.apis.api_00_produce import ProduceRequest
from proxy.wire.reader import NOTHING, Reader
from proxy.wire.views import RequestView
from proxy.wire.walk import walk

_MESSAGE: Final = ProduceRequest()


@final
class BatchHeads:
    """Reads the heads of one request at a time. A connection uses one object for all requests."""

    __slots__ = ("_body_at", "_pieces")

    def __init__(self) -> None:
        self._pieces = NOTHING
        self._body_at = 0

    def of(self, pieces: list[bytes], body_at: int) -> "BatchHeads":
        """Begin with the request in these pieces of a frame, whose body begins at `body_at`."""
        self._pieces = pieces
        self._body_at = body_at
        return self

    def stop(self) -> None:
        """Drop the references to the request's bytes."""
        self._pieces = NOTHING

    def read(self, request: RequestView) -> None:
        """Set the heads of the request's items, which are all partitions of the frame."""
        view = RequestView(
            request.api_key,
            request.api_version,
            request.correlation_id,
            request.client_id,
            request.size,
            flexible=request.flexible,
            want_items=True,
        )
        view.want_heads = True
        walk(_MESSAGE, Reader(self._pieces, self._body_at), view)
        for at, item in enumerate(view.items):
            request.items[at].head = item.head
