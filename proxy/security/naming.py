"""Naming: derives a client's principal from its certificate, as brokers do (KIP-371)."""

from typing import Final

from proxy.quota.identity import ANONYMOUS
from proxy.security.der import BadCertificate, read_certificate
from proxy.security.distinguished_name import spell
from proxy.security.mapping_rules import MappingRules, NoMatchingRule
from proxy.security.settings import Principal


class NoPrincipal(ValueError):
    """No principal can be derived from a certificate; the message has the reason."""


class Naming:
    """Applies the `principal` settings of a listener; None: every client is ANONYMOUS."""

    def __init__(self, settings: Principal | None) -> None:
        by_certificate = settings is not None and settings.source == "tls"
        self._rules: Final = MappingRules(settings.rules) if settings is not None and by_certificate else None

    @property
    def by_certificate(self) -> bool:
        """Whether principals are derived from certificates."""
        return self._rules is not None

    def principal(self, certificate: bytes | None) -> str:
        """The principal of a client that presents this certificate (DER), or none. Raises NoPrincipal."""
        if self._rules is None or certificate is None:
            return ANONYMOUS
        try:
            return self._rules.principal(spell(read_certificate(certificate).subject))
        except (BadCertificate, NoMatchingRule) as error:
            raise NoPrincipal(f"no principal from its certificate: {error}") from error
