"""Records of the store's topic: what is written is read back, and the rest is unreadable."""

import json
from typing import Any, Final

import pytest

from proxy.quota.identity import DEFAULT, QuotaEntity
from proxy.quota.limits.resources import BROKER, DEFAULT_RESOURCE, TOPIC, ConfigResource
from proxy.store.quota_records import Place, Setting, Unreadable, decode, encode

WHO: Final[dict[str, Any]] = {
    "by": "alice",
    "client_id": "admin",
    "origin": "10.0.0.1",
    "at_ms": 1_767_225_600_000,
}
KEY = b'{"kind":"client-quota","entity":{"user":"a"},"name":"producer_byte_rate"}'
TEMPORARY = KEY[:-1] + b',"temporary":true}'
CONFIG_KEY = b'{"kind":"config","entity":{"topic":"t"},"name":"n"}'
DEEP = b"[" * 100_000
REST = b'"by":"","client_id":"","from":"","at_ms":1}'


@pytest.mark.parametrize(
    "place",
    [
        Place(QuotaEntity("alice", None), "producer_byte_rate"),
        Place(QuotaEntity(DEFAULT, "<default>"), "consumer_byte_rate", True),
        Place(QuotaEntity(None, DEFAULT), "request_percentage"),
        Place(QuotaEntity(None, None, "10.0.0.0/8"), "connection_creation_rate"),
        Place(QuotaEntity(None, None, DEFAULT), "connection_creation_rate"),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "setting",
    [
        Setting(value=1048576.0, **WHO),
        Setting(value=0.5, expires_at_ms=1_767_225_700_000, **WHO),
        Setting(value=None, removed=True, **WHO),
        Setting(value=7.0, address="127.0.0.1", **WHO),
    ],
    ids=["lasting", "temporary", "removed", "host name"],
)
def test_records_survive_the_round_trip(place: Place, setting: Setting) -> None:
    assert decode(*encode(place, setting)) == (place, setting)


def test_encoding_is_canonical() -> None:
    """Other proxies, of other versions, and `quota-proxy quotas log` read it."""
    key, value = encode(
        Place(QuotaEntity("alice", DEFAULT), "producer_byte_rate", True),
        Setting(value=1048576.0, expires_at_ms=1_767_225_700_000, **WHO),
    )
    assert key == (
        b'{"kind":"client-quota","entity":{"user":"alice","client-id":null},"name":"producer_byte_rate",'
        b'"temporary":true}'
    )
    assert json.loads(value) == {
        "v": 1,
        "value": 1048576.0,
        "expires_at_ms": 1_767_225_700_000,
        "by": "alice",
        "client_id": "admin",
        "from": "10.0.0.1",
        "at_ms": 1_767_225_600_000,
    }
    removed = json.loads(
        encode(Place(QuotaEntity("a", None), "n"), Setting(value=None, removed=True, **WHO))[1]
    )
    assert removed == {
        "v": 1,
        "value": None,
        "removed": True,
        "by": "alice",
        "client_id": "admin",
        "from": "10.0.0.1",
        "at_ms": 1_767_225_600_000,
    }


@pytest.mark.parametrize(
    ("resource", "entity"),
    [
        (ConfigResource(TOPIC, "orders"), '{"topic":"orders"}'),
        (ConfigResource(TOPIC, DEFAULT_RESOURCE), '{"topic":null}'),
        (ConfigResource(BROKER, "2"), '{"broker":"2"}'),
        (ConfigResource(BROKER, DEFAULT_RESOURCE), '{"broker":null}'),
    ],
    ids=str,
)
def test_configs(resource: ConfigResource, entity: str) -> None:
    place = Place(resource, "producer.byte.rate")
    setting = Setting(value="5", topic_id="0f", **WHO)
    key, value = encode(place, setting)
    assert key.decode() == f'{{"kind":"config","entity":{entity},"name":"producer.byte.rate"}}'
    assert json.loads(value)["value"] == "5"
    assert json.loads(value)["topic_id"] == "0f"
    assert decode(key, value) == (place, setting)
    assert decode(key, None) == (place, None)


def test_tombstone_is_no_setting() -> None:
    assert decode(KEY, None) == (Place(QuotaEntity("a", None), "producer_byte_rate"), None)


def test_unknown_fields_are_ignored() -> None:
    value = b'{"v":1,"value":2,"by":"a","client_id":"b","from":"c","at_ms":3,"why":"because"}'
    assert decode(KEY, value)[1] == Setting(value=2.0, by="a", client_id="b", origin="c", at_ms=3)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"{}"),
        (b'{"kind":"topic-config"}', b"{}"),
        (KEY, b'{"v":2}'),
        (KEY, b"{}"),
        (KEY, b'{"v":1,"value":[]}'),
        (KEY, b'{"v":1,"value":"5",' + REST),
        (CONFIG_KEY, b'{"v":1,"value":5,' + REST),
        (b'{"kind":"config","entity":{},"name":"n"}', None),
        (b'{"kind":"config","entity":{"group":"g"},"name":"n"}', None),
        (KEY, b"\xff"),
        (b"\x00", b"{}"),
        (b'{"kind":"client-quota","entity":{"group":"g"},"name":"n"}', None),
        (KEY, b'{"v":1,"value":0,' + REST),
        (TEMPORARY, b'{"v":1,"value":5,"expires_at_ms":-1,' + REST),
        (TEMPORARY, b'{"v":1,"value":5,"expires_at_ms":1' + b"0" * 400 + b"," + REST),
        (b'{"kind":"\xff"}', None),
        (KEY, b'{"v":1,"value":5,"by":"\xff",' + REST),
        (b'{"x":' + DEEP, None),
        (KEY, b'{"v":1,"x":' + DEEP),
        (b'{"kind":"client-quota","entity":{"ip":"x/y"},"name":"n"}', None),
        (b'{"kind":"client-quota","entity":{"ip":"10.0.0.0/"},"name":"n"}', None),
        (KEY, b'{"v":1,"value":5,"address":"x/y",' + REST),
        (b'{"kind":"client-quota","entity":{},"name":"n"}', None),
        (b'{"kind":"client-quota","entity":{"user":""},"name":"n"}', None),
        (b'{"kind":"client-quota","entity":{"user":"a","ip":"10.0.0.1"},"name":"n"}', None),
        (b'{"kind":"config","entity":{"topic":"t","broker":"1"},"name":"n"}', None),
        (b'{"kind":"config","entity":{"topic":"<default>"},"name":"n"}', None),
    ],
)
def test_other_records_are_unreadable(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(Unreadable):
        decode(key, value)


def test_later_versions_and_kinds_are_named() -> None:
    with pytest.raises(Unreadable, match="version 2"):
        decode(KEY, b'{"v":2}')
    with pytest.raises(Unreadable, match="topic-config"):
        decode(b'{"kind":"topic-config"}', b"{}")
