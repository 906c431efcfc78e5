"""RequestRejected: an error that the proxy answers with."""

from typing import Final

from kio.schema.errors import ErrorCode


class RequestRejected(Exception):
    """A request, or a part of it, is rejected. `code` is Kafka's; str() is the error_message."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code: Final = code
