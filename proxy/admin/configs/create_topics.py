"""TopicCreations: CreateTopics with quota configs, which the broker does not have.

The quota configs are taken out of the request and checked. The rest of the request is forwarded, through the
controller mutation quota if there is one. The configs of the topics that the broker creates are stored;
configs that an earlier topic of the same name had are removed, unless quotas.deleted_topic_configs retains
them.
"""

from collections import Counter
from dataclasses import dataclass, replace
from typing import Final

from kio.schema.errors import ErrorCode

from proxy.admin.authority import MAY_NOT, Rights
from proxy.admin.broker import Broker, Reply
from proxy.admin.configs.plan import changes_of, entries_of
from proxy.admin.configs.store import ConfigsStore
from proxy.admin.messages.create_topics import add_configs, split_configs
from proxy.admin.messages.fields import MAX_REQUEST_BYTES, frame
from proxy.admin.messages.topics import Topic, TopicsRequest, TopicsResponse, in_order
from proxy.admin.mutations.mutations import (
    ControllerMutations,
    Outcome,
    ask_topics,
    read_intercepted,
    reply_to,
)
from proxy.admin.rejected import RequestRejected
from proxy.admin.yielder import Yielder
from proxy.quota.config_rules import ConfigRules
from proxy.quota.identity import Identity, client_key
from proxy.quota.limits.resources import DEFAULT_RESOURCE, TOPIC, ConfigResource
from proxy.relay.close_reasons import BROKER_PROTOCOL_ERROR, RelayError
from proxy.relay.intercepted import Intercepted
from proxy.store.quota_store import ConfigChange
from proxy.wire.cursor import NO_ID
from proxy.wire.errors import ProtocolError

DEFAULT_TOPIC: Final = ConfigResource(TOPIC, DEFAULT_RESOURCE)


@dataclass(slots=True)
class _SplitRequest:
    """A request, split into the broker's part and the proxy's."""

    whole: TopicsRequest
    forwarded: list[Topic]
    """The topics for the broker, without quota configs."""
    configs: dict[str, dict[str, str]]
    """Quota configs by the topic's name."""
    rejected: list[Topic]
    """The rejected topics, as the response has them."""
    edited: bool = False
    """Whether `forwarded` differs from the topics of the request."""

    def reject(self, topic: Topic, code: ErrorCode, message: str) -> None:
        """Reject a topic of the request."""
        self.edited = True
        self.rejected.append(self.whole.reject(topic, code, message))

    @property
    def for_broker(self) -> TopicsRequest:
        """The request to forward: the client's own bytes if nothing was taken out of it."""
        return self.whole.with_topics(self.forwarded) if self.edited else self.whole


class TopicCreations:
    """Answers CreateTopics."""

    def __init__(self, store: ConfigsStore, rules: ConfigRules, mutations: ControllerMutations) -> None:
        self._store: Final = store
        self._keys: Final = rules.keys(TOPIC)
        self._forwarded: Final = rules.forwarded
        """The quota configs that stay in the request, because brokers enforce them, too."""
        self._mutations: Final = mutations

    async def answer(self, intercepted: Intercepted, broker: Broker) -> Reply:
        """Answer a request.

        Raises ProtocolError if the request does not parse, RelayError if the broker's response does not.
        """
        if len(intercepted.frame) > MAX_REQUEST_BYTES and not self._mutations.active:
            # It is too large to be read. If it has quota configs, the broker rejects them as unknown.
            return Reply(frame([await broker.ask(frame([intercepted.frame]))]))
        yielder = Yielder(client_key(intercepted.exchange.client))
        request = await read_intercepted(intercepted, yielder)
        split = await self._split(request, broker.rights, yielder)
        if split.rejected and not split.forwarded:
            return reply_to(request, Outcome(TopicsResponse(split.rejected)))
        who = intercepted.exchange.client
        outcome = await self._forward(split, who, broker, yielder)
        response = outcome.response
        try:
            topics = await self._store_created(split, response, broker, who, yielder)
        except ProtocolError as error:
            what = f"the response to CreateTopics v{request.version} does not parse: {error}"
            raise RelayError(BROKER_PROTOCOL_ERROR, what) from error
        if split.rejected:
            topics = await in_order(request.topics, topics + split.rejected, yielder)
        reply = reply_to(request, replace(outcome, response=replace(response, topics=topics)))
        await yielder.free(topics, response.topics, split.forwarded, request.topics)
        return reply

    async def _split(self, request: TopicsRequest, rights: Rights, yielder: Yielder) -> _SplitRequest:
        """Take the quota configs out of a request, and reject topics whose configs are not valid."""
        split = _SplitRequest(request, [], {}, [])
        times: Counter[str | None] = Counter()
        async for topics in yielder.slices(request.topics):
            times.update([topic.fields.name for topic in topics])
        allowed: bool | None = None
        for topic in request.topics:
            await yielder.step()
            configs, rest = await split_configs(
                request, topic, self._keys.__contains__, yielder, self._forwarded
            )
            name = topic.fields.name or ""
            # The broker rejects a topic that is in the request twice.
            if configs and times[topic.fields.name] == 1:
                # The right to create a topic is not sufficient: its limit would be the creator's choice.
                allowed = await rights.may_alter() if allowed is None else allowed
                try:
                    if not allowed:
                        raise RequestRejected(ErrorCode.cluster_authorization_failed, MAY_NOT)
                    values = changes_of(configs, self._keys, {}, False)
                    self._store.check_open()
                    split.configs[name] = {key: value for key, value in values.items() if value is not None}
                except RequestRejected as rejected:
                    split.reject(topic, rejected.code, str(rejected))
                    continue
            split.edited = split.edited or rest is not topic
            split.forwarded.append(rest)
        await self._reject_conflicts(split, yielder)
        return split

    async def _reject_conflicts(self, split: _SplitRequest, yielder: Yielder) -> None:
        """Reject the topics whose configs conflict with the stored ones, or with those of topics before
        them.
        """
        changes: list[ConfigChange] = []
        for name, values in split.configs.items():
            await yielder.step()
            changes.append(self._change(name, values))
        if not changes:
            return
        conflicts = {
            change.entity.name: conflict
            for change, conflict in zip(changes, await self._store.conflicts(changes, yielder), strict=True)
            if conflict
        }
        if not conflicts:
            return
        topics, split.forwarded = split.forwarded, []
        for topic in topics:
            await yielder.step()
            conflict = conflicts.get(topic.fields.name or "")
            if conflict is None:
                split.forwarded.append(topic)
            else:
                del split.configs[topic.fields.name or ""]
                split.reject(topic, ErrorCode.invalid_config, conflict)

    def _change(self, name: str, values: dict[str, str], topic_id: bytes = NO_ID) -> ConfigChange:
        known_id = None if topic_id == NO_ID else topic_id.hex()
        anew = not self._store.retains_deleted
        return ConfigChange(ConfigResource(TOPIC, name), values, topic_id=known_id, anew=anew)

    async def _forward(
        self, split: _SplitRequest, who: Identity, broker: Broker, yielder: Yielder
    ) -> Outcome:
        request = split.for_broker
        if self._mutations.active:
            return await self._mutations.forward(request, who, broker, yielder)
        return Outcome(await ask_topics(request, request.topics, broker.ask, yielder))

    async def _store_created(
        self, split: _SplitRequest, response: TopicsResponse, broker: Broker, who: Identity, yielder: Yielder
    ) -> list[Topic]:
        """Store the configs of the created topics; return the response's topics with these configs."""
        created: list[Topic] = []
        async for some in yielder.slices(response.topics):
            created += [topic for topic in some if topic.fields.error_code == ErrorCode.none]
        failures = (
            {}
            if split.whole.validate_only
            else await self._store_configs(split, created, broker, who, yielder)
        )
        topics: list[Topic] = []
        for topic in response.topics:
            await yielder.step()
            name = topic.fields.name or ""
            if topic.fields.error_code != ErrorCode.none:
                topics.append(topic)
            elif name in failures:
                failure = failures[name]
                message = f"The topic was created, but its quotas were not set: {failure}"
                topics.append(split.whole.reject(topic, failure.code, message))
            else:
                topics.append(await self._add_configs(split, topic, name, yielder))
        return topics

    async def _store_configs(
        self, split: _SplitRequest, created: list[Topic], broker: Broker, who: Identity, yielder: Yielder
    ) -> dict[str, RequestRejected]:
        """Store the configs of created topics; return the failures by name."""
        changes = []
        for topic in created:
            await yielder.step()
            name = topic.fields.name or ""
            stale = not self._store.retains_deleted and self._store.has_set(ConfigResource(TOPIC, name))
            if name in split.configs or stale:
                changes.append(self._change(name, split.configs.get(name, {}), topic.fields.topic_id))
        if not changes:
            return {}
        failures = await self._store.alter(changes, broker, who)
        return {
            change.entity.name: failure
            for change, failure in zip(changes, failures, strict=True)
            if failure is not None and change.values
        }

    async def _add_configs(self, split: _SplitRequest, topic: Topic, name: str, yielder: Yielder) -> Topic:
        resource = ConfigResource(TOPIC, name)
        configs = self._store.configs
        if split.whole.validate_only:
            retained = configs.get(resource, {}) if self._store.retains_deleted else {}
            configs = {
                resource: {**retained, **split.configs.get(name, {})},
                DEFAULT_TOPIC: configs.get(DEFAULT_TOPIC, {}),
            }
        entries = entries_of(resource, self._keys, configs, None)
        return await add_configs(split.whole, topic, entries, yielder)
