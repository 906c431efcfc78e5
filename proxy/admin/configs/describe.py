"""DescribeConfigs, with quota configs.

The proxy adds the quota configs to the broker's response. The topic `<default>`, which stands for all topics
without a value of their own, exists in the proxy alone: the proxy describes it itself.
"""

from typing import Final

from kio.schema.errors import ErrorCode

from proxy.admin.authority import MAY_NOT, Rights
from proxy.admin.broker import Broker, Reply
from proxy.admin.configs.memory import ConfigsMemory, ResponseMemory
from proxy.admin.configs.plan import DEFAULT_TOPIC, entries_of, resource_of
from proxy.admin.configs.store import ConfigsStore
from proxy.admin.messages.config_resources import LAYERS
from proxy.admin.messages.describe_configs import (
    TOPIC_CONFIG,
    ConfigEntry,
    DescribeRequest,
    DescribeResult,
    add_configs,
    local_result,
    read_describe_request,
    read_describe_response,
    write_describe_response,
)
from proxy.admin.yielder import Yielder
from proxy.quota.config_rules import ConfigRules
from proxy.quota.identity import client_key
from proxy.quota.limits.resources import STRING
from proxy.relay.close_reasons import BROKER_PROTOCOL_ERROR, RelayError
from proxy.relay.intercepted import Intercepted
from proxy.wire.errors import Malformed, ProtocolError

RESOURCES_AT_A_TIME: Final = 100
"""Resources in one request to the broker. The configs of a topic have up to 15 KB, with their documentation:
a broker would need gigabytes for the response to a request of a megabyte.
"""
MAX_REPEATED_BYTES: Final = 64 << 20
"""The most bytes of configs in a response to a request that names a resource more than once. The proxy has
them in memory several times. Configs of different resources are as many as the cluster has.
"""
LAYERS_HELP: Final = "The quotas of all topics and brokers, and whether the file or a tool has set them."


class DescribeConfigs:
    """Answers the API.

    Requests that do not parse raise Malformed, responses of the broker RelayError.
    """

    def __init__(self, store: ConfigsStore, rules: ConfigRules) -> None:
        self._store: Final = store
        self._rules: Final = rules
        self._memory: Final = ConfigsMemory()

    async def answer(self, intercepted: Intercepted, broker: Broker) -> Reply:
        """Return the response."""
        client = client_key(intercepted.exchange.client)
        memory = self._memory.begin(client)
        try:
            return Reply(
                await self._response(intercepted, broker, memory, Yielder(client)), taken=memory.free
            )
        except BaseException:
            memory.free()
            raise

    async def _response(
        self, intercepted: Intercepted, broker: Broker, memory: ResponseMemory, yielder: Yielder
    ) -> bytes:
        request = await read_describe_request(intercepted.header, intercepted.frame, yielder)
        results, throttle_time_ms = await _described_by_broker(request, broker, memory, yielder)
        names = {resource.key: resource.names for resource in request.resources}
        for place, resource in enumerate(request.resources):
            await yielder.step()
            if resource.key == DEFAULT_TOPIC:
                results.insert(place, await _default_topic(request, broker.rights))
        for result in results:
            if result.error_code == ErrorCode.none:
                wanted = names.get(result.key)
                if broker.rights.sees_configs or result.key == DEFAULT_TOPIC:
                    self._add(request, result, wanted)
                if LAYERS in (wanted or ()):
                    await self._add_layers(request, result, yielder)
            await yielder.step()
        return write_describe_response(request, results, throttle_time_ms)

    def _add(self, request: DescribeRequest, result: DescribeResult, names: frozenset[str] | None) -> None:
        """Add the quota configs to a result of the broker."""
        resource = resource_of(result.key)
        if resource is None:
            return
        keys = self._rules.keys(resource.type)
        add_configs(request, result, entries_of(resource, keys, self._store.configs, names))

    async def _add_layers(self, request: DescribeRequest, result: DescribeResult, yielder: Yielder) -> None:
        """Add LAYERS to a result for the topic `<default>`. Older versions have no room for its text."""
        if result.key == DEFAULT_TOPIC and request.flexible:
            text = await self._store.layers(self._rules, yielder)
            text_source = ((text, TOPIC_CONFIG),)
            entry = ConfigEntry(LAYERS, text, TOPIC_CONFIG, STRING, LAYERS_HELP, text_source)
            add_configs(request, result, [entry])


async def _described_by_broker(
    request: DescribeRequest, broker: Broker, memory: ResponseMemory, yielder: Yielder
) -> tuple[list[DescribeResult], int]:
    """Forward the request without the topic `<default>`, in parts; return the results, and throttle_time_ms.

    Raises Malformed if the responses have too many bytes, and describe a resource more than once.
    """
    forwarded = [resource for resource in request.resources if resource.key != DEFAULT_TOPIC]
    if request.resources and not forwarded:
        return [], 0
    results: list[DescribeResult] = []
    throttle_time_ms = 0
    repeats = len({resource.key for resource in forwarded}) < len(forwarded)
    size = 0
    for start in range(0, max(len(forwarded), 1), RESOURCES_AT_A_TIME):
        await memory.room(broker.gone)
        payload = await broker.ask(request.frame(forwarded[start : start + RESOURCES_AT_A_TIME]))
        memory.add(len(payload))
        size += len(payload)
        if repeats and size > MAX_REPEATED_BYTES:
            raise Malformed(
                f"a request describes {len(forwarded)} resources, some more than once, and the configs of "
                f"{len(results)} have {size} bytes; the proxy takes {MAX_REPEATED_BYTES} at most"
            )
        try:
            described, throttled_ms = await read_describe_response(request, payload, yielder)
        except ProtocolError as error:
            what = f"the response to DescribeConfigs v{request.version} does not parse: {error}"
            raise RelayError(BROKER_PROTOCOL_ERROR, what) from error
        results += described
        throttle_time_ms = max(throttle_time_ms, throttled_ms)
    return results, throttle_time_ms


async def _default_topic(request: DescribeRequest, rights: Rights) -> DescribeResult:
    """The result for the topic `<default>`, without configs."""
    if await rights.may_describe():
        return local_result(request, DEFAULT_TOPIC, ErrorCode.none.value, None)
    return local_result(request, DEFAULT_TOPIC, ErrorCode.topic_authorization_failed.value, MAY_NOT)
