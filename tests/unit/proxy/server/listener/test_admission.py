"""Admission: limits of client connections, in all and from one address."""

from proxy.server.listener.admission import LimitedAdmission, UnlimitedAdmission


def test_connections_in_all_are_limited() -> None:
    admission = LimitedAdmission(2, 0)
    assert [admission.enter("a"), admission.full, admission.enter("b"), admission.full] == [
        "",
        False,
        "",
        True,
    ]
    admission.leave("a")
    assert not admission.full


def test_who_waits_for_room_is_called_once() -> None:
    admission = LimitedAdmission(1, 0)
    admission.enter("a")
    called: list[str] = []

    def take() -> None:
        called.append("one")
        admission.enter("b")

    admission.call_with_room(take)
    admission.call_with_room(lambda: called.append("other"))
    admission.leave("a")
    assert called == ["one", "other"]
    admission.leave("b")
    assert called == ["one", "other"]


def test_connections_from_one_address_are_limited() -> None:
    admission = LimitedAdmission(10, 1)
    assert [admission.enter("a"), admission.enter("b")] == ["", ""]
    assert "limits.max_connections_per_ip (1)" in admission.enter("a")
    admission.leave("a")
    assert admission.enter("a") == ""


def test_a_rejected_connection_does_not_count() -> None:
    admission = LimitedAdmission(2, 1)
    admission.enter("a")
    for _ in range(3):
        assert admission.enter("a")
    assert not admission.full


def test_brokers_are_not_limited() -> None:
    admission = UnlimitedAdmission()
    assert {admission.enter("a") for _ in range(1000)} == {""}
    assert not admission.full
    admission.leave("a")


def test_a_connection_whose_address_is_not_known_counts_in_all_only() -> None:
    admission = LimitedAdmission(1, 1)
    admission.hold()
    called: list[bool] = []
    admission.call_with_room(lambda: called.append(admission.full))
    assert (admission.full, called) == (True, [])
    admission.release()
    assert (admission.enter("a"), called) == ("", [False])
