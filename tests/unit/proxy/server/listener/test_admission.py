"""Admission: limits of client connections, in all and from one address."""

from proxy.server.listener.admission import LimitedAdmission, UnlimitedAdmission


def test_connections_in_all_are_limited() -> None:
    admission = LimitedAdmission(2, 0)
    assert [admission.enter("a"), admission.enter("b")] == ["", ""]
    assert "limits.max_connections (2)" in admission.enter("c")
    admission.leave("a")
    assert admission.enter("c") == ""


def test_connections_from_one_address_are_limited() -> None:
    admission = LimitedAdmission(10, 1)
    assert [admission.enter("a"), admission.enter("b")] == ["", ""]
    assert "limits.max_connections_per_ip (1)" in admission.enter("a")
    admission.leave("a")
    assert admission.enter("a") == ""


def test_a_rejected_connection_does_not_count() -> None:
    admission = LimitedAdmission(1, 0)
    admission.enter("a")
    for _ in range(3):
        assert admission.enter("b")
    admission.leave("a")
    assert admission.enter("b") == ""


def test_brokers_are_not_limited() -> None:
    admission = UnlimitedAdmission()
    assert {admission.enter("a") for _ in range(1000)} == {""}
    admission.leave("a")
