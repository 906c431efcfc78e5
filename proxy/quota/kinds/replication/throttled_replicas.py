"""ThrottledReplicas: which replicas are throttled on the leader's or on the follower's side (KIP-73)."""

from typing import Final, final

from proxy.quota.limits.config_keys import (
    ALL_REPLICAS,
    FOLLOWER_THROTTLED,
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_THROTTLED,
    LEADER_THROTTLED_REPLICAS,
)
from proxy.quota.limits.resources import BROKER, DEFAULT_RESOURCE, TOPIC, TRUE, Resources, split_list

METADATA_TOPIC: Final = "__cluster_metadata"
"""The log of KRaft's controllers, which is never throttled."""


@final
class ThrottledReplicas:
    """The lists of topics and the switches of brokers of one side.

    An entry `partition:broker` throttles the partition where that broker is on this side. A broker whose
    switch is on (KAFKA-7983) throttles all replicas, whatever the lists say.
    """

    def __init__(self, resources: Resources, leader: bool) -> None:
        replicas = LEADER_THROTTLED_REPLICAS if leader else FOLLOWER_THROTTLED_REPLICAS
        switch = LEADER_THROTTLED if leader else FOLLOWER_THROTTLED
        self._switches: Final = resources.configured(BROKER, switch.name)
        self._every_broker: Final = self._switches.get(DEFAULT_RESOURCE) == TRUE
        self._listed: Final[dict[str, set[tuple[int, int]]]] = {}
        self._whole: Final[set[str]] = set()
        """Topics whose list is `*`."""
        for topic, text in resources.configured(TOPIC, replicas.name).items():
            self._listed[topic] = _pairs(text)
            if text == ALL_REPLICAS:
                self._whole.add(topic)
        self.any: Final = (
            TRUE in self._switches.values()
            or len(self._whole) > 0
            or any(len(pairs) > 0 for pairs in self._listed.values())
        )
        """Whether any replica may be throttled."""

    def cover(self, topic: str, partition: int, broker: int) -> bool:
        """Whether a replica is throttled with this broker on this side."""
        if topic == METADATA_TOPIC:
            return False
        if self._switches and self._switched(broker):
            return True
        if not self._listed:
            return False
        name = topic if topic in self._listed else DEFAULT_RESOURCE
        pairs = self._listed.get(name)
        return pairs is not None and (name in self._whole or (partition, broker) in pairs)

    def _switched(self, broker: int) -> bool:
        own = self._switches.get(str(broker))
        return self._every_broker if own is None else own == TRUE


def _pairs(text: str) -> set[tuple[int, int]]:
    """The elements of a list as (partition, broker)."""
    pairs: set[tuple[int, int]] = set()
    if text != ALL_REPLICAS:
        for element in split_list(text):
            partition, _, broker = element.partition(":")
            if broker:
                pairs.add((int(partition), int(broker)))
    return pairs
