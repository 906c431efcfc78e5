"""The messages between the supervisor and a worker."""

import asyncio
import socket

from proxy.server.workers.channel import BACKLOG_BYTES, HEAD, Appended, Ask, Channel, Message, Record


async def pair() -> tuple[Channel, Channel]:
    one, other = socket.socketpair()
    return await Channel.over(one), await Channel.over(other)


async def test_messages_arrive_whole_and_in_order_until_the_other_side_closes() -> None:
    one, other = await pair()
    sent: list[Message] = [Record(3, 5, b"x" * 100_000), Appended(b""), Ask(1, "metrics")]
    for message in sent:
        one.send(message)
    assert [await other.receive() for _ in sent] == sent
    one.close()
    assert await other.receive() is None
    other.send(Appended(b"to nobody"))
    other.close()
    other.send(Appended(b"to nobody"))


async def test_half_a_message_ends_the_channel() -> None:
    one, end = socket.socketpair()
    other = await Channel.over(end)
    one.sendall((100).to_bytes(HEAD, "big") + b"x")
    one.close()
    assert await other.receive() is None
    other.close()
    await asyncio.sleep(0)


async def test_a_channel_is_full_while_the_other_side_does_not_read() -> None:
    one, other = await pair()
    assert not one.full
    messages = 0
    while not one.full:
        one.send(Appended(b"x" * (BACKLOG_BYTES // 2)))
        messages += 1
        assert messages < 100
    for _ in range(messages):
        await other.receive()
    async with asyncio.timeout(30):
        await one.flush()
    assert not one.full
    one.close()
    other.close()
