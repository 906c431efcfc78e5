"""BatchHeads: reads the heads of a Produce request's record batches.

The heads tell which batches a producer has to send again. That matters only if a quota may reject some of the
request, and most requests are within all limits. So the request is first read without heads.
"""

from typing import Final, final

from proxy.wire.apis.api_00_produce import ProduceRequest
from proxy.wire.reader import Reader
from proxy.wire.views import RequestView
from proxy.wire.walk import walk

_MESSAGE: Final = ProduceRequest()


@final
class BatchHeads:
    """Reads the heads of one request."""

    __slots__ = ("_body_at", "_pieces")

    def __init__(self, pieces: list[bytes], body_at: int) -> None:
        """The request is in these pieces of a frame; its body begins at `body_at`."""
        self._pieces: Final = pieces
        self._body_at: Final = body_at

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
