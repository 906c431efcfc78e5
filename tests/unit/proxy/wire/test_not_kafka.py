import pytest

from proxy.wire.not_kafka import looks_like


@pytest.mark.parametrize("head", [b"\x16\x03\x01\x02", b"\x16\x03\x03\x00"])
def test_a_tls_hello(head: bytes) -> None:
    assert "security.protocol" in looks_like(head)


@pytest.mark.parametrize("head", [b"GET ", b"POST", b"HEAD", b"PUT ", b"OPTIONS / HTTP/1.1"])
def test_http(head: bytes) -> None:
    assert "HTTP" in looks_like(head)


@pytest.mark.parametrize("head", [b"PROX", b"\r\n\r\n"])
def test_the_proxy_protocol(head: bytes) -> None:
    assert "proxy_protocol" in looks_like(head)


@pytest.mark.parametrize(
    "head", [b"", b"\x16", b"\x00\x00\x00\x20", b"\x16\x02\x01\x02", b"GETS", b"\xff\xff\xff\xff"]
)
def test_anything_else_is_not_given_a_name(head: bytes) -> None:
    assert looks_like(head) == ""
