"""AlterConfigs and IncrementalAlterConfigs, with quota configs.

The proxy takes the quota configs out of a request and forwards the rest. A resource that the broker rejects,
because the topic does not exist or the client may not change it, is rejected as a whole. Quota configs are
checked before the request is forwarded, and stored after the broker has accepted the resource, so that
neither part is changed if the other cannot be. The topic `<default>`, which stands for all topics without a
value of their own, exists in the proxy alone and is not forwarded.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from kio.schema.errors import ErrorCode

from proxy.admin.authority import MAY_NOT, Rights
from proxy.admin.broker import Broker
from proxy.admin.configs.plan import (
    BROKER_TYPE,
    DEFAULT_TOPIC,
    NOT_CONFIGS,
    TOPIC_TYPE,
    Plan,
    changes_of,
    plan_of,
    resource_of,
)
from proxy.admin.configs.store import ConfigsStore
from proxy.admin.messages.alter_configs import (
    APPEND,
    SUBTRACT,
    AlteredResource,
    AlterRequest,
    AlterResult,
    ConfigOp,
    read_alter_request,
    read_alter_response,
    write_alter_response,
    write_result,
)
from proxy.admin.messages.config_resources import ResourceKey
from proxy.admin.rejected import RequestRejected
from proxy.admin.yielder import Yielder
from proxy.quota.config_rules import ConfigRules
from proxy.quota.identity import Identity, client_key
from proxy.quota.limits.resources import DEFAULT_RESOURCE, ConfigKey, ConfigResource
from proxy.relay.close_reasons import BROKER_PROTOCOL_ERROR, BrokerUnreachable, RelayError
from proxy.relay.intercepted import Intercepted
from proxy.store.quota_store import ConfigChange, Conflict
from proxy.wire.errors import ProtocolError

HALF_DONE: Final = "The resource's Kafka configs were set, its quotas were not: "


@dataclass(frozen=True, slots=True)
class _PlannedResource:
    """A resource of a request to alter, split into the broker's part and the proxy's."""

    requested: AlteredResource
    forwarded: list[ConfigOp]
    """The configs for the broker."""
    change: ConfigChange | None = None
    """The change of the quota configs; None if there is nothing to change."""
    rejection: AlterResult | None = None

    @property
    def local(self) -> bool:
        """Whether the resource is not forwarded."""
        return self.rejection is not None or self.requested.key == DEFAULT_TOPIC


class AlterConfigs:
    """Answers the two APIs.

    Requests that do not parse raise Malformed, responses of the broker RelayError.
    """

    def __init__(
        self,
        store: ConfigsStore,
        rules: ConfigRules,
        wall_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._store: Final = store
        self._rules: Final = rules
        self._wall_ms: Final = wall_ms

    async def answer(self, intercepted: Intercepted, broker: Broker) -> bytes:
        """Return the response frame."""
        yielder = Yielder(client_key(intercepted.exchange.client))
        request = await read_alter_request(intercepted.header, intercepted.frame, yielder)
        try:
            response = await self._alter(request, broker, intercepted.exchange.client, yielder)
        except BrokerUnreachable as error:
            code = ErrorCode.request_timed_out
            failed: dict[ResourceKey, AlterResult] = {}
            for resource in request.resources:
                await yielder.step()
                if resource.key not in failed:
                    failed[resource.key] = write_result(request, resource.key, code, str(error))
            response = await write_alter_response(request, list(failed.values()), 0, yielder)
        await yielder.free(request.resources)
        return response

    async def _alter(self, request: AlterRequest, broker: Broker, who: Identity, yielder: Yielder) -> bytes:
        """Check, forward and store the changes; return the response frame. Raises BrokerUnreachable."""
        times: Counter[ResourceKey] = Counter()
        async for some in yielder.slices(request.resources):
            times.update([resource.key for resource in some])
        planned: list[_PlannedResource] = []
        for altered in request.resources:
            await yielder.step()
            planned.append(self._plan(request, altered, times[altered.key] == 1))
        planned = await _allowed(request, planned, broker.rights, yielder)
        planned = await self._without_conflicts(request, planned, yielder)
        responded, throttle_time_ms = await self._forward(request, planned, broker, yielder)
        codes: dict[ResourceKey, int] = {}
        async for results in yielder.slices(responded):
            codes.update([(result.key, result.error_code) for result in results])
        accepted: list[_PlannedResource] = []
        for resource in planned:
            await yielder.step()
            if resource.rejection is not None:
                responded.append(resource.rejection)
            elif resource.local:
                responded.append(write_result(request, resource.requested.key, ErrorCode.none, None))
                accepted.append(resource)
            elif codes.get(resource.requested.key) == ErrorCode.none:
                accepted.append(resource)
        failures = await self._store_changes(request, accepted, broker, who)
        failed = {failure.key for failure in failures}
        done: list[AlterResult] = []
        async for results in yielder.slices(responded):
            done += [result for result in results if result.key not in failed]
        response = await write_alter_response(request, done + failures, throttle_time_ms, yielder)
        await yielder.free(done, responded, accepted, planned, codes, times)
        return response

    def _plan(self, request: AlterRequest, requested: AlteredResource, once: bool) -> _PlannedResource:
        """Split a resource, and check its quota configs. `once`: whether the request has it only once."""
        resource = resource_of(requested.key)
        if resource is None and requested.key[0] != BROKER_TYPE:
            return _PlannedResource(requested, list(requested.ops))
        keys = self._rules.keys(resource.type) if resource is not None else {}
        names = {*keys, *NOT_CONFIGS} if keys else set()
        quota_ops = [op for op in requested.ops if op.name in names]
        # Configs that brokers enforce, too, are forwarded and stored (quotas.replication.enforce: both).
        shared = self._rules.forwarded if requested.key != DEFAULT_TOPIC else ()
        forwarded = [op for op in requested.ops if op.name not in names or op.name in shared]
        # The broker rejects a resource that is in the request twice.
        if resource is None or (not once and requested.key != DEFAULT_TOPIC):
            return _PlannedResource(requested, forwarded)
        try:
            if requested.key == DEFAULT_TOPIC:
                _check_default(forwarded, once)
            current = self._store.configs.get(resource, {})
            plan = plan_of(quota_ops, keys, current, request.replaces, self._wall_ms())
            self._check_enforced(plan)
            change = self._change(resource, plan, request)
            if change is not None and any(op.operation in (APPEND, SUBTRACT) for op in quota_ops):
                change = replace(change, renew=_renewal(quota_ops, keys))
        except RequestRejected as rejected:
            rejection = write_result(request, requested.key, rejected.code, str(rejected))
            return _PlannedResource(requested, forwarded, rejection=rejection)
        return _PlannedResource(requested, forwarded, change)

    def _check_enforced(self, plan: Plan) -> None:
        """Raise RequestRejected for a quota that nothing would enforce, or end."""
        for name, value in plan.values.items():
            if value is not None and name in self._rules.unenforced:
                problem = "cannot be enforced: the proxy has no replication listener"
                raise RequestRejected(ErrorCode.invalid_config, f"{name} {problem}")
            if plan.expires_at_ms is not None and name in self._rules.forwarded:
                problem = "cannot be temporary: brokers enforce it too, and would not end it"
                raise RequestRejected(ErrorCode.invalid_config, f"{name} {problem}")

    def _change(self, resource: ConfigResource, plan: Plan, request: AlterRequest) -> ConfigChange | None:
        """Return the change to store; None if nothing changes. Raises RequestRejected."""
        values = plan.values
        if not values and not plan.end_temporary and not plan.back_to_file:
            return None
        if not self._store.off:
            self._store.check_open()
            return ConfigChange(
                resource, values, plan.expires_at_ms, plan.end_temporary, back_to_file=plan.back_to_file
            )
        current = self._store.configs.get(resource, {})
        if request.replaces:
            # AlterConfigs removes the configs that it does not name, except those that only the file can
            # change.
            values = {name: value for name, value in values.items() if value is not None}
        if (
            plan.expires_at_ms
            or plan.back_to_file
            or any(value != current.get(name) for name, value in values.items())
        ):
            raise RequestRejected(ErrorCode.policy_violation, self._store.off)
        return None

    async def _without_conflicts(
        self, request: AlterRequest, planned: list[_PlannedResource], yielder: Yielder
    ) -> list[_PlannedResource]:
        """Reject resources whose changes conflict with the stored configs, or with changes before them."""
        changes: list[ConfigChange] = []
        async for some in yielder.slices(planned):
            changes += [resource.change for resource in some if resource.change is not None]
        if not changes:
            return planned
        conflicts = iter(await self._store.conflicts(changes, yielder))
        checked: list[_PlannedResource] = []
        for resource in planned:
            await yielder.step()
            conflict = "" if resource.change is None else next(conflicts)
            checked.append(
                _rejected(request, resource, ErrorCode.invalid_config, conflict) if conflict else resource
            )
        return checked

    async def _forward(
        self, request: AlterRequest, planned: Sequence[_PlannedResource], broker: Broker, yielder: Yielder
    ) -> tuple[list[AlterResult], int]:
        """Forward the broker's part of the request; return its results, and throttle_time_ms."""
        parts: list[bytes] = []
        for resource in planned:
            await yielder.step()
            if not resource.local:
                parts.append(resource.requested.part(resource.forwarded, request.flexible))
        if not parts and planned:
            return [], 0
        payload = await broker.ask(request.frame(parts))
        try:
            response = await read_alter_response(request, payload, yielder)
        except ProtocolError as error:
            name = "AlterConfigs" if request.replaces else "IncrementalAlterConfigs"
            what = f"the response to {name} does not parse: {error}"
            raise RelayError(BROKER_PROTOCOL_ERROR, what) from error
        return response.results, response.throttle_time_ms

    async def _store_changes(
        self, request: AlterRequest, accepted: Sequence[_PlannedResource], broker: Broker, who: Identity
    ) -> list[AlterResult]:
        """Store the changes of the accepted resources; return the results of those that failed."""
        changing = [resource for resource in accepted if resource.change is not None]
        if request.validate_only or not changing:
            return []
        changes = [resource.change for resource in changing if resource.change is not None]
        failures = await self._store.alter(changes, broker, who)
        results: list[AlterResult] = []
        for resource, failure in zip(changing, failures, strict=True):
            if failure is not None:
                message = f"{HALF_DONE if resource.forwarded else ''}{failure}"
                results.append(write_result(request, resource.requested.key, failure.code, message))
        return results


async def _allowed(
    request: AlterRequest, planned: list[_PlannedResource], rights: Rights, yielder: Yielder
) -> list[_PlannedResource]:
    """Reject the resources whose quotas the client may not change.

    A broker lets a client alter a topic that has the right on that topic. This is not sufficient for the
    topic's quotas: whoever owns a topic could lift its limit.
    """
    kinds: set[int] = set()
    async for some in yielder.slices(planned):
        kinds.update([resource.requested.key[0] for resource in some if resource.change is not None])
    if not kinds:
        return planned
    of_topics = TOPIC_TYPE in kinds and await rights.may_alter()
    of_brokers = BROKER_TYPE in kinds and await rights.may_as_judged()
    allowed: list[_PlannedResource] = []
    for resource in planned:
        await yielder.step()
        of_topic = resource.requested.key[0] == TOPIC_TYPE
        if resource.change is None or (of_topics if of_topic else of_brokers):
            allowed.append(resource)
        elif of_topic and request.replaces and not any(resource.change.values.values()):
            # AlterConfigs removes the configs that it does not name, except the quotas of a client that may
            # not change them.
            allowed.append(replace(resource, change=None))
        else:
            code = (
                ErrorCode.topic_authorization_failed if of_topic else ErrorCode.cluster_authorization_failed
            )
            allowed.append(_rejected(request, resource, code, MAY_NOT))
    return allowed


def _renewal(
    ops: Sequence[ConfigOp], keys: Mapping[str, ConfigKey]
) -> Callable[[Mapping[str, str]], dict[str, str | None]]:
    """Return a function that applies ops, some of which change lists, to the values in force."""
    configs = [op for op in ops if op.name not in NOT_CONFIGS]

    def renew(current: Mapping[str, str]) -> dict[str, str | None]:
        try:
            return changes_of(configs, keys, current, replaces=False)
        except RequestRejected as rejected:
            raise Conflict(str(rejected)) from rejected

    return renew


def _rejected(
    request: AlterRequest, resource: _PlannedResource, code: ErrorCode, message: str
) -> _PlannedResource:
    rejection = write_result(request, resource.requested.key, code, message)
    return _PlannedResource(resource.requested, resource.forwarded, rejection=rejection)


def _check_default(forwarded: Sequence[ConfigOp], once: bool) -> None:
    if not once:
        raise RequestRejected(ErrorCode.invalid_request, "Each resource must appear at most once.")
    if forwarded:
        name = forwarded[0].name
        raise RequestRejected(
            ErrorCode.invalid_config,
            f"Unknown topic config name: {name}. The topic {DEFAULT_RESOURCE} has quota configs only",
        )
