"""Records of the topic that holds what is set with the tools: JSON, one per (layer, entity, quota).

    key    {"kind": "client-quota", "entity": {"user": "alice", "client-id": null},
            "name": "producer_byte_rate"}
           {"kind": "config", "entity": {"topic": "orders"}, "name": "producer.byte.rate"}
           with "temporary": true in the layer of temporary values; null is Kafka's default entity, the
           default topic, or the default broker
    value  {"v": 1, "value": 1048576.0, "by": "alice", "client_id": "adminclient-1", "from": "10.0.0.1",
            "at_ms": 1767225600000}
           with "expires_at_ms" in the layer of temporary values; "removed", "address" and "topic_id" where
           needed; a config's value is text

A null `value` is no quota. The topic is compacted by key, so a key has one spelling. Nothing is deleted, only
overwritten: the topic tells who made each change.
"""

from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from proxy.quota.identity import DEFAULT, QuotaEntity
from proxy.quota.limits.resources import BROKER, DEFAULT_RESOURCE, TOPIC, ConfigResource

CLIENT_QUOTA: Final = "client-quota"
CONFIG: Final = "config"
VERSION: Final = 1


class Unreadable(Exception):
    """A record that this version cannot read; str() says why."""


class Place(msgspec.Struct, frozen=True):
    """What a record is about."""

    entity: QuotaEntity | ConfigResource
    name: str
    """The quota's key, such as producer_byte_rate, or the config's, such as producer.byte.rate."""
    temporary: bool = False


class Setting(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A record's value: what was set, by whom and when."""

    value: float | str | None
    """A number of a client quota, text of a config."""
    expires_at_ms: int | None = None
    """When a temporary value ends, in ms since the epoch; None: there is none. With `value` None the limit is
    lifted until then."""
    removed: bool = False
    """Whether the file's own value is hidden; else a `value` of None leaves it in force."""
    address: str | None = None
    """The address that an `ip` entity's host name stood for when it was set."""
    topic_id: str | None = None
    """The id of the topic for which a config was set, in hexadecimal digits: another topic of its name does
    not have it. None where it was not known."""
    by: str
    client_id: str
    origin: str = msgspec.field(name="from")
    """The client's IP address."""
    at_ms: int


class _Entity(msgspec.Struct, rename={"client_id": "client-id"}, forbid_unknown_fields=True):
    """Each part is a name, None for the default entity, or not there."""

    user: str | UnsetType | None = UNSET
    client_id: str | UnsetType | None = UNSET
    ip: str | UnsetType | None = UNSET


class _Resource(msgspec.Struct, forbid_unknown_fields=True):
    """One of the two, and None for the default."""

    topic: str | UnsetType | None = UNSET
    broker: str | UnsetType | None = UNSET


class _Key(msgspec.Struct, omit_defaults=True):
    kind: str
    entity: _Entity
    name: str
    temporary: bool = False


class _ConfigKey(msgspec.Struct, omit_defaults=True):
    kind: str
    entity: _Resource
    name: str
    temporary: bool = False


class _Kind(msgspec.Struct):
    kind: str


class _Version(msgspec.Struct):
    v: int


def encode(place: Place, setting: Setting) -> tuple[bytes, bytes]:
    """Key and value."""
    return msgspec.json.encode(_key(place)), msgspec.json.encode(
        {"v": VERSION, **msgspec.to_builtins(setting)}
    )


def _key(place: Place) -> _Key | _ConfigKey:
    entity = place.entity
    if isinstance(entity, ConfigResource):
        name = None if entity.name == DEFAULT_RESOURCE else entity.name
        resource = _Resource(topic=name) if entity.type == TOPIC else _Resource(broker=name)
        return _ConfigKey(CONFIG, resource, place.name, place.temporary)
    parts = _Entity(_spell(entity.user), _spell(entity.client_id), _spell(entity.ip))
    return _Key(CLIENT_QUOTA, parts, place.name, place.temporary)


def decode(key: bytes | None, value: bytes | None) -> tuple[Place, Setting | None]:
    """What a record says; no setting where it is a tombstone. Raises Unreadable."""
    if key is None:
        raise Unreadable("it has no key")
    try:
        kind = msgspec.json.decode(key, type=_Kind).kind
        if kind not in (CLIENT_QUOTA, CONFIG):
            raise Unreadable(f"its kind is {kind!r}, which a newer version may know")
        place = _config_place(key) if kind == CONFIG else _place(msgspec.json.decode(key, type=_Key))
        if value is None:
            return place, None
        version = msgspec.json.decode(value, type=_Version).v
        if version != VERSION:
            raise Unreadable(f"its version is {version}; this proxy reads {VERSION}")
        setting = msgspec.json.decode(value, type=Setting)
    except msgspec.MsgspecError as error:
        raise Unreadable(f"it is no record of a quota proxy: {error}") from error
    _check_value(setting.value, kind)
    return place, setting


def _check_value(value: float | str | None, kind: str) -> None:
    if value is None:
        return
    if isinstance(value, str) != (kind == CONFIG):
        raise Unreadable(f"its value is {value!r}; a {CONFIG} has text, a {CLIENT_QUOTA} a number")
    if not isinstance(value, str) and not value > 0:
        raise Unreadable(f"its value is {value}; a quota is greater than 0")


def _config_place(key: bytes) -> Place:
    decoded = msgspec.json.decode(key, type=_ConfigKey)
    for type, name in ((TOPIC, decoded.entity.topic), (BROKER, decoded.entity.broker)):
        if not isinstance(name, UnsetType):
            resource = ConfigResource(type, DEFAULT_RESOURCE if name is None else name)
            return Place(resource, decoded.name, decoded.temporary)
    raise Unreadable("its entity is neither a topic nor a broker")


def _place(key: _Key) -> Place:
    entity = key.entity
    return Place(
        QuotaEntity(_read(entity.user), _read(entity.client_id), _read(entity.ip)), key.name, key.temporary
    )


def _spell(name: str | None) -> str | UnsetType | None:
    """A part of a QuotaEntity (DEFAULT, a name, None for no such part) in JSON."""
    if name is None:
        return UNSET
    return None if name == DEFAULT else name


def _read(name: str | UnsetType | None) -> str | None:
    if name is UNSET:
        return None
    return DEFAULT if name is None else name
