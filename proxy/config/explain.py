"""What `quota-proxy check` says about a listener: who can connect, how they are named, and which quotas that
gives.
"""

from proxy.config.settings import Listener, Settings
from proxy.quota.identity import ANONYMOUS


def explain(settings: Settings, listener: Listener) -> list[str]:
    """Lines of plain text, indented."""
    told = [("clients", _clients(listener)), ("named", _named(listener)), ("quotas", _quotas(listener))]
    if not listener.replication:
        told += [("changes", _changes(settings, listener)), ("proxy", _proxy(listener))]
    return [f"  {name:8}{text}" for name, text in told]


def _clients(listener: Listener) -> str:
    login = ", and logs in at the broker" if _by_login(listener) else ""
    if listener.tls is None:
        return f"anybody who reaches the port{login}; not encrypted"
    if listener.tls.client_auth == "required":
        return f"whoever has a certificate of {listener.tls.client_ca}{login}; TLS"
    return f"anybody who reaches the port{login}; TLS"


def _named(listener: Listener) -> str:
    principal = listener.principal
    if principal is None:
        return f"nobody: each is {ANONYMOUS}"
    if principal.source == "sasl":
        unreadable = f"{principal.unreadable} where" if principal.unreadable else "rejected if"
        return (
            "by the login (PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER's claim "
            f"{principal.oauth_claim}); {unreadable} it cannot be read"
        )
    without = "" if listener.tls is None or listener.tls.client_auth == "required" else "; "
    return f"by the certificate, {principal.rules}" + (without and f"{without}{ANONYMOUS} without one")


def _quotas(listener: Listener) -> str:
    if listener.replication:
        return "replication quotas alone"
    if listener.principal is None:
        return f"those of user {ANONYMOUS}, of <default> users and of client ids; no other user's hold here"
    return "those of the user, of <default> users and of client ids"


def _changes(settings: Settings, listener: Listener) -> str:
    changes = settings.quotas.changes
    admins = " and ".join(changes.admins)
    if not listener.known_to_brokers:
        return f"{admins or 'nobody'}: brokers take these clients for the proxy"
    open_to = {"loopback": "clients on this host", "everybody": "everybody", "nobody": ""}
    without = " and ".join(filter(None, [admins, open_to[changes.without_authorizer or "loopback"]]))
    return f"whoever the cluster lets; {without or 'nobody'} where it has no authorizer"


def _proxy(listener: Listener) -> str:
    upstream = listener.upstream
    tls = "TLS" if upstream.tls is not None else "not encrypted"
    if upstream.tls is not None and upstream.tls.certificate is not None:
        tls += f" with {upstream.tls.certificate}"
    if upstream.sasl is not None:
        user = "" if upstream.sasl.username is None else f" as {upstream.sasl.username}"
        return f"logs in{user} by {upstream.sasl.mechanism}; {tls}"
    if not listener.asks:
        return f"does not log in, and learns brokers from what clients are told; {tls}"
    return f"does not log in; {tls}"


def _by_login(listener: Listener) -> bool:
    return listener.principal is not None and listener.principal.source == "sasl"
