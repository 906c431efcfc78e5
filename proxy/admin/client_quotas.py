"""DescribeClientQuotas and AlterClientQuotas, answered from the store with Kafka's checks and error codes.

Extensions of Kafka's API:

- An AlterClientQuotas entry that sets `expires_at_ms` makes its quotas temporary: they hold until that time,
  in ms since the epoch. An entry that removes `expires_at_ms` ends the entity's temporary quotas.
- In an AlterClientQuotas entry that sets `back_to_file`, a removal drops what tools have set or removed, so
  that the value of the configuration file takes effect again. An entry with this key alone concerns all
  quotas of the entity.
- A DescribeClientQuotas filter with an additional component for any `lasting` gets the quotas that hold
  without the temporary ones; with a component for exactly the `lasting` named `file`, those of the
  configuration file.
- An `ip` may be a network, as in the configuration file.
"""

import asyncio
import time
from collections.abc import Iterable, Mapping
from typing import Final

from kio.schema.errors import ErrorCode

from proxy.admin.authority import MAY_NOT, Rights
from proxy.admin.messages.client_quotas import (
    ALTER_CLIENT_QUOTAS,
    BACK_TO_FILE,
    DESCRIBE_CLIENT_QUOTAS,
    EXPIRES_AT_MS,
    Component,
    Part,
    QuotaAlteration,
    QuotaOp,
    alter_response,
    describe_response,
    read_alterations,
    read_describe,
    read_validate_only,
    write_altered,
    write_described,
)
from proxy.admin.messages.fields import MAX_CHANGES, open_request
from proxy.admin.rejected import RequestRejected
from proxy.admin.yielder import Yielder
from proxy.errors import suggestion
from proxy.quota.identity import CLIENT_ID, CLIENT_TYPES, DEFAULT, IP, USER, Identity, QuotaEntity, client_key
from proxy.quota.networks import canonical_address, canonical_network
from proxy.quota.quota import QuotaKey
from proxy.relay.close_reasons import BrokerUnreachable
from proxy.relay.intercepted import Intercepted
from proxy.store.quota_store import ClientQuotaAlteration, QuotaStore, StoreOff, StoreUnavailable

LAST_TIME_MS: Final = 253_402_300_799_000
"""The end of the year 9999: the last time that all clients can show."""
EXACT: Final = 0
DEFAULT_NAME: Final = 1
ANY_NAME: Final = 2
"""The match_type of a filter's component (KIP-546)."""
MATCH_TYPES: Final = {DEFAULT_NAME: "MATCH_TYPE_DEFAULT", ANY_NAME: "MATCH_TYPE_SPECIFIED"}
RESOLVE_SECONDS: Final = 5.0
"""The timeout of resolving the host name of an `ip`."""
ENTITIES: Final = "an entity has a user, a client-id, or both, or only an ip"
ANY_LASTING: Final = Component("lasting", ANY_NAME, None)
"""Kafka rejects it as an unknown entity type (UNSUPPORTED_VERSION), so a client can tell a broker from
the proxy.
"""
OF_FILE: Final = Component("lasting", EXACT, "file")
TOO_MANY_CHANGES: Final = f"A request changes {MAX_CHANGES} quotas at most; send several requests"

Entity = tuple[Part, ...]
"""The type and the name of each part, as the request has them."""
Result = tuple[ErrorCode, str | None]
"""The error_code and the error_message of an entity."""
SUCCESS: Final[Result] = (ErrorCode.none, None)
"""The result of an entity whose changes are made, or valid."""


class ClientQuotas:
    """Answers both APIs. Requests that do not parse raise Malformed."""

    def __init__(self, store: QuotaStore, keys: Iterable[QuotaKey]) -> None:
        self._store: Final = store
        self._keys: Final = {key.name: key for key in keys}

    # Describe

    async def describe(self, request: Intercepted, rights: Rights) -> bytes:
        """Return the frame that answers DescribeClientQuotas."""
        allowed = await rights.may_describe()
        header = request.header
        correlation_id = header.correlation_id
        flexible = header.api_version >= DESCRIBE_CLIENT_QUOTAS.flexible_from
        components, strict = read_describe(open_request(header, request.frame, flexible), flexible)
        if not allowed:
            code = ErrorCode.cluster_authorization_failed
            return describe_response(correlation_id, flexible, code, MAY_NOT, None)
        others = [component for component in components if component not in (ANY_LASTING, OF_FILE)]
        lasting = len(others) < len(components)
        of_file = OF_FILE in components
        try:
            if len(components) - len(others) > 1:
                raise _duplicate("lasting")
            wanted = _filter(others)
        except RequestRejected as rejected:
            return describe_response(correlation_id, flexible, rejected.code, str(rejected), None)
        entries: list[bytes] = []
        yielder = Yielder(client_key(request.exchange.client))
        for entity in self._candidates(wanted, strict, lasting):
            if of_file:
                quotas = self._store.of_file(entity)
            else:
                quotas = self._store.lasting(entity) if lasting else self._store.effective.get(entity, {})
            values = list(quotas.items())
            if values and _matches(entity, wanted, strict):
                entries.append(write_described(_parts(entity), values, flexible))
            await yielder.step()
        return describe_response(correlation_id, flexible, ErrorCode.none, None, entries)

    def _candidates(self, wanted: Mapping[str, str | None], strict: bool, lasting: bool) -> list[QuotaEntity]:
        """Return the entities that may match: the one that the filter names, or all."""
        if strict and None not in wanted.values():
            return [QuotaEntity(wanted.get(USER), wanted.get(CLIENT_ID), wanted.get(IP))] if wanted else []
        return self._store.lasting_entities() if lasting else list(self._store.effective)

    # Alter

    async def alter(self, request: Intercepted, rights: Rights) -> bytes:
        """Make the changes of AlterClientQuotas; return the frame that answers it."""
        error: Result | None = None
        try:
            if not await rights.may_alter():
                error = (ErrorCode.cluster_authorization_failed, MAY_NOT)
        except BrokerUnreachable as unreachable:
            error = (ErrorCode.request_timed_out, str(unreachable))
        header = request.header
        flexible = header.api_version >= ALTER_CLIENT_QUOTAS.flexible_from
        reader = open_request(header, request.frame, flexible)
        yielder = Yielder(client_key(request.exchange.client))
        entries, too_many = await read_alterations(reader, flexible, yielder)
        validate_only = read_validate_only(reader, flexible)
        if error is None and too_many:
            error = (ErrorCode.policy_violation, TOO_MANY_CHANGES)
        results, changes = await self._check_all(entries, error, yielder)
        failure = await self._store_all(list(changes.values()), request.exchange.client, validate_only)
        if failure is not None:
            results |= dict.fromkeys(changes, failure)
        altered: list[bytes] = []
        for parts, (code, message) in results.items():
            altered.append(write_altered(parts, code, message, flexible))
            await yielder.step()
        return alter_response(header.correlation_id, flexible, altered)

    async def _check_all(
        self, entries: list[QuotaAlteration], error: Result | None, yielder: Yielder
    ) -> tuple[dict[Entity, Result], dict[Entity, ClientQuotaAlteration]]:
        """Return each entity's result so far, and the changes of the valid entries.

        `error` is the result of every entity, if no change may be made.
        """
        results: dict[Entity, Result] = {}
        changes: dict[Entity, ClientQuotaAlteration] = {}
        in_request: dict[frozenset[Part], Entity] = {}
        for entry in entries:
            await yielder.step()
            # Kafka reads the parts into a map: the last name of a type counts, and their order does not.
            parts = tuple(dict(entry.parts).items())
            parts = in_request.setdefault(frozenset(parts), parts)
            if parts in results:
                results[parts] = (
                    ErrorCode.invalid_request,
                    "The entity appears more than once in the request",
                )
                continue
            if error is not None:
                results[parts] = error
                continue
            try:
                changes[parts] = await self.check(parts, entry.ops)
                results[parts] = SUCCESS
            except RequestRejected as rejected:
                results[parts] = (rejected.code, str(rejected))
        return results, changes

    async def _store_all(
        self, changes: list[ClientQuotaAlteration], who: Identity, validate_only: bool
    ) -> Result | None:
        """Store the changes; return the error if that fails."""
        try:
            if not validate_only:
                await self._store.alter(changes, who)
        except StoreUnavailable as error:
            # A retriable error: the change may have been made nevertheless.
            return ErrorCode.request_timed_out, str(error)
        except StoreOff as error:
            return ErrorCode.policy_violation, str(error)
        return None

    async def check(self, parts: tuple[Part, ...], ops: Iterable[QuotaOp]) -> ClientQuotaAlteration:
        """Return the change that an entry makes. Raises RequestRejected."""
        values: dict[str, float | None] = {}
        for op in ops:
            if op.key is None:
                raise _invalid("The quota key must not be null")
            if op.key in values:
                raise _invalid(f"The quota key {op.key} appears more than once in the entry")
            values[op.key] = None if op.remove else op.value
        entity, address = await _entity(dict(parts))
        expiry = EXPIRES_AT_MS in values
        end = values.pop(EXPIRES_AT_MS, None)
        back_to_file = values.pop(BACK_TO_FILE, None) is not None
        if back_to_file and expiry:
            raise _invalid(f"{BACK_TO_FILE} and {EXPIRES_AT_MS} exclude each other in an entry")
        for name, value in values.items():
            if value is not None:
                self._check_value(entity, name, value)
            elif back_to_file and name not in self._keys:
                # Kafka ignores removals of unknown keys. Here a misspelled key would seem to have returned.
                raise self._unknown(name)
        if expiry and end is None:
            return ClientQuotaAlteration(entity, values, end_temporary=True)
        return ClientQuotaAlteration(
            entity,
            values,
            None if end is None else _end(end, values),
            address=address,
            back_to_file=back_to_file,
        )

    def _check_value(self, entity: QuotaEntity, name: str, value: float) -> None:
        key = self._keys.get(name)
        if key is None:
            raise self._unknown(name)
        problem = key.misplaced(entity) or key.problem(value)
        if problem:
            raise _invalid(problem)

    def _unknown(self, name: str) -> RequestRejected:
        return _invalid(f"Invalid configuration key {name}; {suggestion(name, self._keys)}")


def _invalid(message: str) -> RequestRejected:
    return RequestRejected(ErrorCode.invalid_request, message)


def _end(end: float, values: Mapping[str, float | None]) -> int:
    """Return `expires_at_ms` of an entry that sets `values` as an integer. Raises RequestRejected."""
    if not values:
        raise _invalid(f"{EXPIRES_AT_MS} needs a quota in the same entry, which then holds until that time")
    if not end.is_integer() or not time.time() * 1000 < end <= LAST_TIME_MS:
        raise _invalid(f"{EXPIRES_AT_MS} is {end:f}; it must be a time in the future, in ms since the epoch")
    return int(end)


async def _entity(parts: Mapping[str | None, str | None]) -> tuple[QuotaEntity, str | None]:
    """Return the entity, and the address of an ip that is given as a host name."""
    if not parts:
        raise _invalid(f"Invalid empty client quota entity; {ENTITIES}")
    for kind, name in parts.items():
        if kind not in CLIENT_TYPES:
            what = "null" if kind is None else kind
            raise _invalid(f"Unhandled client quota entity type: {what}; {ENTITIES}")
        if name == "":
            raise _invalid(f"Empty {kind} not supported; use null for the default entity")
    if IP not in parts:
        return QuotaEntity(_name(parts, USER), _name(parts, CLIENT_ID)), None
    if len(parts) > 1:
        raise _invalid(f"Invalid client quota entity combination; {ENTITIES}")
    return QuotaEntity(None, None, _name(parts, IP)), await _address(parts[IP])


def _name(parts: Mapping[str | None, str | None], kind: str) -> str | None:
    """Return the name of a part as QuotaEntity has it."""
    return parts[kind] or DEFAULT if kind in parts else None


async def _address(name: str | None) -> str | None:
    """Resolve a host name; return None for an address, a network or the default entity."""
    if name is None:
        return None
    if "/" in name:
        try:
            canonical_network(name)
        except ValueError as error:
            raise _invalid(str(error)) from error
        return None
    try:
        canonical_address(name)
        return None
    except ValueError:
        pass
    try:
        async with asyncio.timeout(RESOLVE_SECONDS):
            found = await asyncio.get_running_loop().getaddrinfo(name, None)
        return canonical_address(str(found[0][4][0]))
    except (OSError, UnicodeError, ValueError) as error:
        raise _invalid(f"{name} is not an IP address, a network or a resolvable host") from error


def _filter(components: Iterable[Component]) -> dict[str, str | None]:
    """Return the name to match by entity type: DEFAULT for the default entity, None for any name."""
    wanted: dict[str, str | None] = {}
    for component in components:
        kind, match = component.type, component.match
        if not kind:
            raise _invalid("Invalid empty entity type")
        if kind in wanted:
            raise _duplicate(kind)
        if kind not in CLIENT_TYPES:
            raise RequestRejected(ErrorCode.unsupported_version, f"Unsupported entity type {kind}")
        if component.match_type == EXACT:
            if match is None:
                raise _invalid(
                    f"The filter for {kind} specifies MATCH_TYPE_EXACT, but its match string is null"
                )
            # No entity has an empty name. DEFAULT is empty, and an exact filter must not match it.
            wanted[kind] = match or "\0"
        elif component.match_type in (DEFAULT_NAME, ANY_NAME):
            if match is not None:
                type_name = MATCH_TYPES[component.match_type]
                raise _invalid(f"The filter for {kind} specifies {type_name}, but also a match string")
            wanted[kind] = DEFAULT if component.match_type == DEFAULT_NAME else None
        else:
            raise _invalid(f"Unknown match type {component.match_type}")
    if IP in wanted and len(wanted) > 1:
        raise _invalid("Invalid entity filter component combination: ip excludes user and client-id")
    return wanted


def _duplicate(kind: str) -> RequestRejected:
    return _invalid(f"Entity type {kind} cannot appear more than once in the filter")


def _matches(entity: QuotaEntity, wanted: Mapping[str, str | None], strict: bool) -> bool:
    names = dict(_parts(entity))
    if strict and len(names) != len(wanted):
        return False
    return all(
        kind in names and (name is None or (names[kind] or DEFAULT) == name) for kind, name in wanted.items()
    )


def _parts(entity: QuotaEntity) -> list[tuple[str, str | None]]:
    """Return the entity as messages have it: null is the default."""
    named = zip(CLIENT_TYPES, entity, strict=True)
    return [(kind, None if name == DEFAULT else name) for kind, name in named if name is not None]
