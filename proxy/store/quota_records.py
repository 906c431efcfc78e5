"""Records of the topic with the quotas that tools set: JSON, one per (layer, entity, quota).

    key    {"kind": "client-quota", "entity": {"user": "alice", "client-id": null},
            "name": "producer_byte_rate"}
           {"kind": "config", "entity": {"topic": "orders"}, "name": "producer.byte.rate"}
           with "temporary": true for a temporary value; null is the default entity, topic or broker
    value  {"v": 1, "value": 1048576.0, "by": "alice", "client_id": "adminclient-1", "from": "10.0.0.1",
            "at_ms": 1767225600000}
           with "expires_at_ms" for a temporary value; "removed", "address" and "topic_id" if needed; the
           value of a config is text

A null `value` is no quota. An entity has user, client-id or both, or one of ip, topic and broker; no name is
empty. The topic is compacted by key, so the encoding of a key is canonical. Records are overwritten and never
deleted, so the topic shows who made each change.
"""

from typing import Annotated, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from proxy.quota.identity import DEFAULT, QuotaEntity
from proxy.quota.limits.resources import BROKER, DEFAULT_RESOURCE, TOPIC, ConfigResource
from proxy.quota.networks import canonical_network

CLIENT_QUOTA: Final = "client-quota"
CONFIG: Final = "config"
VERSION: Final = 1


class Unreadable(Exception):
    """This version cannot read a record. str() says why."""


class Place(msgspec.Struct, frozen=True):
    """The subject of a record: a quota of an entity, in the lasting or the temporary layer."""

    entity: QuotaEntity | ConfigResource
    name: str
    """The name of a quota, such as producer_byte_rate, or of a config, such as producer.byte.rate."""
    temporary: bool = False


class Setting(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The value of a record: what was set, by whom and when."""

    value: float | str | None
    """A number for a client quota, text for a config."""
    expires_at_ms: Annotated[int, Meta(ge=0, le=2**63 - 1)] | None = None
    """Expiry of a temporary value, in ms since the epoch; None: no temporary value. With `value` None there
    is no limit until then."""
    removed: bool = False
    """Whether a `value` of None hides the value of the file; otherwise the file's value takes effect."""
    address: str | None = None
    """The address of the host name of an `ip` entity, resolved when the quota was set."""
    topic_id: str | None = None
    """The id of the topic for which a config was set, in hexadecimal digits: a topic that is created later
    with the same name does not have the config. None if it was unknown."""
    by: str
    client_id: str
    origin: str = msgspec.field(name="from")
    """The client's IP address."""
    at_ms: int


class _Entity(msgspec.Struct, rename={"client_id": "client-id"}, forbid_unknown_fields=True):
    """The parts of an entity: each is a name, None for the default entity, or absent."""

    user: str | UnsetType | None = UNSET
    client_id: str | UnsetType | None = UNSET
    ip: str | UnsetType | None = UNSET


class _Resource(msgspec.Struct, forbid_unknown_fields=True):
    """The topic or the broker, of which one is set; None is the default."""

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
    """The key and the value of the record."""
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
    """Decode a record; the setting of a tombstone is None. Raises Unreadable."""
    if key is None:
        raise Unreadable("no key")
    try:
        kind = msgspec.json.decode(key, type=_Kind).kind
        if kind not in (CLIENT_QUOTA, CONFIG):
            raise Unreadable(f"unknown kind {kind!r}, probably of a newer version")
        place = _config_place(key) if kind == CONFIG else _place(msgspec.json.decode(key, type=_Key))
        _check_entity(place.entity)
        if value is None:
            return place, None
        version = msgspec.json.decode(value, type=_Version).v
        if version != VERSION:
            raise Unreadable(f"version {version}; this proxy reads version {VERSION}")
        setting = msgspec.json.decode(value, type=Setting)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        # The last two: text that is not UTF-8, and JSON that is nested deeply.
        raise Unreadable(f"not a record of a quota proxy: {error}") from error
    _check_value(setting.value, kind)
    if setting.address is not None and "/" in setting.address:
        raise Unreadable(f"address {setting.address!r}; expected the address of a host")
    return place, setting


def _check_value(value: float | str | None, kind: str) -> None:
    if value is None:
        return
    if isinstance(value, str) != (kind == CONFIG):
        raise Unreadable(f"value {value!r}; expected text for a {CONFIG}, a number for a {CLIENT_QUOTA}")
    if not isinstance(value, str) and not value > 0:
        raise Unreadable(f"value {value}; expected a number above 0")


def _check_entity(entity: QuotaEntity | ConfigResource) -> None:
    if not isinstance(entity, QuotaEntity) or entity.ip is None:
        return
    if entity.user is not None or entity.client_id is not None:
        raise Unreadable("the entity has an ip and another part")
    if "/" in entity.ip:
        try:
            canonical_network(entity.ip)
        except ValueError as error:
            raise Unreadable(str(error)) from error


def _config_place(key: bytes) -> Place:
    decoded = msgspec.json.decode(key, type=_ConfigKey)
    topic, broker = _read(decoded.entity.topic), _read(decoded.entity.broker)
    if (topic is None) == (broker is None):
        raise Unreadable("the entity has to be either a topic or a broker")
    name = broker if topic is None else topic
    if name == DEFAULT_RESOURCE:
        raise Unreadable(f"the name {name}; the default has the name null")
    resource = ConfigResource(BROKER if topic is None else TOPIC, name or DEFAULT_RESOURCE)
    return Place(resource, decoded.name, decoded.temporary)


def _place(key: _Key) -> Place:
    entity = key.entity
    parts = QuotaEntity(_read(entity.user), _read(entity.client_id), _read(entity.ip))
    if parts == (None, None, None):
        raise Unreadable("the entity has no part")
    return Place(parts, key.name, key.temporary)


def _spell(name: str | None) -> str | UnsetType | None:
    """A part of a QuotaEntity (DEFAULT, a name, or None for no such part) as JSON has it."""
    if name is None:
        return UNSET
    return None if name == DEFAULT else name


def _read(name: str | UnsetType | None) -> str | None:
    """The part of a QuotaEntity that _spell() has spelled."""
    if name is UNSET:
        return None
    if name == "":
        raise Unreadable("a name is empty; the default has the name null")
    return DEFAULT if name is None else name
