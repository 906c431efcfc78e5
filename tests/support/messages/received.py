"""A request as the relay receives it."""

from typing import Any, Final

from proxy.wire.apis.api import RequestHeader, read_request_header
from proxy.wire.edit import LENGTH_SIZE
from proxy.wire.frames import Frame, FrameSplitter
from proxy.wire.reader import Reader
from tests.support.messages.kio_messages import request_frame

_LARGEST: Final = 1 << 20


def received(message: Any) -> tuple[Frame, RequestHeader, int]:
    """Return the frame of a request, its header, and the offset of its body."""
    data = request_frame(message)
    splitter = FrameSplitter(_LARGEST)
    splitter.feed(data)
    frame = splitter.next()
    assert isinstance(frame, Frame)
    reader = Reader([data], LENGTH_SIZE)
    return frame, read_request_header(reader), reader.offset
