"""Relays: the quota engine and the relay that each connection of a listener gets."""

import secrets
from typing import Final, Protocol

from proxy.quota.engines import QuotaEngines
from proxy.quota.networks import one_spelling
from proxy.quota.verdict import ALLOW, Verdict
from proxy.relay.large_frames import LargeFrames
from proxy.relay.login.authentication import Login
from proxy.relay.relay import Relay
from proxy.relay.traffic import Traffic
from proxy.wire.addresses import Addresses, Unchanged
from proxy.wire.protected_topics import ProtectedTopics
from proxy.wire.registry import ApiTable
from proxy.wire.topic_names import TopicNames


class Relays(Protocol):
    """Makes the relays of one listener."""

    def connect(self, node_id: int, address: str, now: float) -> Verdict:
        """Charge a new connection from this address: whether and when it is served."""

    def give_back(self, node_id: int, address: str, now: float) -> None:
        """Take back the charge of a connection that has ended before it was served."""

    def relay(self, node_id: int, principal: str, address: str, now: float) -> Relay:
        """Make the relay of a connection to this broker."""


class ClientRelays:
    """Relays for clients: under client quotas, with the brokers' addresses replaced by the proxy's."""

    def __init__(
        self,
        *,
        engines: QuotaEngines,
        addresses: Addresses,
        traffic: Traffic,
        max_frame_bytes: int,
        apis: ApiTable,
        intercepted_api_keys: frozenset[int],
        topic_names: TopicNames,
        login: Login | None,
        protected: ProtectedTopics,
        large_frames: LargeFrames,
    ) -> None:
        self._engines: Final = engines
        self._large_frames: Final = large_frames
        self._protected: Final = protected
        self._addresses: Final = addresses
        self._traffic: Final = traffic
        self._max_frame_bytes: Final = max_frame_bytes
        self._apis: Final = apis
        self._intercepted_api_keys: Final = intercepted_api_keys
        self._topic_names: Final = topic_names
        self._login: Final = login

    def connect(self, node_id: int, address: str, now: float) -> Verdict:
        return self._engines.engine(node_id, now).connect(one_spelling(address), now)

    def give_back(self, node_id: int, address: str, now: float) -> None:
        self._engines.engine(node_id, now).give_back_connection(one_spelling(address), now)

    def relay(self, node_id: int, principal: str, address: str, now: float) -> Relay:
        return Relay(
            self._engines.engine(node_id, now),
            self._addresses,
            self._traffic,
            principal=principal,
            client_address=address,
            max_frame_bytes=self._max_frame_bytes,
            intercepted_api_keys=self._intercepted_api_keys,
            topic_names=self._topic_names,
            node_id=node_id,
            login=self._login,
            apis=self._apis,
            protected=self._protected,
            session_mask=secrets.randbits(31),
            large_frames=self._large_frames,
        )


class ReplicationRelays:
    """Relays between brokers: under replication quotas only, with every address left as it is."""

    def __init__(
        self,
        *,
        engines: QuotaEngines,
        traffic: Traffic,
        max_frame_bytes: int,
        topic_names: TopicNames,
        login: Login | None,
    ) -> None:
        self._engines: Final = engines
        self._traffic: Final = traffic
        self._max_frame_bytes: Final = max_frame_bytes
        self._topic_names: Final = topic_names
        self._login: Final = login

    def connect(self, node_id: int, address: str, now: float) -> Verdict:
        return ALLOW

    def give_back(self, node_id: int, address: str, now: float) -> None:
        pass

    def relay(self, node_id: int, principal: str, address: str, now: float) -> Relay:
        return Relay(
            self._engines.between_brokers(node_id, now),
            Unchanged(),
            self._traffic,
            principal=principal,
            client_address=address,
            max_frame_bytes=self._max_frame_bytes,
            topic_names=self._topic_names,
            between_brokers=True,
            node_id=node_id,
            login=self._login,
        )
