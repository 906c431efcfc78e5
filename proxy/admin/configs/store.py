"""ConfigsStore: the quota store, with errors and topic ids as the APIs about configs and topics need them."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from kio.schema.errors import ErrorCode

from proxy.admin.broker import Broker
from proxy.admin.rejected import RequestRejected
from proxy.admin.yielder import Yielder
from proxy.errors import UpstreamUnavailable
from proxy.quota.config_rules import ConfigRules
from proxy.quota.identity import Identity
from proxy.quota.limits.resources import BROKER, DEFAULT_RESOURCE, TOPIC, ConfigResource
from proxy.store.layer_report import ConfigReport, add_resource, encode_report
from proxy.store.quota_store import ConfigChange, Conflict, QuotaStore, StoreOff, StoreUnavailable
from proxy.wire.cursor import NO_ID

log = logging.getLogger(__name__)


class ConfigsStore:
    """Stores the changes of topics with the topics' ids."""

    def __init__(self, store: QuotaStore) -> None:
        self._store: Final = store

    @property
    def configs(self) -> Mapping[ConfigResource, Mapping[str, str]]:
        """The configs in force. The mapping changes during an await."""
        return self._store.configs

    @property
    def off(self) -> str:
        """Why configs cannot be changed in this configuration; empty if they can."""
        return self._store.off

    @property
    def retains_deleted(self) -> bool:
        """Whether the configs of a deleted topic apply to the next topic of its name."""
        return self._store.retains_deleted

    def has_set(self, resource: ConfigResource) -> bool:
        """Whether a tool has set or removed any config of a topic or a broker."""
        return self._store.has_set(resource)

    async def layers(self, rules: ConfigRules, yielder: Yielder) -> str:
        """Return the configs of all topics and brokers in all layers, as JSON (proxy.store.layer_report)."""
        layers, now_ms = self._store.config_layers, self._store.now_ms()
        report = ConfigReport(
            names={type: sorted(rules.keys(type)) for type in (TOPIC, BROKER)}, topics={}, brokers={}
        )
        resources = dict.fromkeys([*layers.file.entities(), *layers.tools.entities()])
        for resource in resources:
            add_resource(report, resource, layers, now_ms)
            await yielder.step()
        return encode_report(report)

    def check_open(self) -> None:
        """Raise RequestRejected if it is known that nothing can be stored now."""
        try:
            self._store.check_open()
        except (StoreUnavailable, StoreOff) as error:
            raise _rejection(error) from error

    async def conflicts(self, changes: Sequence[ConfigChange], yielder: Yielder) -> list[str]:
        """Return for each change why it conflicts with the stored configs, or with changes before it that do
        not; empty if it does not.

        Changes that conflict with nothing together are accepted together; otherwise each half is checked.
        """
        found = [""] * len(changes)
        conflicts = self._store.conflicts()
        unchecked = [(0, len(changes))] if changes else []
        while unchecked:
            start, stop = unchecked.pop()
            accepted = conflicts.made
            for place in range(start, stop):
                await yielder.step()
                conflicts.change([changes[place]])
            conflict = conflicts.conflict()
            if not conflict:
                continue
            while conflicts.made > accepted:
                await yielder.step()
                conflicts.undo(1)
            if stop - start == 1:
                found[start] = conflict
            else:
                middle = (start + stop) // 2
                unchecked += [(middle, stop), (start, middle)]
        return found

    async def alter(
        self, changes: Sequence[ConfigChange], broker: Broker, who: Identity
    ) -> list[RequestRejected | None]:
        """Store the changes; return the failure of each, or None."""
        changes = await self._with_topic_ids(changes, broker)
        try:
            await self._store.alter_configs(changes, who)
            return [None] * len(changes)
        except Conflict:
            # A concurrent change conflicts with one of them. That is rare, so they are stored one by one.
            return [await self._alter_one(change, who) for change in changes]
        except (StoreUnavailable, StoreOff) as error:
            return [_rejection(error)] * len(changes)

    async def _alter_one(self, change: ConfigChange, who: Identity) -> RequestRejected | None:
        try:
            await self._store.alter_configs([change], who)
        except (Conflict, StoreUnavailable, StoreOff) as error:
            return _rejection(error)
        return None

    async def _with_topic_ids(self, changes: Sequence[ConfigChange], broker: Broker) -> list[ConfigChange]:
        """Add the ids that the broker knows to changes of topics."""
        names = [
            change.entity.name
            for change in changes
            if change.entity.type == TOPIC
            and change.entity.name != DEFAULT_RESOURCE
            and change.topic_id is None
        ]
        if not names:
            return list(changes)
        try:
            found = await broker.counts.topics(broker.node_id, names)
        except UpstreamUnavailable as error:
            log.warning("storing topic configs without topic ids, metadata request failed: %s", error)
            return list(changes)
        return [
            replace(change, topic_id=found[change.entity.name].topic_id.hex())
            if change.entity.type == TOPIC
            and change.topic_id is None
            and change.entity.name in found
            and found[change.entity.name].topic_id != NO_ID
            else change
            for change in changes
        ]


def _rejection(error: Conflict | StoreUnavailable | StoreOff) -> RequestRejected:
    if isinstance(error, StoreUnavailable):
        # A retriable error: the change may have been made nevertheless.
        return RequestRejected(ErrorCode.request_timed_out, str(error))
    code = ErrorCode.invalid_config if isinstance(error, Conflict) else ErrorCode.policy_violation
    return RequestRejected(code, str(error))
