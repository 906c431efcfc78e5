"""The configuration's keys about TLS, SASL and names; proxy.config.settings has the whole file.

Files are found from the folder of the configuration file on.
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
    """TLS 1.2 or newer towards clients."""

    certificate: Text
    """The proxy's certificate with its chain, PEM. Taken anew when the file changes, as all of these are."""
    key: Text
    """Its private key, PEM, not encrypted."""
    client_ca: Text | None = None
    """Certificates of the authorities that clients' certificates have to come from, PEM."""
    client_auth: Literal["none", "requested", "required"] = "none"
    """Whether clients show a certificate, as in Kafka's ssl.client.auth."""


class Principal(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """How clients are named. Where this is left out, each is ANONYMOUS."""

    source: Literal["tls", "sasl"] = field(name="from")
    """`tls`: by the client's certificate. `sasl`: by its login at the broker, which the proxy reads as it
    passes."""
    rules: Text = "DEFAULT"
    """`tls`: from the certificate's name to the principal, as in Kafka's ssl.principal.mapping.rules."""
    oauth_claim: Text = "sub"
    """`sasl`: the claim of an OAUTHBEARER token that has the name, as in Kafka's
    sasl.oauthbearer.sub.claim.name."""
    brokers: tuple[Text, ...] = ()
    """On a replication listener: the users that brokers are. Nobody else gets in there."""
    unreadable: Text | None = None
    """`sasl`: the principal of clients whose login names no user that the proxy can read (GSSAPI, delegation
    tokens, opaque OAUTHBEARER tokens). Such logins are rejected where it is left out."""


class Changes(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Who may read and change quotas with Kafka's tools, where the cluster cannot say it."""

    admins: tuple[Text, ...] = ()
    """Users who may although the brokers do not know them, since their TLS ends at the proxy, or although the
    cluster has no authorizer."""
    without_authorizer: Literal["loopback", "everybody", "nobody"] | None = None
    """Who else may on a cluster without an authorizer: clients on the proxy's own host, all, or none. Where
    it is left out: `loopback`, with a warning."""


class Sni(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """One port for all brokers: which one a client means is in its TLS hello."""

    port: Annotated[int, Meta(ge=0, le=65535)]
    """The port."""
    bootstrap_host: Text
    """Name that clients have in their bootstrap.servers."""
    broker_host: Text
    """Name of each broker, with `$(node_id)` in it. All names have to resolve to this proxy."""


class UpstreamTls(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """TLS 1.2 or newer towards the brokers; an empty mapping will do."""

    ca: Text | None = None
    """Certificates of the authorities that brokers' certificates have to come from, PEM; the system's where
    left out."""
    certificate: Text | None = None
    """The proxy's certificate as a client, PEM, where brokers ask for one."""
    key: Text | None = None
    """Its private key, PEM, not encrypted."""
    server_name: Text | None = None
    """Name that brokers' certificates have to be for; the host to which the proxy connects where left out."""
    verify_host_name: bool = True
    """Whether a broker's certificate has to be for its host."""


class UpstreamSasl(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """How the proxy's own connections log in; those of clients log in as the clients do."""

    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
    """The mechanism."""
    username: Text | None = None
    """The proxy's own user; not for OAUTHBEARER."""
    password_file: Text | None = None
    """File with its password, a newline at its end apart. Read at each login."""
    password_env: Text | None = None
    """Or the environment variable that has it."""
    token_file: Text | None = None
    """OAUTHBEARER: file with the token. Read at each login."""


def in_folder(settings: WithFiles, folder: Path) -> WithFiles:
    """The same with its files as absolute paths."""
    names = ("certificate", "key", "client_ca", "ca", "password_file", "token_file")
    given = {name: getattr(settings, name, None) for name in names}
    return replace(settings, **{name: str(folder / path) for name, path in given.items() if path is not None})


def check_tls(tls: Tls, key: KeyPath) -> None:
    """Raises SettingsError."""
    if tls.client_auth != "none" and tls.client_ca is None:
        problem = f"has to be given where client_auth is {tls.client_auth}"
        raise SettingsError(problem, (*key, "client_ca"))
    if tls.client_auth == "none" and tls.client_ca is not None:
        problem = "expected requested or required where there is a client_ca, got none"
        raise SettingsError(problem, (*key, "client_auth"))


def check_principal(principal: Principal, tls: Tls | None, key: KeyPath) -> None:
    """Raises SettingsError."""
    if principal.source == "sasl":
        if principal.rules != "DEFAULT":
            raise SettingsError("means nothing where the principal is from sasl", (*key, "rules"))
        return
    if tls is None or tls.client_auth == "none":
        problem = "tls names clients by their certificates; that takes tls.client_ca and tls.client_auth"
        raise SettingsError(problem, (*key, "from"))
    try:
        MappingRules(principal.rules)
    except ValueError as error:
        raise SettingsError(str(error), (*key, "rules")) from error


def check_sni(sni: Sni, tls: Tls | None, key: KeyPath) -> None:
    """Raises SettingsError."""
    if tls is None:
        raise SettingsError("takes tls: the host that a client means is in its TLS hello", key)
    if sni.broker_host.count(NODE_ID) != 1:
        problem = f"expected a host with {NODE_ID} in it once, got {sni.broker_host!r}"
        raise SettingsError(problem, (*key, "broker_host"))


def check_upstream(tls: UpstreamTls | None, sasl: UpstreamSasl | None, key: KeyPath) -> None:
    """Raises SettingsError."""
    if tls is not None and (tls.certificate is None) != (tls.key is None):
        missing = "key" if tls.key is None else "certificate"
        raise SettingsError("certificate and key come together", (*key, "tls", missing))
    if sasl is None:
        return
    at = (*key, "sasl")
    if sasl.mechanism == "OAUTHBEARER":
        if sasl.token_file is None:
            raise SettingsError("has to be given for OAUTHBEARER", (*at, "token_file"))
        return
    if sasl.username is None:
        raise SettingsError(f"has to be given for {sasl.mechanism}", (*at, "username"))
    if (sasl.password_file is None) == (sasl.password_env is None):
        raise SettingsError("expected either password_file or password_env", (*at, "password_file"))
