"""ClientIdentification: a new client's principal and broker, from its TLS certificate and hello."""

from typing import Final

from proxy.config.settings import Listener
from proxy.quota.identity import ANONYMOUS
from proxy.relay.close_reasons import NO_PRINCIPAL, NOT_A_BROKER
from proxy.relay.login.authentication import Login
from proxy.security.naming import Naming, NoPrincipal
from proxy.security.tls import server_name
from proxy.server.connection.connection import Connection
from proxy.server.listener.ports.broker_ports import BrokerPorts
from proxy.server.listener.ports.sni_hosts import UnknownHost

UNKNOWN_HOST: Final = "unknown_host"


class NotServed(ValueError):
    """A client that cannot be served: `reason` is the metric's label, the message has the details."""

    def __init__(self, reason: str, why: str) -> None:
        super().__init__(why)
        self.reason: Final = reason


def login_of(listener: Listener) -> Login | None:
    """Return how SASL logins name the clients of a listener; None if they do not."""
    principal = listener.principal
    if principal is None or principal.source != "sasl":
        return None
    return Login(principal.oauth_claim, principal.unreadable or "", frozenset(principal.brokers))


class ClientIdentification:
    """Identifies the clients of one listener."""

    def __init__(self, listener: Listener, ports: BrokerPorts) -> None:
        principal = listener.principal
        self._naming: Final = Naming(principal)
        self._brokers: Final = frozenset(() if principal is None else principal.brokers)
        self._by_host: Final = listener.sni is not None
        self._ports: Final = ports

    def identify(self, connection: Connection) -> tuple[str, int | None]:
        """Return the client's principal, and its broker's node id: None if any broker will do. Raises
        NotServed.
        """
        try:
            principal = self._principal(connection)
            node_id = connection.node_id
            tls = connection.tls
            if self._by_host and tls is not None:
                node_id = self._ports.node_behind(server_name(tls))
        except NoPrincipal as error:
            raise NotServed(NO_PRINCIPAL, str(error)) from error
        except UnknownHost as error:
            raise NotServed(UNKNOWN_HOST, str(error)) from error
        if self._brokers and self._naming.by_certificate and principal not in self._brokers:
            raise NotServed(NOT_A_BROKER, f"its principal {principal} is not in principal.brokers")
        return principal, node_id

    def _principal(self, connection: Connection) -> str:
        tls = connection.tls
        if tls is None or not self._naming.by_certificate:
            return ANONYMOUS
        return self._naming.principal(tls.getpeercert(binary_form=True))
