"""Opens the files that the configuration names, so that a file that would fail later is rejected at
startup.
"""

from proxy.config.settings import Settings
from proxy.errors import KeyPath, SettingsError
from proxy.security.secrets import SecretMissing, read_secret
from proxy.security.tls import server_tls


def open_files(settings: Settings) -> None:
    """Raise SettingsError for a file that is missing or cannot be used."""
    # Imported late: it imports kio and aiokafka, and commands that open no file start half a second faster.
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
