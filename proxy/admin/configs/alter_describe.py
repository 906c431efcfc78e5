"""DescribeConfigs, AlterConfigs and IncrementalAlterConfigs: the proxy's part, and the broker's.

Of a request the broker gets what is not ours, and judges it: a resource that it rejects, because there is no
such topic or its client may not change it, is rejected whole. Ours are checked before it is asked and stored
when it has agreed, so that neither part is made where the other cannot be. No broker hears of the topic
`<default>`, which stands for all topics without a value of their own.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from kio.schema.errors import ErrorCode

from proxy.admin.authority import MAY_NOT, Rights
from proxy.admin.configs.plan import (
    BROKER_TYPE,
    EXPIRES_AT_MS,
    TOPIC_TYPE,
    Plan,
    entries_of,
    plan_of,
    resource_of,
)
from proxy.admin.configs.store import ConfigsStore
from proxy.admin.messages.alter_configs import (
    Altered,
    AlterRequest,
    AlterResult,
    ConfigOp,
    read_alter_request,
    read_alter_response,
    write_alter_response,
    write_result,
)
from proxy.admin.messages.config_resources import ResourceKey
from proxy.admin.messages.describe_configs import (
    DescribeRequest,
    DescribeResult,
    add_entries,
    own_result,
    read_describe_request,
    read_describe_response,
    write_describe_response,
)
from proxy.admin.messages.topics import Yielder
from proxy.admin.mutations.mutations import Broker
from proxy.admin.rejected import RequestRejected
from proxy.quota.config_rules import ConfigRules
from proxy.quota.identity import Identity
from proxy.quota.limits.resources import DEFAULT_RESOURCE, ConfigResource
from proxy.relay.close_reasons import BROKER_PROTOCOL_ERROR, RelayError
from proxy.relay.intercepted import Intercepted
from proxy.store.quota_store import ConfigChange
from proxy.wire.errors import ProtocolError

DEFAULT_TOPIC: Final[ResourceKey] = (TOPIC_TYPE, DEFAULT_RESOURCE)


@dataclass(frozen=True, slots=True)
class _Case:
    """A resource of a request to alter."""

    asked: Altered
    theirs: list[ConfigOp]
    """What is not ours."""
    change: ConfigChange | None = None
    """Ours; None where there is nothing to change."""
    rejection: AlterResult | None = None

    @property
    def local(self) -> bool:
        """Whether the broker is not asked."""
        return self.rejection is not None or self.asked.key == DEFAULT_TOPIC


class ResourceConfigs:
    """The three APIs. Bodies that do not parse raise Malformed; what the broker answers, RelayError."""

    def __init__(
        self,
        store: ConfigsStore,
        rules: ConfigRules,
        wall_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._store: Final = store
        self._rules: Final = rules
        self._wall_ms: Final = wall_ms

    # Describe

    async def describe(self, intercepted: Intercepted, broker: Broker) -> bytes:
        """The frame that answers DescribeConfigs."""
        yielder = Yielder()
        request = await read_describe_request(intercepted.header, intercepted.frame, yielder)
        theirs = [resource for resource in request.resources if resource.key != DEFAULT_TOPIC]
        results: list[DescribeResult] = []
        throttle_time_ms = 0
        if theirs or not request.resources:
            payload = await broker.ask(request.frame(theirs))
            try:
                results, throttle_time_ms = await read_describe_response(request, payload, yielder)
            except ProtocolError as error:
                raise RelayError(BROKER_PROTOCOL_ERROR, f"the answer to DescribeConfigs: {error}") from error
        names = {resource.key: resource.names for resource in request.resources}
        for place, resource in enumerate(request.resources):
            if resource.key == DEFAULT_TOPIC:
                may = await broker.rights.may_describe()
                code = ErrorCode.none if may else ErrorCode.topic_authorization_failed
                message = None if may else MAY_NOT
                results.insert(place, own_result(request, DEFAULT_TOPIC, code.value, message))
        for result in results:
            sees = broker.rights.sees_configs or result.key == DEFAULT_TOPIC
            if result.error_code == ErrorCode.none and sees:
                self._add(request, result, names.get(result.key))
            await yielder.step()
        return write_describe_response(request, results, throttle_time_ms)

    def _add(self, request: DescribeRequest, result: DescribeResult, names: frozenset[str] | None) -> None:
        """Put ours beside the broker's, or in their place."""
        resource = resource_of(result.key)
        if resource is None:
            return
        keys = self._rules.keys(resource.type)
        add_entries(request, result, entries_of(resource, keys, self._store.configs, names))

    # Alter

    async def alter(self, intercepted: Intercepted, broker: Broker) -> bytes:
        """The frame that answers AlterConfigs or IncrementalAlterConfigs."""
        yielder = Yielder()
        request = await read_alter_request(intercepted.header, intercepted.frame, yielder)
        times = Counter(asked.key for asked in request.resources)
        cases = [self._case(request, asked, times[asked.key] == 1) for asked in request.resources]
        cases = self._without_conflicts(request, await _allowed(request, cases, broker.rights))
        results = [case.rejection for case in cases if case.rejection is not None]
        theirs, throttle_time_ms = await self._ask(request, cases, broker, yielder)
        results += theirs
        codes = {result.key: result.error_code for result in theirs}
        agreed = [
            case
            for case in cases
            if case.rejection is None and (case.local or codes.get(case.asked.key) == ErrorCode.none)
        ]
        results += [
            write_result(request, case.asked.key, ErrorCode.none, None) for case in agreed if case.local
        ]
        failures = await self._make(request, agreed, broker, intercepted.exchange.client)
        failed = {failure.key for failure in failures}
        results = [result for result in results if result.key not in failed] + failures
        return write_alter_response(request, results, throttle_time_ms)

    def _case(self, request: AlterRequest, asked: Altered, once: bool) -> _Case:
        resource = resource_of(asked.key)
        if resource is None and asked.key[0] != BROKER_TYPE:
            return _Case(asked, list(asked.ops))
        keys = self._rules.keys(resource.type) if resource is not None else {}
        names = {*keys, EXPIRES_AT_MS} if keys else set()
        ours = [op for op in asked.ops if op.name in names]
        passed_on = self._rules.passed_on if asked.key != DEFAULT_TOPIC else ()
        theirs = [op for op in asked.ops if op.name not in names or op.name in passed_on]
        # Brokers reject a resource that is there twice.
        if resource is None or (not once and asked.key != DEFAULT_TOPIC):
            return _Case(asked, theirs)
        try:
            if asked.key == DEFAULT_TOPIC:
                _check_default(asked, theirs, once)
            current = self._store.configs.get(resource, {})
            plan = plan_of(ours, keys, current, request.replaces, self._wall_ms())
            self._check_enforced(plan)
            change = self._change(resource, plan, request)
        except RequestRejected as rejected:
            rejection = write_result(request, asked.key, rejected.code, str(rejected))
            return _Case(asked, theirs, rejection=rejection)
        return _Case(asked, theirs, change)

    def _check_enforced(self, plan: Plan) -> None:
        """Raises RequestRejected for what nobody would enforce, or end."""
        for name, value in plan.values.items():
            if value is not None and name in self._rules.unenforced:
                problem = "is enforced where the proxy has a replication listener, and it has none"
                raise RequestRejected(ErrorCode.invalid_config, f"{name} {problem}")
            if plan.expires_at_ms is not None and name in self._rules.passed_on:
                problem = "holds at the brokers too (quotas.replication.enforce), where nothing would end it"
                raise RequestRejected(ErrorCode.invalid_config, f"{name} {problem}")

    def _change(self, resource: ConfigResource, plan: Plan, request: AlterRequest) -> ConfigChange | None:
        values = plan.values
        if not values and not plan.end_temporary:
            return None
        if not self._store.off:
            self._store.check_open()
            return ConfigChange(resource, values, plan.expires_at_ms, plan.end_temporary)
        current = self._store.configs.get(resource, {})
        if request.replaces:
            # What only the file can change is not erased by who does not name it.
            values = {name: value for name, value in values.items() if value is not None}
        if plan.expires_at_ms or any(value != current.get(name) for name, value in values.items()):
            raise RequestRejected(ErrorCode.policy_violation, self._store.off)
        return None

    def _without_conflicts(self, request: AlterRequest, cases: list[_Case]) -> list[_Case]:
        """The cases, those rejected that cannot be made together with what is there and those before them."""
        changes = [case.change for case in cases if case.change is not None]
        if not changes or not self._store.conflict(changes):
            return cases
        made: list[ConfigChange] = []
        checked: list[_Case] = []
        for case in cases:
            problem = "" if case.change is None else self._store.conflict([*made, case.change])
            if problem:
                rejection = write_result(request, case.asked.key, ErrorCode.invalid_config, problem)
                case = _Case(case.asked, case.theirs, rejection=rejection)
            elif case.change is not None:
                made.append(case.change)
            checked.append(case)
        return checked

    async def _ask(
        self, request: AlterRequest, cases: Sequence[_Case], broker: Broker, yielder: Yielder
    ) -> tuple[list[AlterResult], int]:
        """The broker's results for its part of the request, and throttle_time_ms."""
        parts = [case.asked.part(case.theirs, request.flexible) for case in cases if not case.local]
        if not parts and cases:
            return [], 0
        payload = await broker.ask(request.frame(parts))
        try:
            answer = await read_alter_response(request, payload, yielder)
        except ProtocolError as error:
            what = "AlterConfigs" if request.replaces else "IncrementalAlterConfigs"
            raise RelayError(BROKER_PROTOCOL_ERROR, f"the answer to {what}: {error}") from error
        return answer.results, answer.throttle_time_ms

    async def _make(
        self, request: AlterRequest, cases: Sequence[_Case], broker: Broker, who: Identity
    ) -> list[AlterResult]:
        """Store the changes of these cases; the results of those that could not be."""
        changing = [case for case in cases if case.change is not None]
        if request.validate_only or not changing:
            return []
        changes = [case.change for case in changing if case.change is not None]
        failures = await self._store.alter(changes, broker, who)
        results: list[AlterResult] = []
        for case, failure in zip(changing, failures, strict=True):
            if failure is not None:
                done = "Kafka's own configs of the resource are set; " if case.theirs else ""
                message = f"{done}{failure}"
                results.append(write_result(request, case.asked.key, failure.code, message))
        return results


async def _allowed(request: AlterRequest, cases: list[_Case], rights: Rights) -> list[_Case]:
    """The cases, those rejected whose client may not change quotas."""
    changing = [case for case in cases if case.change is not None]
    judged = any(not case.local for case in changing) and await rights.may_as_judged()
    default = any(case.local for case in changing) and await rights.may_alter()
    allowed: list[_Case] = []
    for case in cases:
        if case.change is not None and not (default if case.local else judged):
            of_topic = case.asked.key[0] == TOPIC_TYPE
            code = (
                ErrorCode.topic_authorization_failed if of_topic else ErrorCode.cluster_authorization_failed
            )
            rejection = write_result(request, case.asked.key, code, MAY_NOT)
            case = _Case(case.asked, case.theirs, rejection=rejection)
        allowed.append(case)
    return allowed


def _check_default(asked: Altered, theirs: Sequence[ConfigOp], once: bool) -> None:
    if not once:
        raise RequestRejected(ErrorCode.invalid_request, "Each resource must appear at most once.")
    if theirs:
        name = theirs[0].name
        raise RequestRejected(
            ErrorCode.invalid_config,
            f"Unknown topic config name: {name}. The topic {DEFAULT_RESOURCE} takes only the proxy's quotas",
        )
