"""The console's requests between a supervisor and its workers."""

from proxy.telemetry.console import (
    ConsoleReply,
    ConsoleRequest,
    decode_reply,
    decode_request,
    encode_reply,
    encode_request,
    no_console,
)


async def test_requests_and_replies_are_read_as_they_are_written() -> None:
    request = ConsoleRequest("change", {"q": "é"}, b"{}\xff", "admin-port", "::1")
    assert decode_request(encode_request(request)) == request
    reply = await no_console(request)
    assert reply.status == 503
    assert decode_reply(encode_reply(reply)) == reply
    assert decode_reply(encode_reply(ConsoleReply(200, b""))) == ConsoleReply(200, b"")
