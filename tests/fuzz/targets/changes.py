"""Bodies of POST /api/change: a change is made and can be read back, or an error says what is wrong."""

import asyncio
from collections.abc import Iterator
from typing import Final

import msgspec

from proxy.quota.kinds import load_kinds
from proxy.store.quota_records import decode, encode
from proxy.telemetry.console import CHANGE, ConsoleRequest
from tests.fuzz.harness import Target
from tests.support.server.consoles import PRODUCER, RATE, ConsoleKit

LOOP: Final = asyncio.new_event_loop()
IP: Final = b'"ip'
"""A body with an ip may need DNS."""


def run(data: bytes) -> None:
    if IP not in data and b"\\u" not in data:
        LOOP.run_until_complete(_run(data))


async def _run(body: bytes) -> None:
    kit = ConsoleKit()
    asked = ConsoleRequest(CHANGE, body=body, author="admin-port", address="10.0.0.7")
    reply = await kit.console.reply(asked)
    assert reply.status in (200, 400, 409)
    assert reply.status == 200 or kit.log.records == []
    for place, setting in kit.log.records:
        assert decode(*encode(place, setting)) == (place, setting)


def seeds() -> Iterator[bytes]:
    for change in (
        {"entity": {"user": "bob", "client-id": "<default>"}, "values": {PRODUCER: 5}},
        {"entity": {"user": "alice"}, "values": {PRODUCER: None}, "back_to_file": True},
        {"entity": {"user": "alice"}, "values": {PRODUCER: 5}, "expires_at_ms": 4_000_000_000_000},
        {"entity": {"topic": "orders"}, "values": {RATE: "5", "producer.byte.rate.action": "reject"}},
        {"entity": {"topic": "<default>"}, "values": {RATE: 5}, "expires_at_ms": 4_000_000_000_000},
        {"entity": {"broker": "01"}, "values": {"total.bytes.in.per.sec.threshold": 9.5}},
    ):
        yield msgspec.json.encode(change)


WORDS: Final = (
    *(f'"{each.name}"'.encode() for kind in load_kinds() for each in kind.keys),
    *(f'"{each.name}"'.encode() for kind in load_kinds() for each in kind.configs),
    *(b'"user"', b'"client-id"', b'"topic"', b'"broker"', b'"<default>"', b'"values"', b'"entity"'),
    *(
        b"null",
        b"true",
        b"1e999",
        b"-1",
        b"1e308",
        b"9223372036854775808",
        b'"\xed\xa0\x80"',
        b"[[[[",
        b'"-1"',
    ),
)
TARGET: Final = Target(run, seeds, WORDS)
