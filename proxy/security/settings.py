"""The configuration's keys for TLS, SASL and principals, as types; see proxy.config.settings.

Paths are relative to the folder of the configuration file.
"""

from pathlib import Path
from typing import Annotated, Final, Literal, TypeVar

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from proxy.errors import KeyPath, SettingsError
from proxy.security.mapping_rules import MappingRules

Text = Annotated[str, Meta(min_length=1)]
NODE_ID: Final = "$(node_id)"
WithFiles = TypeVar("WithFiles", "Tls", "UpstreamTls", "UpstreamSasl")


class Tls(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """TLS 1.2 or newer to the clients."""

    certificate: Text
    """File with the proxy's certificate and its chain (PEM). The proxy reloads it when it changes, like
    all TLS files."""
    key: Text
    """File with the private key (PEM, not encrypted)."""
    client_ca: Text | None = None
    """File with the certificate authorities for clients' certificates (PEM)."""
    client_auth: Literal["none", "requested", "required"] = "none"
    """Whether clients must present a certificate, as in Kafka's ssl.client.auth."""


class Principal(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """How the proxy identifies clients. Without this key every client is ANONYMOUS."""

    source: Literal["tls", "sasl"] = field(name="from")
    """`tls`: the client's certificate names the principal. `sasl`: the client's login to the broker names it;
    the proxy reads the login and forwards it."""
    rules: Text = "DEFAULT"
    """`tls`: rules that map the certificate's distinguished name to the principal, as in Kafka's
    ssl.principal.mapping.rules."""
    oauth_claim: Text = "sub"
    """`sasl`: the claim of an OAUTHBEARER token that contains the principal, as in Kafka's
    sasl.oauthbearer.sub.claim.name."""
    brokers: tuple[Text, ...] = ()
    """Replication listener only: the principals of the brokers. The proxy rejects all other clients."""
    unreadable: Text | None = None
    """`sasl`: principal of clients whose login names no user that the proxy can read (GSSAPI, delegation
    tokens, opaque OAUTHBEARER tokens). Without this key, the proxy rejects such logins."""


class Changes(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Who can read and change quotas with Kafka's tools if the cluster's authorizer cannot decide."""

    admins: tuple[Text, ...] = ()
    """Users who can read and change quotas with Kafka's tools if the cluster's authorizer cannot decide: the
    brokers do not see the user's principal because the proxy terminates the client's TLS, or the cluster has
    no authorizer."""
    without_authorizer: Literal["loopback", "everybody", "nobody"] | None = None
    """Who else can read and change quotas on a cluster without an authorizer: clients that connect from a
    loopback address, all clients, or none. Default: `loopback`, with a warning in the log."""


class Sni(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """One port for all brokers. The server name of a TLS handshake (SNI) selects the broker."""

    port: Annotated[int, Meta(ge=0, le=65535)]
    """Port of the listener."""
    advertised_port: Annotated[int, Meta(ge=1, le=65535)] | None = None
    """Port that is advertised for every broker. Set it if a load balancer forwards this port to `port`.
    Default: the value of `port`."""
    bootstrap_host: Text
    """Host name for clients' bootstrap.servers."""
    broker_host: Text
    """Host name of each broker; `$(node_id)` in it stands for the node id. All names must resolve to this
    proxy."""


class UpstreamTls(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """TLS 1.2 or newer to the brokers. An empty mapping enables it with the defaults."""

    ca: Text | None = None
    """File with the certificate authorities for brokers' certificates (PEM). Default: the system's
    authorities."""
    certificate: Text | None = None
    """File with the proxy's client certificate (PEM), for brokers that request one."""
    key: Text | None = None
    """File with the private key (PEM, not encrypted)."""
    server_name: Text | None = None
    """Host name to verify in brokers' certificates. Default: the host that the proxy connects to."""
    verify_host_name: bool = True
    """Whether to verify the host name in brokers' certificates."""


class UpstreamSasl(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """The SASL login of the proxy's own connections. On connections for clients, the clients log in."""

    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
    """SASL mechanism."""
    username: Text | None = None
    """The proxy's user; not with OAUTHBEARER."""
    password_file: Text | None = None
    """File with the password. The proxy reads it at each login, and ignores a newline at its end."""
    password_env: Text | None = None
    """Environment variable with the password, instead of password_file."""
    token_file: Text | None = None
    """OAUTHBEARER: file with the token. The proxy reads it at each login."""


def in_folder(settings: WithFiles, folder: Path) -> WithFiles:
    """The settings with every path resolved against `folder`."""
    names = ("certificate", "key", "client_ca", "ca", "password_file", "token_file")
    given = {name: getattr(settings, name, None) for name in names}
    return replace(settings, **{name: str(folder / path) for name, path in given.items() if path is not None})


def check_tls(tls: Tls, key: KeyPath) -> None:
    """Raise SettingsError for keys that contradict each other."""
    if tls.client_auth != "none" and tls.client_ca is None:
        problem = f"required with client_auth: {tls.client_auth}"
        raise SettingsError(problem, (*key, "client_ca"))
    if tls.client_auth == "none" and tls.client_ca is not None:
        problem = "client_ca requires requested or required, got none"
        raise SettingsError(problem, (*key, "client_auth"))


def check_principal(principal: Principal, tls: Tls | None, key: KeyPath) -> None:
    """Raise SettingsError for keys that contradict each other."""
    if principal.source == "sasl":
        if principal.rules != "DEFAULT":
            raise SettingsError("has no effect with from: sasl; remove it", (*key, "rules"))
        return
    if tls is None or tls.client_auth == "none":
        problem = "tls requires client certificates; set tls.client_ca and tls.client_auth of the listener"
        raise SettingsError(problem, (*key, "from"))
    try:
        MappingRules(principal.rules)
    except ValueError as error:
        raise SettingsError(str(error), (*key, "rules")) from error


def check_sni(sni: Sni, tls: Tls | None, key: KeyPath) -> None:
    """Raise SettingsError for keys that contradict each other."""
    if tls is None:
        raise SettingsError(
            "requires tls on the listener, since the server name is part of the TLS handshake", key
        )
    if sni.broker_host.count(NODE_ID) != 1:
        problem = f"expected a host name that contains {NODE_ID} once, got {sni.broker_host!r}"
        raise SettingsError(problem, (*key, "broker_host"))


def check_upstream(tls: UpstreamTls | None, sasl: UpstreamSasl | None, key: KeyPath) -> None:
    """Raise SettingsError for keys that contradict each other."""
    if tls is not None and (tls.certificate is None) != (tls.key is None):
        missing = "key" if tls.key is None else "certificate"
        raise SettingsError("required, since certificate and key are used together", (*key, "tls", missing))
    if sasl is None:
        return
    at = (*key, "sasl")
    if sasl.mechanism == "OAUTHBEARER":
        if sasl.token_file is None:
            raise SettingsError("required for OAUTHBEARER", (*at, "token_file"))
        return
    if sasl.username is None:
        raise SettingsError(f"required for {sasl.mechanism}", (*at, "username"))
    if sasl.password_file is None and sasl.password_env is None:
        raise SettingsError(f"this or password_env is required for {sasl.mechanism}", (*at, "password_file"))
    if sasl.password_file is not None and sasl.password_env is not None:
        raise SettingsError("password_env is set as well; keep one of them", (*at, "password_file"))
