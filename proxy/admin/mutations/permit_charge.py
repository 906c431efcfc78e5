"""What one request is charged: each topic before the broker is asked, and set right by what it answers."""

from collections.abc import Mapping
from typing import Final

from kio.schema.errors import ErrorCode

from proxy.admin.messages.topics import NO_COUNT, Fields, Request, Topic, TopicKey
from proxy.admin.mutations.permits import NOTHING, Permits
from proxy.quota.identity import Identity
from proxy.quota.kinds.controller_mutation import ControllerMutation
from proxy.quota.measure.bucket import Bucket

NONE: Final = int(ErrorCode.none)
UNCERTAIN: Final = int(ErrorCode.request_timed_out)
"""The controller may have done it, or may yet do it: it stays charged."""


class PermitCharge:
    """Of a client that has a quota."""

    def __init__(
        self,
        quota: ControllerMutation,
        bucket: Bucket,
        request: Request,
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
        """Charge a topic; False: it is rejected, and nothing is charged."""
        permits = self._costs.get(topic.key, NOTHING).before
        if permits == 0:
            return True
        if not self._strict:
            self._quota.charge_permissive(self._bucket, permits, now, self._who, self._api_key)
        elif not self._quota.charge_strict(self._bucket, permits, now, self._who, self._api_key):
            return False
        self._charged[topic.key] = permits
        self.total += permits
        return True

    def settle(self, key: TopicKey, answered: Fields, now: float) -> bool:
        """Set right what a topic was charged, by the broker's answer; whether tokens are given back."""
        charged = self._charged.pop(key, 0)
        if answered.error_code == UNCERTAIN:
            return False
        due = 0
        if answered.error_code == NONE:
            told = answered.partitions != NO_COUNT
            due = answered.partitions if told else self._costs.get(key, NOTHING).after
        self.total += due - charged
        if due < charged:
            self._quota.give_back(self._bucket, charged - due, now)
        elif due > charged:
            self._quota.charge_permissive(self._bucket, due - charged, now, self._who, self._api_key)
        return due < charged
