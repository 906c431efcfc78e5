"""CreateTopics with configs of ours: the broker makes the topic, and the proxy keeps its quotas.

Ours are taken out of the request and checked; what is left goes the way of every CreateTopics, through a
controller mutation quota where there is one. They are stored for the topics that were made. A topic that had
such a name before has left nothing.
"""

from collections import Counter
from dataclasses import dataclass, replace
from typing import Final

from kio.schema.errors import ErrorCode

from proxy.admin.authority import MAY_NOT, Rights
from proxy.admin.configs.plan import changes_of, entries_of
from proxy.admin.configs.store import ConfigsStore
from proxy.admin.messages.create_topics_configs import rejection, split, with_entries
from proxy.admin.messages.fields import frame
from proxy.admin.messages.topic_apis import APIS
from proxy.admin.messages.topics import (
    Answer,
    Request,
    Topic,
    Yielder,
    read_answer,
    read_request,
    write_answer,
)
from proxy.admin.mutations.mutations import MAX_REQUEST_BYTES, Broker, ControllerMutations, Reply, check
from proxy.admin.rejected import RequestRejected
from proxy.quota.config_rules import ConfigRules
from proxy.quota.identity import Identity
from proxy.quota.limits.resources import DEFAULT_RESOURCE, TOPIC, ConfigResource
from proxy.relay.close_reasons import BROKER_PROTOCOL_ERROR, RelayError
from proxy.relay.intercepted import Intercepted
from proxy.store.quota_store import ConfigChange
from proxy.wire.edit import LENGTH_SIZE
from proxy.wire.errors import ProtocolError
from proxy.wire.views import NO_ID

DEFAULT_TOPIC: Final = ConfigResource(TOPIC, DEFAULT_RESOURCE)


@dataclass(frozen=True, slots=True)
class _Split:
    """A request, and what is ours of it."""

    asked: Request
    passed: list[Topic]
    """What the broker is asked for."""
    values: dict[str, dict[str, str]]
    """By the topic's name, ours."""
    rejected: list[Topic]


class TopicCreations:
    """Answers CreateTopics."""

    def __init__(self, store: ConfigsStore, rules: ConfigRules, mutations: ControllerMutations) -> None:
        self._store: Final = store
        self._keys: Final = rules.keys(TOPIC)
        self._kept_back: Final = self._keys.keys() - rules.passed_on
        """Those that no broker hears of."""
        self._mutations: Final = mutations

    async def answer(self, intercepted: Intercepted, broker: Broker) -> Reply:
        """The answer. Raises ProtocolError where the request is none, RelayError where the broker's answer is
        none.
        """
        if len(intercepted.frame) > MAX_REQUEST_BYTES and not self._mutations.active:
            # It is not taken apart: with configs of ours, the broker rejects it.
            return Reply(frame([await broker.ask(frame([intercepted.frame]))]))
        yielder = Yielder()
        header = intercepted.header
        check(header, len(intercepted.frame))
        request = await read_request(APIS[header.api_key], header, intercepted.frame, yielder)
        case = await self._split(request, broker.rights, yielder)
        reply = await self._through(intercepted, case, broker)
        if reply is None:
            return Reply(write_answer(request, case.rejected, 0))
        try:
            answer = await read_answer(request, reply.frame[LENGTH_SIZE:], yielder)
            who = intercepted.exchange.client
            topics = [*await self._made(case, answer, broker, who, yielder), *case.rejected]
        except ProtocolError as error:
            raise RelayError(BROKER_PROTOCOL_ERROR, f"the answer to CreateTopics: {error}") from error
        if case.rejected:
            places = {topic.fields.name: place for place, topic in enumerate(request.topics)}
            topics.sort(key=lambda topic: places.get(topic.fields.name, len(places)))
        return replace(reply, frame=write_answer(request, topics, answer.throttle_time_ms))

    async def _split(self, request: Request, rights: Rights, yielder: Yielder) -> _Split:
        case = _Split(request, [], {}, [])
        times = Counter(topic.fields.name for topic in request.topics)
        may: bool | None = None
        for topic in request.topics:
            ours, rest = await split(request, topic, self._keys.__contains__, yielder)
            if len(self._kept_back) < len(self._keys):
                rest = (await split(request, topic, self._kept_back.__contains__, yielder))[1]
            name = topic.fields.name or ""
            # Brokers reject a topic that is there twice.
            if ours and times[topic.fields.name] == 1:
                may = await rights.may_as_judged() if may is None else may
                try:
                    if not may:
                        raise RequestRejected(ErrorCode.topic_authorization_failed, MAY_NOT)
                    values = changes_of(ours, self._keys, {}, False)
                    self._store.check_open()
                    case.values[name] = {key: value for key, value in values.items() if value is not None}
                except RequestRejected as rejected:
                    case.rejected.append(rejection(request, name, rejected.code, str(rejected)))
                    continue
            case.passed.append(rest)
        self._reject_conflicts(case)
        return case

    def _reject_conflicts(self, case: _Split) -> None:
        """Reject the topics whose configs cannot be together with what is there and those before them."""
        changes = [self._change(name, values) for name, values in case.values.items()]
        if not changes or not self._store.conflict(changes):
            return
        made: list[ConfigChange] = []
        for change in changes:
            problem = self._store.conflict([*made, change])
            if not problem:
                made.append(change)
                continue
            name = change.entity.name
            del case.values[name]
            case.passed[:] = [topic for topic in case.passed if topic.fields.name != name]
            case.rejected.append(rejection(case.asked, name, ErrorCode.invalid_config, problem))

    def _change(self, name: str, values: dict[str, str], topic_id: bytes = NO_ID) -> ConfigChange:
        shown = None if topic_id == NO_ID else topic_id.hex()
        return ConfigChange(ConfigResource(TOPIC, name), values, topic_id=shown, anew=True)

    async def _through(self, intercepted: Intercepted, case: _Split, broker: Broker) -> Reply | None:
        """The answer to what the broker is asked for; None where that is nothing."""
        if not case.passed and case.rejected:
            return None
        whole = intercepted.frame
        if (
            case.values
            or case.rejected
            or any(one is not other for one, other in zip(case.passed, case.asked.topics, strict=False))
        ):
            whole = case.asked.with_topics(case.passed)
        if self._mutations.active:
            passed = Intercepted(intercepted.exchange, intercepted.header, whole)
            return await self._mutations.answer(passed, broker)
        return Reply(frame([await broker.ask(frame([whole]))]))

    async def _made(
        self, case: _Split, answer: Answer, broker: Broker, who: Identity, yielder: Yielder
    ) -> list[Topic]:
        """The topics of the answer, with their configs, when those are stored."""
        made = [topic for topic in answer.topics if topic.fields.error_code == ErrorCode.none]
        failures = {} if case.asked.validate_only else await self._keep(case, made, broker, who)
        topics: list[Topic] = []
        for topic in answer.topics:
            name = topic.fields.name or ""
            if topic.fields.error_code != ErrorCode.none:
                topics.append(topic)
            elif name in failures:
                failure = failures[name]
                message = f"The topic is created, but its quotas are not set: {failure}"
                topics.append(rejection(case.asked, name, failure.code, message))
            else:
                topics.append(await self._shown(case, topic, name, yielder))
        return topics

    async def _keep(
        self, case: _Split, made: list[Topic], broker: Broker, who: Identity
    ) -> dict[str, RequestRejected]:
        """Store the configs of topics that were made; by name, why that could not be."""
        changes = []
        for topic in made:
            name = topic.fields.name or ""
            if name in case.values or self._store.has_set(ConfigResource(TOPIC, name)):
                changes.append(self._change(name, case.values.get(name, {}), topic.fields.topic_id))
        if not changes:
            return {}
        failures = await self._store.alter(changes, broker, who)
        return {
            change.entity.name: failure
            for change, failure in zip(changes, failures, strict=True)
            if failure is not None and change.values
        }

    async def _shown(self, case: _Split, topic: Topic, name: str, yielder: Yielder) -> Topic:
        resource = ConfigResource(TOPIC, name)
        configs = self._store.configs
        if case.asked.validate_only:
            configs = {
                resource: case.values.get(name, {}),
                DEFAULT_TOPIC: configs.get(DEFAULT_TOPIC, {}),
            }
        return await with_entries(case.asked, topic, entries_of(resource, self._keys, configs, None), yielder)
