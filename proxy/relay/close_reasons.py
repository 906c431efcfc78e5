"""Why a connection ends. The values are the label `reason` of connections_closed_total."""

from typing import Final

CLIENT_CLOSED: Final = "client_closed"
BROKER_CLOSED: Final = "broker_closed"
CLIENT_PROTOCOL_ERROR: Final = "client_protocol_error"
BROKER_PROTOCOL_ERROR: Final = "broker_protocol_error"
BROKER_UNAVAILABLE: Final = "broker_unavailable"
NOT_A_BROKER: Final = "not_a_broker"
NO_PRINCIPAL: Final = "no_principal"
"""A client's certificate or login gives no name."""
HANDSHAKE_TIMEOUT: Final = "handshake_timeout"
PRODUCE_REJECTED: Final = "produce_refused"
"""The proxy dropped records of a producer with acks=0, or a large request writes to a topic of the proxy. A
broker closes the connection, too.
"""
UNKNOWN_TOPIC: Final = "unknown_topic"
"""A Produce request, large or with acks=0, has a topic id that the cluster does not have."""
IDLE: Final = "idle"
SLOW_REQUEST: Final = "slow_request"
"""A request reserves memory for which others wait, and does not arrive in time."""
TOO_MANY_CONNECTIONS: Final = "too_many_connections"
CONNECTION_RATE: Final = "connection_rate"
"""The client's address is over its connection_creation_rate."""
DRAINED: Final = "drained"
DRAIN_TIMEOUT: Final = "drain_timeout"


class RelayError(Exception):
    """The connection has to end; `reason` names the guilty side, the text says why."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason: Final = reason


class BrokerUnreachable(RelayError):
    """The broker cannot be reached. The connection goes on if the proxy can respond itself."""

    def __init__(self, text: str) -> None:
        super().__init__(BROKER_UNAVAILABLE, text)
