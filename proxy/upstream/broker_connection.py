"""BrokerConnection: the proxy as a client of a broker, with whole messages through kio.

The data path does not use it.
"""

import asyncio
import io
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeVar

from kio.serial import entity_writer
from kio.static.primitive import i32
from kio.static.protocol import RequestPayload, ResponsePayload

from proxy.errors import BadResponse, UpstreamUnavailable
from proxy.security.access import PLAINTEXT, Access
from proxy.upstream.addresses import join_address
from proxy.upstream.failures import explain
from proxy.upstream.responses import read_response

Response = TypeVar("Response", bound=ResponsePayload)
CLIENT_ID: Final = "quota-proxy"
MAX_RESPONSE_BYTES: Final = 100 << 20
"""Kafka's own socket.request.max.bytes. A server on a wrong port may announce any length."""
SESSION_PART: Final = 0.8
"""The part of a session after which its connection is replaced."""
_OTHER_PROTOCOLS: Final = {
    b"HT": "the server speaks HTTP, not Kafka; is this an admin port?",
    b"\x15\x03": "the server speaks TLS, and the proxy connects without",
}
"""What servers of other protocols send, by the first bytes of a response."""


class BrokerConnection:
    """A connection to one broker; one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._correlation_id = 0
        self.address = ("", 0)
        """Its host and port."""
        self.session_seconds = 0.0
        self._opened_at = asyncio.get_running_loop().time()

    @property
    def session_ends(self) -> bool:
        """Whether the session of the login ends soon. The broker then closes the connection at the next
        request, and the proxy logs in on a new one instead of again on this one.
        """
        age = asyncio.get_running_loop().time() - self._opened_at
        return 0.0 < self.session_seconds * SESSION_PART < age

    @classmethod
    async def open(cls, host: str, port: int, access: Access = PLAINTEXT) -> "BrokerConnection":
        """Connect and log in.

        Raises OSError or EOFError if connecting or TLS fails or the address is not allowed,
        UpstreamUnavailable if the login fails.
        """
        reader = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(reader)
        transport = await access.connect(lambda: protocol, host, port)
        writer = asyncio.StreamWriter(transport, protocol, reader, asyncio.get_running_loop())
        connection = cls(reader, writer)
        connection.address = (host, port)
        try:
            await access.log_in(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    async def ask(self, request: RequestPayload, schema: type[Response]) -> Response:
        """Send a request and return its response, read by a schema of the request's version.

        Raises OSError or EOFError if the connection ends, BadResponse if the bytes are not such a response.
        """
        frame = await self.ask_unread(request)
        try:
            correlation_id, response = read_response(schema, frame)
        except ValueError as error:
            raise BadResponse(f"{schema.__name__} v{schema.__version__} does not parse: {error}") from error
        self.check(correlation_id)
        return response

    async def ask_unread(self, request: RequestPayload) -> bytes:
        """Send a request and return its response, header and body.

        The caller calls check(). Raises OSError or EOFError if the connection ends, BadResponse if the length
        is invalid.
        """
        self._correlation_id += 1
        self._writer.write(request_frame(request, self._correlation_id, CLIENT_ID))
        await self._writer.drain()
        head = await self._reader.readexactly(4)
        size = int.from_bytes(head, "big", signed=True)
        if not 4 <= size <= MAX_RESPONSE_BYTES:
            raise BadResponse(_OTHER_PROTOCOLS.get(head[:2], f"invalid response size {size}"))
        return await self._reader.readexactly(size)

    def check(self, correlation_id: int) -> None:
        """Raise BadResponse if this is not the last request's correlation_id."""
        if correlation_id != self._correlation_id:
            raise BadResponse(
                f"the response has correlation_id {correlation_id}, expected {self._correlation_id}"
            )

    def close(self) -> None:
        self._writer.close()


Check = Callable[[BrokerConnection], Awaitable[None]]
"""Checks a new connection. Raises OSError, EOFError or UpstreamUnavailable if it is of no use."""


def request_frame(request: RequestPayload, correlation_id: int, client_id: str) -> bytes:
    """Return a request as a frame."""
    frame = io.BytesIO()
    header = request.__header_schema__
    entity_writer(header)(
        frame,
        header(
            request_api_key=request.__api_key__,
            request_api_version=request.__version__,
            correlation_id=i32(correlation_id),
            client_id=client_id,
        ),
    )
    entity_writer(type(request))(frame, request)
    payload = frame.getvalue()
    return len(payload).to_bytes(4, "big") + payload


async def connect_to_any(
    addresses: Iterable[tuple[str, int]],
    access: Access,
    seconds: float,
    check: Check | None = None,
    failed: set[tuple[str, int]] | None = None,
) -> BrokerConnection:
    """Connect to the first of these hosts and ports that accepts within `seconds` and passes the check. Add
    those that do not to `failed`, and remove the one that does.

    Raises UpstreamUnavailable with the reason of each.
    """
    reasons: list[str] = []
    failed = set() if failed is None else failed
    for host, port in addresses:
        try:
            async with asyncio.timeout(seconds):
                broker = await BrokerConnection.open(host, port, access)
                try:
                    if check is not None:
                        await check(broker)
                except BaseException:
                    broker.close()
                    raise
                failed.discard((host, port))
                return broker
        except (OSError, EOFError, UpstreamUnavailable) as error:
            failed.add((host, port))
            reasons.append(f"{join_address(host, port)}: {explain(error, seconds)}")
    raise UpstreamUnavailable("; ".join(reasons))
