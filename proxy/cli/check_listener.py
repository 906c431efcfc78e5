"""The lines of `quota-proxy check` about a listener: who can connect, how clients are identified, and which
quotas apply to them.
"""

from proxy.config.settings import Listener, ProxyProtocol, Settings
from proxy.quota.identity import ANONYMOUS


def listener_lines(settings: Settings, listener: Listener) -> list[str]:
    """Describe a listener in indented lines of plain text."""
    told = [("clients", _clients(listener)), ("users", _users(listener)), ("quotas", _quotas(listener))]
    if listener.proxy_protocol is not None:
        told.append(("address", _address(listener.proxy_protocol)))
    if not listener.replication:
        told += [("changes", _changes(settings, listener)), ("proxy", _proxy(listener))]
    return [f"  {name:8}{text}" for name, text in told]


def _clients(listener: Listener) -> str:
    login = " that logs in to the broker" if _by_login(listener) else ""
    if listener.tls is None:
        return f"any client{login}; not encrypted"
    if listener.tls.client_auth == "required":
        return f"any client with a certificate of {listener.tls.client_ca}{login}; TLS"
    return f"any client{login}; TLS"


def _address(settings: ProxyProtocol) -> str:
    others = "are rejected" if settings.others == "reject" else "have their own address"
    return f"as the PROXY header of {', '.join(settings.senders)} states; connections from elsewhere {others}"


def _users(listener: Listener) -> str:
    principal = listener.principal
    if principal is None:
        return f"{ANONYMOUS} for every client"
    if principal.source == "sasl":
        unreadable = f"{principal.unreadable} if" if principal.unreadable else "rejected if"
        return (
            "from the login (PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER's claim "
            f"{principal.oauth_claim}); {unreadable} the proxy cannot read it"
        )
    without = "" if listener.tls is None or listener.tls.client_auth == "required" else "; "
    return f"from the certificate, {principal.rules}" + (without and f"{without}{ANONYMOUS} without one")


def _quotas(listener: Listener) -> str:
    if listener.replication:
        return "replication quotas only"
    if listener.principal is None:
        return f"those of user {ANONYMOUS}, of <default> users and of client ids; not those of other users"
    return "those of the user, of <default> users and of client ids"


def _changes(settings: Settings, listener: Listener) -> str:
    changes = settings.quotas.changes
    admins = " and ".join(changes.admins)
    if not listener.known_to_brokers:
        return f"{admins or 'nobody'}: brokers see the proxy's principal, not the client's"
    open_to = {"loopback": "clients on this host", "everybody": "everybody", "nobody": ""}
    without = " and ".join(filter(None, [admins, open_to[changes.without_authorizer or "loopback"]]))
    return f"clients that the cluster's authorizer allows; without an authorizer, {without or 'nobody'}"


def _proxy(listener: Listener) -> str:
    upstream = listener.upstream
    tls = "TLS" if upstream.tls is not None else "not encrypted"
    if upstream.tls is not None and upstream.tls.certificate is not None:
        tls += f" with {upstream.tls.certificate}"
    if upstream.sasl is not None:
        user = "" if upstream.sasl.username is None else f" as {upstream.sasl.username}"
        return f"logs in{user} by {upstream.sasl.mechanism}; {tls}"
    if not listener.asks:
        return f"connects without a login, and learns brokers from the responses to clients; {tls}"
    return f"connects without a login; {tls}"


def _by_login(listener: Listener) -> bool:
    return listener.principal is not None and listener.principal.source == "sasl"
