"""Relays for tests of what moves their bytes."""

from proxy.quota.engine import QuotaEngine
from proxy.relay.counters.traffic import Traffic
from proxy.relay.inflight import InFlightRoom
from proxy.relay.relay import Relay
from proxy.relay.settings import RelaySettings
from tests.support.messages.kio_messages import Ports


def unlimited_relay(
    address: str,
    *intercepted_api_keys: int,
    traffic: Traffic | None = None,
    room: InFlightRoom | None = None,
) -> Relay:
    """A relay without quotas, for a client from this address."""
    return Relay(
        QuotaEngine([]),
        Ports(),
        Traffic() if traffic is None else traffic,
        RelaySettings(
            max_frame_bytes=1 << 20,
            intercepted_api_keys=frozenset(intercepted_api_keys),
            in_flight_room=room,
        ),
        principal="user",
        client_address=address,
    )
