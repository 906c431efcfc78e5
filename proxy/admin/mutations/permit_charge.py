"""PermitCharge: the permits of one request, charged before it is forwarded and settled by its response."""

from collections.abc import Mapping
from typing import Final

from kio.schema.errors import ErrorCode

from proxy.admin.messages.topics import NO_COUNT, Topic, TopicFields, TopicsRequest
from proxy.admin.mutations.permits import NO_PERMITS, Permits
from proxy.quota.identity import Identity
from proxy.quota.kinds.controller_mutation import ControllerMutation
from proxy.quota.measure.bucket import Bucket
from proxy.upstream.partitions import TopicKey

NONE: Final = int(ErrorCode.none)
UNCERTAIN: Final = int(ErrorCode.request_timed_out)
"""The controller may have executed the request, or may still do so: the topic stays charged."""


class PermitCharge:
    """The charge of a client with a quota."""

    def __init__(
        self,
        quota: ControllerMutation,
        bucket: Bucket,
        request: TopicsRequest,
        costs: Mapping[TopicKey, Permits],
        who: Identity,
    ) -> None:
        self._who: Final = who
        self._api_key: Final = request.api.versions.key
        self._quota: Final = quota
        self._bucket: Final = bucket
        self._strict: Final = request.strict
        self._costs: Final = costs
        self._charged: Final[dict[TopicKey, int]] = {}
        self.total = 0
        """Permits charged, less those given back."""

    def admit(self, topic: Topic, now: float) -> bool:
        """Charge a topic; return False if it is rejected, which charges nothing."""
        permits = self._costs.get(topic.key, NO_PERMITS).before
        if permits == 0:
            return True
        if not self._strict:
            self._quota.charge_permissive(self._bucket, permits, now, self._who, self._api_key)
        elif not self._quota.charge_strict(self._bucket, permits, now, self._who, self._api_key):
            return False
        self._charged[topic.key] = permits
        self.total += permits
        return True

    def cancel(self, now: float) -> None:
        """Give back what is charged for topics that have not been forwarded."""
        charged = sum(self._charged.values())
        self._charged.clear()
        self.total -= charged
        if charged:
            self._quota.give_back(self._bucket, charged, now)

    def settle(self, key: TopicKey, done: TopicFields, now: float) -> bool:
        """Correct a topic's charge by the broker's response; return whether tokens are given back."""
        charged = self._charged.pop(key, 0)
        if done.error_code == UNCERTAIN:
            return False
        due = 0
        if done.error_code == NONE:
            counted = done.partitions != NO_COUNT
            due = done.partitions if counted else self._costs.get(key, NO_PERMITS).after
        self.total += due - charged
        if due < charged:
            self._quota.give_back(self._bucket, charged - due, now)
        elif due > charged:
            self._quota.charge_permissive(self._bucket, due - charged, now, self._who, self._api_key)
        return due < charged
