"""Records of the store's topic: whatever the topic holds, it is read or skipped, and the rest holds.

Input: how many records are read before the end of the log, and records: kind, key and value each.
"""

import asyncio
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from proxy.cli.quotas.cluster.audit_log import parse
from proxy.quota.config_rules import ConfigRules
from proxy.quota.engine import QuotaEngine
from proxy.quota.identity import DEFAULT, QuotaEntity
from proxy.quota.kinds import load_kinds
from proxy.quota.limits.config_keys import LEADER_THROTTLED_REPLICAS
from proxy.quota.limits.limits import Limits
from proxy.quota.limits.resources import BROKER, DEFAULT_RESOURCE, TOPIC, ConfigResource
from proxy.store.quota_records import Place, Setting, Unreadable, decode, encode
from proxy.store.quota_store import FileQuotas, QuotaStore
from tests.fuzz.harness import Data, Target, part

NOW_MS: Final = 1_767_225_600_000
NULL: Final = 1
"""A bit of a record's kind: the value is null."""
LOOP: Final = asyncio.new_event_loop()
KINDS: Final = load_kinds()
RULES: Final = ConfigRules(list(KINDS))


def run(data: bytes) -> None:
    LOOP.run_until_complete(_run(data))


async def _run(data: bytes) -> None:
    given = Data(data)
    staged = given.byte()
    changes: list[tuple[Place, Setting | None]] = []
    store = _store()
    while given.left > 0 and len(changes) < 64:
        null, key = given.byte() & NULL, given.part()
        value = None if null else given.part()
        parse(key, value, NOW_MS)
        try:
            place, setting = decode(key, value)
            store.check(place, setting)
        except Unreadable:
            continue
        _check_round_trip(place, setting)
        changes.append((place, setting))
    try:
        store.read_anew()
        store.read(changes[:staged])
        store.read_to_end()
        for change in changes[staged:]:
            store.read([change])
        _check_order(store, changes)
    finally:
        store.close()


def _store(wall_ms: int = NOW_MS) -> QuotaStore:
    engine = QuotaEngine([kind.build() for kind in KINDS])
    file = FileQuotas(Limits)
    return QuotaStore(file, partial(_configure, engine), lambda: wall_ms, RULES)


def _configure(engine: QuotaEngine, limits: Limits) -> None:
    engine.configure(limits, 1000.0)
    for key in ("producer_byte_rate", "connection_creation_rate"):
        limits.bucket(key, "alice", "app")
        limits.ip_limit(key, "10.1.2.3")
        limits.ip_limit(key, "::1")


def _check_round_trip(place: Place, setting: Setting | None) -> None:
    if setting is not None:
        assert decode(*encode(place, setting)) == (place, setting)


def _check_order(store: QuotaStore, changes: list[tuple[Place, Setting | None]]) -> None:
    """A proxy that starts later, and reads everything before it serves, has the same quotas."""
    later = _store()
    later.read_anew()
    later.read(changes)
    later.read_to_end()
    assert later.effective == store.effective
    assert later.configs == store.configs
    later.close()


def seeds() -> Iterator[bytes]:
    who: dict[str, Any] = {"by": "alice", "client_id": "admin", "origin": "10.0.0.1", "at_ms": NOW_MS}
    entities = (
        QuotaEntity("alice", None),
        QuotaEntity(DEFAULT, "app"),
        QuotaEntity(None, None, "10.0.0.0/8"),
        QuotaEntity(None, None, "host"),
    )
    several = b""
    for entity in entities:
        name = "connection_creation_rate" if entity.ip is not None else "producer_byte_rate"
        for setting in (
            Setting(value=5.5, **who),
            Setting(value=7.0, expires_at_ms=NOW_MS + 5, address="127.0.0.1", **who),
            Setting(value=None, removed=True, **who),
        ):
            key, value = encode(Place(entity, name, setting.expires_at_ms is not None), setting)
            yield b"\1\0" + part(key) + part(value)
            several += b"\0" + part(key) + part(value) + b"\1" + part(key)
    for type_, name, config, text in (
        (TOPIC, "orders", "producer.byte.rate", "5"),
        (TOPIC, DEFAULT_RESOURCE, LEADER_THROTTLED_REPLICAS.name, "0:1,1:2"),
        (BROKER, "2", "leader.replication.throttled", "true"),
        (BROKER, DEFAULT_RESOURCE, "leader.replication.throttled.rate", "100"),
        (BROKER, "1", "total.bytes.in.per.sec.threshold", "100"),
    ):
        key, raw = encode(
            Place(ConfigResource(type_, name), config), Setting(value=text, topic_id="0f", **who)
        )
        yield b"\0\0" + part(key) + part(raw)
        several += b"\0" + part(key) + part(raw)
    yield b"\5" + several


WORDS: Final = (
    *(each.name.encode() for kind in KINDS for each in kind.keys),
    *(each.name.encode() for kind in KINDS for each in kind.configs),
    *(
        b'"user"',
        b'"client-id"',
        b'"ip"',
        b'"topic"',
        b'"broker"',
        b"null",
        b"true",
        b"1e999",
        b"-1",
        b'"\\ud800"',
    ),
    *(b"*", b"0:1,", b"<default>", b'"temporary":true', b'"expires_at_ms":', b"::1/64", b"[[[["),
)
TARGET: Final = Target(run, seeds, WORDS)
