"""What the whole configuration has to do with TLS, SASL and names."""

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from proxy.errors import KeyPath, SettingsError
from proxy.security.loopback import is_loopback
from proxy.security.secrets import SecretMissing, read_secret
from proxy.security.settings import check_principal, check_sni, check_tls, check_upstream, in_folder
from proxy.security.tls import server_tls

if TYPE_CHECKING:
    from proxy.config.settings import Listener, Settings


def with_absolute_paths(settings: "Settings", folder: Path) -> "Settings":
    """Files that the settings name are looked for from the folder of the settings' own file on."""
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


def check_security(listener: "Listener", key: KeyPath) -> None:
    """Raises SettingsError for settings that contradict each other; looks at no file."""
    if listener.tls is not None:
        check_tls(listener.tls, (*key, "tls"))
    if listener.principal is not None:
        check_principal(listener.principal, listener.tls, (*key, "principal"))
        if listener.replication != bool(listener.principal.brokers):
            problem = "is for replication listeners, and has to be given there: the users that brokers are"
            raise SettingsError(problem, (*key, "principal", "brokers"))
    if listener.sni is not None:
        check_sni(listener.sni, listener.tls, (*key, "sni"))
        if listener.replication:
            raise SettingsError("brokers fetch from each other at ports of their own", (*key, "sni"))
    check_upstream(listener.upstream.tls, listener.upstream.sasl, (*key, "upstream"))


def check_admin(settings: "Settings") -> None:
    """Raises SettingsError where the admin port would be open to a network."""
    admin = settings.admin
    if admin.token_file is not None and admin.token_env is not None:
        raise SettingsError("expected either token_file or token_env", ("admin", "token_file"))
    if admin.tls is not None:
        check_tls(admin.tls, ("admin", "tls"))
    if not is_loopback(admin.bind) and not admin.has_token and not admin.by_certificate:
        problem = (
            f"{admin.bind} is reached from elsewhere, which takes admin.token_file, admin.token_env, "
            "or admin.tls with client_auth: required"
        )
        raise SettingsError(problem, ("admin", "bind"))


def check_logins(settings: "Settings") -> None:
    """Raises SettingsError where the proxy would have to log in somewhere, and cannot."""
    if settings.quotas.store != "none" and not any(listener.asks for listener in settings.client_listeners):
        problem = (
            "is a topic on a cluster where the proxy cannot log in; "
            "give a listener upstream.sasl, or set store: none"
        )
        raise SettingsError(problem, ("quotas", "store"))


def open_files(settings: "Settings") -> None:
    """Raises SettingsError for files that are not there, or cannot be used."""
    # It brings kio and aiokafka along, for which no other command shall wait.
    from proxy.security.access import Access

    for place, listener in enumerate(settings.listeners):
        key: KeyPath = ("listeners", place)
        if listener.tls is not None:
            server_tls(listener.tls, (*key, "tls"))
        Access(listener.upstream.tls, listener.upstream.sasl, (*key, "upstream"))
    admin = settings.admin
    if admin.tls is not None:
        server_tls(admin.tls, ("admin", "tls"))
    if admin.has_token:
        try:
            read_secret(admin.token_file, admin.token_env)
        except SecretMissing as error:
            name = "token_env" if error.env else "token_file"
            raise SettingsError(str(error), ("admin", name)) from error
