"""Relays: the quota engine and the relay that each connection of a listener gets."""

import secrets
from typing import Final, Protocol

from proxy.quota.engines import QuotaEngines
from proxy.quota.networks import one_spelling
from proxy.quota.verdict import ALLOW, Verdict
from proxy.relay.counters.traffic import Traffic
from proxy.relay.relay import Relay
from proxy.relay.settings import RelaySettings
from proxy.wire.addresses import Addresses, Unchanged


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
        settings: RelaySettings,
    ) -> None:
        self._engines: Final = engines
        self._addresses: Final = addresses
        self._traffic: Final = traffic
        self._settings: Final = settings

    def connect(self, node_id: int, address: str, now: float) -> Verdict:
        return self._engines.engine(node_id, now).connect(one_spelling(address), now)

    def give_back(self, node_id: int, address: str, now: float) -> None:
        self._engines.engine(node_id, now).give_back_connection(one_spelling(address), now)

    def relay(self, node_id: int, principal: str, address: str, now: float) -> Relay:
        return Relay(
            self._engines.engine(node_id, now),
            self._addresses,
            self._traffic,
            self._settings,
            principal=principal,
            client_address=address,
            node_id=node_id,
            session_mask=secrets.randbits(31),
        )


class ReplicationRelays:
    """Relays between brokers: under replication quotas only, with every address left as it is."""

    def __init__(
        self,
        *,
        engines: QuotaEngines,
        traffic: Traffic,
        settings: RelaySettings,
    ) -> None:
        self._engines: Final = engines
        self._traffic: Final = traffic
        self._settings: Final = settings

    def connect(self, node_id: int, address: str, now: float) -> Verdict:
        return ALLOW

    def give_back(self, node_id: int, address: str, now: float) -> None:
        pass

    def relay(self, node_id: int, principal: str, address: str, now: float) -> Relay:
        return Relay(
            self._engines.between_brokers(node_id, now),
            Unchanged(),
            self._traffic,
            self._settings,
            principal=principal,
            client_address=address,
            node_id=node_id,
        )
