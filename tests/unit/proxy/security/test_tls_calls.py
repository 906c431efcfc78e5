"""Calls of OpenSSL without a Python function between: the same results, on both sides of a connection."""

import ssl
from pathlib import Path
from types import BuiltinMethodType
from typing import Any

import pytest

from proxy.security.settings import Tls, UpstreamTls
from proxy.security.tls import client_tls, server_tls
from proxy.security.tls_calls import call_directly
from tests.support.process.certificates import Authority
from tests.unit.proxy.security.test_tls import AT, meet


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Any, Any]:
    authority = Authority(tmp_path)
    signed = authority.sign("proxy")
    server = server_tls(Tls(certificate=signed.certificate, key=signed.key), AT)
    return meet(server.context, client_tls(UpstreamTls(ca=authority.ca), AT).context)


def test_no_python_function_is_called_for_data(sides: tuple[Any, Any]) -> None:
    server, client = sides
    for call in (client.read, client.write, client.pending, server.write, server.pending):
        assert type(call) is BuiltinMethodType
    assert server.read == server.reader.read, "which is compiled"


def test_data_goes_both_ways(sides: tuple[Any, Any]) -> None:
    for writer, reader in (sides, sides[::-1]):
        assert writer.write(b"some data") == 9
        assert reader.read(4) == b"some"
        assert reader.pending() == 5
        rest = bytearray(10)
        assert (reader.read(10, rest), bytes(rest[:5])) == (5, b" data")
        with pytest.raises(ssl.SSLWantReadError):
            reader.read(10)


def test_another_object_is_left_alone() -> None:
    class Other:
        def read(self) -> bytes:
            return b"data"

    other: Any = Other()
    assert call_directly(other) is other
    assert other.read() == b"data"
