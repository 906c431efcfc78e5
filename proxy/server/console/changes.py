"""QuotaChanges: changes of quotas at the admin port.

The body is `{"entity": {"user": "alice"}, "values": {"producer_byte_rate": 1048576}, "expires_at_ms": null,
"back_to_file": false}`; a null value removes a quota. The rules are those of AlterClientQuotas and
IncrementalAlterConfigs, and so is the entry in the audit log.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Final, Protocol

import msgspec

from proxy.admin.client_quotas import ClientQuotas
from proxy.admin.configs import plan
from proxy.admin.messages import config_resources
from proxy.admin.messages.alter_configs import DELETE, SET, ConfigOp
from proxy.admin.messages.client_quotas import BACK_TO_FILE, EXPIRES_AT_MS, QuotaOp
from proxy.admin.rejected import RequestRejected
from proxy.config.yaml.units import number_hint
from proxy.errors import QuotaProxyError, UpstreamUnavailable
from proxy.quota.config_rules import ConfigRules
from proxy.quota.identity import DEFAULT_IN_YAML, Identity
from proxy.quota.limits.resources import BROKER, DEFAULT_RESOURCE, TOPIC, ConfigResource, broker_name
from proxy.store.quota_store import ConfigChange, QuotaStore

CLIENT_ID: Final = "console"
Value = float | int | str | bool | None


class Change(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The body of a request."""

    entity: dict[str, str]
    values: dict[str, Value] = {}
    expires_at_ms: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] | None = None
    back_to_file: bool = False


class InvalidChange(QuotaProxyError):
    """The change is not valid. str() says why."""


class Topics(Protocol):
    """A cluster of which topics are requested."""

    def nodes(self) -> list[int]:
        """The node ids of the brokers."""

    async def topic_ids(self, node_id: int, names: Sequence[str]) -> Mapping[str, bytes | None]:
        """The ids of topics, None for one that does not exist. Raises UpstreamUnavailable."""


class QuotaChanges:
    """Makes the changes."""

    def __init__(
        self, store: QuotaStore, clients: ClientQuotas, rules: ConfigRules, clusters: Sequence[Topics]
    ) -> None:
        self._store: Final = store
        self._clients: Final = clients
        self._rules: Final = rules
        self._clusters: Final = clusters

    async def make(self, body: bytes, who: Identity) -> None:
        """Make the change of a body. When this returns, it is stored and effective at this process.

        Raises InvalidChange, Conflict, StoreUnavailable and StoreOff.
        """
        try:
            change = msgspec.json.decode(body, type=Change)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidChange(f"the body is not a change of a quota: {error}") from error
        if not change.values and not change.back_to_file:
            raise InvalidChange("no quota: set `values`, or `back_to_file`")
        if change.back_to_file and (change.expires_at_ms is not None or any_set(change.values)):
            raise InvalidChange("back_to_file excludes expires_at_ms and new values")
        try:
            if change.entity.keys() & {TOPIC, BROKER}:
                await self._of_resource(change, who)
            else:
                await self._of_clients(change, who)
        except RequestRejected as rejected:
            raise InvalidChange(str(rejected)) from rejected

    async def _of_clients(self, change: Change, who: Identity) -> None:
        parts = tuple(
            (kind, None if name == DEFAULT_IN_YAML else name) for kind, name in change.entity.items()
        )
        ops = [QuotaOp(name, _number(name, value), value is None) for name, value in change.values.items()]
        if change.expires_at_ms is not None:
            ops.append(QuotaOp(EXPIRES_AT_MS, float(change.expires_at_ms), False))
        if change.back_to_file:
            ops.append(QuotaOp(BACK_TO_FILE, 1.0, False))
        await self._store.alter([await self._clients.check(parts, ops)], who)

    async def _of_resource(self, change: Change, who: Identity) -> None:
        resource = _resource(change.entity)
        keys = self._rules.keys(resource.type)
        for name in change.values:
            if name not in keys:
                raise InvalidChange(f"{name} is not a quota of a {resource.type} that the proxy enforces")
            if name in self._rules.forwarded:
                raise InvalidChange(f"brokers enforce {name} too: set it with Kafka's tools")
            _check_unit(name, change.values[name])
        ops = [
            ConfigOp(name, DELETE if value is None else SET, _text(value), b"")
            for name, value in change.values.items()
        ]
        if change.expires_at_ms is not None:
            ops.append(ConfigOp(config_resources.EXPIRES_AT_MS, SET, str(change.expires_at_ms), b""))
        if change.back_to_file:
            ops.append(ConfigOp(config_resources.BACK_TO_FILE, SET, "true", b""))
        current = self._store.configs.get(resource, {})
        planned = plan.plan_of(ops, keys, current, False, self._store.now_ms())
        topic_id = await self._topic_id(resource) if any_set(planned.values) else None
        altered = ConfigChange(
            resource,
            planned.values,
            planned.expires_at_ms,
            planned.end_temporary,
            topic_id=topic_id,
            back_to_file=planned.back_to_file,
        )
        await self._store.alter_configs([altered], who)

    async def _topic_id(self, resource: ConfigResource) -> str | None:
        """The id of a topic. Raises InvalidChange if the topic does not exist."""
        if resource.type != TOPIC or resource.name == DEFAULT_RESOURCE:
            return None
        for cluster in self._clusters:
            for node_id in cluster.nodes()[:1]:
                try:
                    ids = await cluster.topic_ids(node_id, [resource.name])
                except UpstreamUnavailable as error:
                    raise InvalidChange(f"cannot look up the topic: {error}") from error
                found = ids.get(resource.name)
                if found is None and resource.name in ids:
                    raise InvalidChange(f"the topic {resource.name} does not exist")
                return None if found is None else found.hex()
        raise InvalidChange("cannot look up the topic: no broker is known yet; send the change again")


def any_set(values: Mapping[str, object]) -> bool:
    """Whether any value is not a removal."""
    return any(value is not None for value in values.values())


def _resource(entity: Mapping[str, str]) -> ConfigResource:
    if len(entity) > 1:
        raise InvalidChange("an entity with a topic or a broker has no other part")
    [(kind, name)] = entity.items()
    return resource_of(kind, name)


def resource_of(kind: str, name: str) -> ConfigResource:
    """A topic or a broker, or the default of either. Raises InvalidChange if it cannot have this name."""
    if kind == BROKER and name != DEFAULT_RESOURCE:
        node_id = broker_name(name)
        if node_id is None:
            raise InvalidChange(f"expected a broker's node id or {DEFAULT_RESOURCE}, got {name!r}")
        return ConfigResource(BROKER, node_id)
    if not name:
        raise InvalidChange("the name of the topic is empty")
    return ConfigResource(kind, name)


def _number(name: str, value: Value) -> float:
    if value is None:
        return 0.0
    if isinstance(value, (str, bool)):
        raise InvalidChange(f"{name} must be a number, not {value!r}{number_hint(value)}")
    try:
        return float(value)
    except OverflowError:
        raise InvalidChange(f"{name} is too large") from None


def _check_unit(name: str, value: Value) -> None:
    hint = "" if isinstance(value, str) and value.isdigit() else number_hint(value)
    if hint:
        raise InvalidChange(f"{name} must be a number, not {value!r}{hint}")


def _text(value: Value) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return None if value is None else str(value)
