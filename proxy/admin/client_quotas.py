"""DescribeClientQuotas and AlterClientQuotas answered out of the store, with Kafka's checks and error codes.

Ours beyond Kafka:

- An entry of AlterClientQuotas that sets `expires_at_ms` holds until then (ms since the epoch), and one that
  removes it ends the entity's temporary values.
- A filter of DescribeClientQuotas with a component for any `lasting`, besides its others, gets what holds
  without temporary values.
- An `ip` may be a network, as in the configuration file.
"""

import asyncio
import time
from collections.abc import Iterable, Mapping
from typing import Final

from kio.schema.errors import ErrorCode

from proxy.admin.authority import MAY_NOT
from proxy.admin.messages.client_quotas import (
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
from proxy.admin.rejected import RequestRejected
from proxy.config.unknown_key import meant
from proxy.quota.identity import CLIENT_ID, DEFAULT, IP, USER, Identity, QuotaEntity
from proxy.quota.networks import canonical_address, canonical_network
from proxy.quota.quota import QuotaKey
from proxy.store.quota_store import YIELD_EVERY, ClientQuotaAlteration, QuotaStore, StoreOff, StoreUnavailable
from proxy.wire.reader import Reader

EXPIRES_AT_MS: Final = "expires_at_ms"
LAST_TIME_MS: Final = 253_402_300_799_000
"""The end of the year 9999."""
TYPES: Final = (USER, CLIENT_ID, IP)
EXACT: Final = 0
DEFAULT_NAME: Final = 1
ANY_NAME: Final = 2
RESOLVE_SECONDS: Final = 5.0
ANY_LASTING: Final = Component("lasting", ANY_NAME, None)
"""Kafka rejects it as an unknown entity type (UNSUPPORTED_VERSION), so that a client can tell."""

Result = tuple[ErrorCode, str | None]
DONE: Final[Result] = (ErrorCode.none, None)


class ClientQuotas:
    """Both APIs. Bodies that do not parse raise Malformed."""

    def __init__(self, store: QuotaStore, keys: Iterable[QuotaKey]) -> None:
        self._store: Final = store
        self._keys: Final = {key.name: key for key in keys}

    # Describe

    async def describe(self, reader: Reader, flexible: bool, correlation_id: int, may: bool = True) -> bytes:
        """The frame that answers the body at `reader`; `may`: whether its client may know."""
        components, strict = read_describe(reader, flexible)
        if not may:
            code = ErrorCode.cluster_authorization_failed
            return describe_response(correlation_id, flexible, code, MAY_NOT, None)
        others = [component for component in components if component != ANY_LASTING]
        lasting = len(others) < len(components)
        try:
            wanted = _filter(others)
        except RequestRejected as rejected:
            return describe_response(correlation_id, flexible, rejected.code, str(rejected), None)
        entries: list[bytes] = []
        for number, entity in enumerate(self._candidates(wanted, strict, lasting), 1):
            quotas = self._store.lasting(entity) if lasting else self._store.effective.get(entity, {})
            values = list(quotas.items())
            if values and _matches(entity, wanted, strict):
                entries.append(write_described(_parts(entity), values, flexible))
            if number % YIELD_EVERY == 0:
                await asyncio.sleep(0)
        return describe_response(correlation_id, flexible, ErrorCode.none, None, entries)

    def _candidates(self, wanted: Mapping[str, str | None], strict: bool, lasting: bool) -> list[QuotaEntity]:
        """Entities that may pass the filter: the one that it names, or all."""
        if strict and None not in wanted.values():
            return [QuotaEntity(wanted.get(USER), wanted.get(CLIENT_ID), wanted.get(IP))] if wanted else []
        return self._store.lasting_entities() if lasting else list(self._store.effective)

    # Alter

    async def alter(
        self, reader: Reader, flexible: bool, correlation_id: int, who: Identity, may: bool = True
    ) -> bytes:
        """Make the changes of the body at `reader`, if its client `may`; the frame that answers it."""
        entries: list[QuotaAlteration] = []
        for number, entry in enumerate(read_alterations(reader, flexible), 1):
            entries.append(entry)
            if number % YIELD_EVERY == 0:
                await asyncio.sleep(0)
        validate_only = read_validate_only(reader, flexible)
        results: dict[tuple[Part, ...], Result] = {}
        changes: dict[tuple[Part, ...], ClientQuotaAlteration] = {}
        for number, entry in enumerate(entries, 1):
            # As a map has it, the last name of a type counts.
            parts = tuple(dict(entry.parts).items())
            if parts in results:
                results[parts] = (
                    ErrorCode.invalid_request,
                    "The entity is in the request twice; the first counts",
                )
                continue
            if not may:
                results[parts] = (ErrorCode.cluster_authorization_failed, MAY_NOT)
                continue
            try:
                changes[parts] = await self._check(parts, entry.ops)
                results[parts] = DONE
            except RequestRejected as rejected:
                results[parts] = (rejected.code, str(rejected))
            if number % YIELD_EVERY == 0:
                await asyncio.sleep(0)
        failure = await self._store_all(list(changes.values()), who, validate_only)
        if failure is not None:
            for parts in changes:
                results[parts] = failure
        altered: list[bytes] = []
        for parts, (code, message) in results.items():
            altered.append(write_altered(parts, code, message, flexible))
            if len(altered) % YIELD_EVERY == 0:
                await asyncio.sleep(0)
        return alter_response(correlation_id, flexible, altered)

    async def _store_all(
        self, changes: list[ClientQuotaAlteration], who: Identity, validate_only: bool
    ) -> Result | None:
        """Store the changes; what stands in the way where they cannot be stored."""
        try:
            if not validate_only:
                await self._store.alter(changes, who)
        except StoreUnavailable as error:
            # Retriable, and it may be that the change was made after all.
            return ErrorCode.request_timed_out, str(error)
        except StoreOff as error:
            return ErrorCode.policy_violation, str(error)
        return None

    async def _check(self, parts: tuple[Part, ...], ops: Iterable[QuotaOp]) -> ClientQuotaAlteration:
        values: dict[str, float | None] = {}
        for op in ops:
            if op.key is None:
                raise _invalid("The key of a quota is null")
            if op.key in values:
                raise _invalid(f"The quota {op.key} is in the entry twice")
            values[op.key] = None if op.remove else op.value
        entity, address = await _entity(dict(parts))
        expiry = EXPIRES_AT_MS in values
        end = values.pop(EXPIRES_AT_MS, None)
        for name, value in values.items():
            if value is not None:
                self._check_value(entity, name, value)
        if expiry and end is None:
            return ClientQuotaAlteration(entity, values, end_temporary=True)
        return ClientQuotaAlteration(
            entity, values, None if end is None else _end(end, values), address=address
        )

    def _check_value(self, entity: QuotaEntity, name: str, value: float) -> None:
        key = self._keys.get(name)
        if key is None:
            raise _invalid(f"{name} is no quota; {meant(name, self._keys)}")
        problem = key.misplaced(entity) or key.problem(value)
        if problem:
            raise _invalid(problem)


def _invalid(message: str) -> RequestRejected:
    return RequestRejected(ErrorCode.invalid_request, message)


def _end(end: float, values: Mapping[str, float | None]) -> int:
    if not values:
        raise _invalid(f"{EXPIRES_AT_MS} says until when the entry's quotas hold; the entry has none")
    if not end.is_integer() or not time.time() * 1000 < end <= LAST_TIME_MS:
        raise _invalid(f"{EXPIRES_AT_MS} is {end:f}; it takes a time to come, in ms since the epoch")
    return int(end)


async def _entity(parts: Mapping[str | None, str | None]) -> tuple[QuotaEntity, str | None]:
    """The entity, and what the name of an ip stands for where that is no address."""
    if not parts:
        raise _invalid("The entity is empty; it has user, client-id or both, or ip alone")
    for kind, name in parts.items():
        if kind not in TYPES:
            what = "null" if kind is None else kind
            raise _invalid(
                f"{what} is no type of a quota entity; it has user, client-id or both, or ip alone"
            )
        if name == "":
            raise _invalid(f"The name of the {kind} is empty; it is null for the default entity")
    if IP not in parts:
        return QuotaEntity(_name(parts, USER), _name(parts, CLIENT_ID)), None
    if len(parts) > 1:
        raise _invalid("ip stands alone; it cannot be combined with user or client-id")
    return QuotaEntity(None, None, _name(parts, IP)), await _address(parts[IP])


def _name(parts: Mapping[str | None, str | None], kind: str) -> str | None:
    """A part as a QuotaEntity has it."""
    return parts[kind] or DEFAULT if kind in parts else None


async def _address(name: str | None) -> str | None:
    """What a host name stands for; None for what is an address, a network or the default entity itself."""
    if name is None:
        return None
    try:
        _ = canonical_network(name) if "/" in name else canonical_address(name)
        return None
    except ValueError:
        pass
    try:
        async with asyncio.timeout(RESOLVE_SECONDS):
            found = await asyncio.get_running_loop().getaddrinfo(name, None)
        return canonical_address(str(found[0][4][0]))
    except (OSError, UnicodeError, ValueError) as error:
        raise _invalid(f"{name} is neither an IP address nor a host name that resolves") from error


def _filter(components: Iterable[Component]) -> dict[str, str | None]:
    """By entity type the name to match: DEFAULT for the default entity, None for any."""
    wanted: dict[str, str | None] = {}
    for component in components:
        kind, match = component.type, component.match
        if not kind:
            raise _invalid("The entity type of a filter is empty")
        if kind in wanted:
            raise _invalid(f"The entity type {kind} is in the filter twice")
        if kind not in TYPES:
            raise RequestRejected(ErrorCode.unsupported_version, f"The entity type {kind} is not known")
        if component.match_type == EXACT:
            if match is None:
                raise _invalid(f"The filter for {kind} asks for a name and has none")
            # No entity's name is empty, and DEFAULT is not asked for so.
            wanted[kind] = match or "\0"
        elif component.match_type in (DEFAULT_NAME, ANY_NAME):
            if match is not None:
                raise _invalid(f"The filter for {kind} has a name and does not ask for one")
            wanted[kind] = DEFAULT if component.match_type == DEFAULT_NAME else None
        else:
            raise _invalid(f"The filter for {kind} has the unknown match type {component.match_type}")
    if IP in wanted and len(wanted) > 1:
        raise _invalid("ip stands alone; it cannot be combined with user or client-id in a filter")
    return wanted


def _matches(entity: QuotaEntity, wanted: Mapping[str, str | None], strict: bool) -> bool:
    names = dict(_parts(entity))
    if strict and len(names) != len(wanted):
        return False
    return all(
        kind in names and (name is None or (names[kind] or DEFAULT) == name) for kind, name in wanted.items()
    )


def _parts(entity: QuotaEntity) -> list[tuple[str, str | None]]:
    """The entity on the wire: null is the default."""
    named = zip(TYPES, entity, strict=True)
    return [(kind, None if name == DEFAULT else name) for kind, name in named if name is not None]
