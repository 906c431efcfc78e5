"""Checks of the keys for TLS, logins and principals that concern the whole configuration."""

from pathlib import Path

from msgspec.structs import replace

from proxy.config.settings import Listener, ProxyProtocol, Settings
from proxy.errors import KeyPath, SettingsError
from proxy.quota.networks import canonical_network
from proxy.security.loopback import is_loopback
from proxy.security.settings import check_principal, check_sni, check_tls, check_upstream, in_folder


def with_absolute_paths(settings: Settings, folder: Path) -> Settings:
    """Return the settings with every path resolved against `folder`, the folder of the configuration file."""
    listeners = []
    for listener in settings.listeners:
        upstream = listener.upstream
        upstream = replace(
            upstream,
            tls=None if upstream.tls is None else in_folder(upstream.tls, folder),
            sasl=None if upstream.sasl is None else in_folder(upstream.sasl, folder),
        )
        tls = None if listener.tls is None else in_folder(listener.tls, folder)
        listeners.append(replace(listener, tls=tls, upstream=upstream))
    admin = settings.admin
    token_file = None if admin.token_file is None else str(folder / admin.token_file)
    admin = replace(
        admin, token_file=token_file, tls=None if admin.tls is None else in_folder(admin.tls, folder)
    )
    return replace(settings, listeners=tuple(listeners), admin=admin)


def check_security(listener: Listener, key: KeyPath) -> None:
    """Raise SettingsError for keys of a listener that contradict each other. Opens no file."""
    if listener.tls is not None:
        check_tls(listener.tls, (*key, "tls"))
    if listener.principal is not None:
        check_principal(listener.principal, listener.tls, (*key, "principal"))
        brokers = (*key, "principal", "brokers")
        if listener.replication and not listener.principal.brokers:
            raise SettingsError("required on a replication listener; list the brokers' users", brokers)
        if listener.principal.brokers and not listener.replication:
            raise SettingsError("only allowed on a replication listener; remove it", brokers)
    if listener.sni is not None:
        check_sni(listener.sni, listener.tls, (*key, "sni"))
        if listener.replication:
            problem = "not allowed on a replication listener; set broker_port_base instead"
            raise SettingsError(problem, (*key, "sni"))
    if listener.proxy_protocol is not None:
        _check_proxy_protocol(listener, listener.proxy_protocol, (*key, "proxy_protocol"))
    check_upstream(listener.upstream.tls, listener.upstream.sasl, (*key, "upstream"))


def _check_proxy_protocol(listener: Listener, settings: ProxyProtocol, key: KeyPath) -> None:
    if listener.replication:
        raise SettingsError("not allowed on a replication listener; remove it", key)
    for place, text in enumerate(settings.senders):
        at = (*key, "senders", place)
        try:
            network = canonical_network(text)
        except ValueError as error:
            raise SettingsError(str(error), at) from error
        if network.endswith("/0"):
            problem = f"with {text}, every client could state any address; set the load balancers' networks"
            raise SettingsError(problem, at)


def check_admin(settings: Settings) -> None:
    """Raise SettingsError if anyone on a network could use the admin port."""
    admin = settings.admin
    if admin.token_file is not None and admin.token_env is not None:
        raise SettingsError("token_env is set as well; keep one of them", ("admin", "token_file"))
    if admin.tls is not None:
        check_tls(admin.tls, ("admin", "tls"))
    if not is_loopback(admin.bind) and not admin.has_token and not admin.by_certificate:
        problem = (
            f"{admin.bind} is not a loopback address; set admin.token_file, admin.token_env, "
            "or admin.tls with client_auth: required"
        )
        raise SettingsError(problem, ("admin", "bind"))


def check_logins(settings: Settings) -> None:
    """Raise SettingsError if the proxy must log in to the cluster and has no login."""
    if settings.quotas.store != "none" and not any(listener.asks for listener in settings.client_listeners):
        problem = (
            "the proxy cannot log in to the cluster that has the topic; "
            "set upstream.sasl on a listener, or store: none"
        )
        raise SettingsError(problem, ("quotas", "store"))
