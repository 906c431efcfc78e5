"""Reasons for closing a connection: the values of the label `reason` of connections_closed_total."""

from typing import Final

CLIENT_CLOSED: Final = "client_closed"
BROKER_CLOSED: Final = "broker_closed"
CLIENT_PROTOCOL_ERROR: Final = "client_protocol_error"
BROKER_PROTOCOL_ERROR: Final = "broker_protocol_error"
BROKER_UNAVAILABLE: Final = "broker_unavailable"
NOT_A_BROKER: Final = "not_a_broker"
NO_PRINCIPAL: Final = "no_principal"
"""A client's certificate or login has no name."""
HANDSHAKE_TIMEOUT: Final = "handshake_timeout"
PRODUCE_REJECTED: Final = "produce_refused"
"""The proxy has dropped records of a producer with acks=0, or a large request writes to a topic of the proxy.
A broker closes the connection in the same way.
"""
UNKNOWN_TOPIC: Final = "unknown_topic"
"""A Produce request that is large or has acks=0 has a topic id that the cluster does not have."""
IDLE: Final = "idle"
SLOW_REQUEST: Final = "slow_request"
"""A request has reserved memory for which others wait, and has not arrived in time."""
TOO_MANY_CONNECTIONS: Final = "too_many_connections"
CONNECTION_RATE: Final = "connection_rate"
"""The client's address is over its connection_creation_rate."""
PROXY_HEADER: Final = "proxy_header"
"""A load balancer has sent no PROXY header, or a malformed one."""
UNTRUSTED_SENDER: Final = "untrusted_sender"
"""A listener that serves load balancers only has rejected another host."""
DRAINED: Final = "drained"
DRAIN_TIMEOUT: Final = "drain_timeout"


class RelayError(Exception):
    """The connection must end. `reason` is one of the reasons above; the text describes the fault."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason: Final = reason


class BrokerUnreachable(RelayError):
    """The broker cannot be reached. If the proxy can respond itself, the connection continues."""

    def __init__(self, text: str) -> None:
        super().__init__(BROKER_UNAVAILABLE, text)
