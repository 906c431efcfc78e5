"""RequestRejected: what makes the proxy answer with an error of Kafka's."""

from typing import Final

from kio.schema.errors import ErrorCode


class RequestRejected(Exception):
    """A request, or a part of one, is not done; `code` is Kafka's, str() the message."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code: Final = code
