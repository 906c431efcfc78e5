"""The file of --access: TLS and login of the commands' connections."""

from pathlib import Path
from typing import Final

from msgspec import Struct

from proxy.config.yaml import document
from proxy.config.yaml.convert import convert
from proxy.errors import SettingsError
from proxy.security.access import Access
from proxy.security.settings import UpstreamSasl, UpstreamTls, check_upstream, in_folder


class AccessFile(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """The file of --access, with keys of `upstream` in the proxy's configuration."""

    tls: UpstreamTls | None = None
    sasl: UpstreamSasl | None = None


NOTHING: Final = AccessFile()


def read_access(path: Path) -> Access:
    """Read TLS and login from a file. Raises SettingsError with the file, the line and the key."""
    file = document.read(path)
    folder = path.absolute().parent
    try:
        given = NOTHING if file.value is None else convert(file.value, AccessFile)
        check_upstream(given.tls, given.sasl, ())
        tls = None if given.tls is None else in_folder(given.tls, folder)
        sasl = None if given.sasl is None else in_folder(given.sasl, folder)
        return Access(tls, sasl)
    except SettingsError as error:
        raise file.locate(error) from error
