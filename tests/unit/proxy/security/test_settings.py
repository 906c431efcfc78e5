"""The types of the keys for TLS and logins. test_check_security.py has what they reject in a whole file."""

from pathlib import Path

import pytest

from proxy.errors import SettingsError
from proxy.security.settings import Tls, UpstreamSasl, UpstreamTls, check_upstream, in_folder


def test_relative_paths_are_resolved_and_absolute_ones_kept(tmp_path: Path) -> None:
    tls = in_folder(Tls(certificate="tls/p.pem", key="/elsewhere/p.key"), tmp_path)
    assert (tls.certificate, tls.key, tls.client_ca) == (
        str(tmp_path / "tls/p.pem"),
        "/elsewhere/p.key",
        None,
    )
    sasl = UpstreamSasl(mechanism="OAUTHBEARER", token_file="token")
    assert in_folder(sasl, tmp_path).token_file == str(tmp_path / "token")


@pytest.mark.parametrize(
    ("tls", "key"),
    [(UpstreamTls(key="k"), "certificate"), (UpstreamTls(certificate="c"), "key")],
)
def test_client_certificate_and_key_are_used_together(tls: UpstreamTls, key: str) -> None:
    with pytest.raises(SettingsError) as caught:
        check_upstream(tls, None, ("upstream",))
    assert caught.value.key == ("upstream", "tls", key)


def test_password_comes_from_a_file_or_a_variable_and_not_from_both() -> None:
    sasl = UpstreamSasl(mechanism="PLAIN", username="u", password_file="f", password_env="E")
    with pytest.raises(SettingsError) as caught:
        check_upstream(None, sasl, ())
    assert caught.value.key == ("sasl", "password_file")
