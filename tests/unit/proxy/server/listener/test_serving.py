"""Serving: the error for a certificate that cannot be read has the key of its listener."""

from pathlib import Path

import pytest

from proxy.errors import SettingsError
from proxy.security.access import PLAINTEXT
from proxy.server.listener.serving import transport_security
from tests.support.process.settings import read

TWO = """
listeners:
- {{bootstrap_port: 9000, upstream: {{bootstrap: ["k:9092"]}}}}
- name: second
  bootstrap_port: 9100
  broker_port_base: 9101
  tls: {{certificate: {folder}/none.pem, key: {folder}/none.key}}
  upstream: {{bootstrap: ["k:9092"]}}
"""


def test_each_listener_has_its_own_security(tmp_path: Path) -> None:
    settings = read(tmp_path, TWO.format(folder=tmp_path))
    security = transport_security(settings, settings.listeners[0])
    assert (security.tls, security.access.ssl_context) == (None, PLAINTEXT.ssl_context)
    with pytest.raises(SettingsError) as caught:
        transport_security(settings, settings.listeners[1])
    assert caught.value.key[:3] == ("listeners", 1, "tls")
