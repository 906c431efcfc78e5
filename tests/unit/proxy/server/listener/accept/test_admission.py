"""Admission: limits of client connections, in all and from one address."""

from proxy.server.listener.accept.admission import LimitedAdmission, UnlimitedAdmission


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


class Counted:
    """What other processes are told, and when one of them is first."""

    def __init__(self) -> None:
        self.shown: list[int | str] = []
        self.first_from = 2

    def show(self, connections: int) -> None:
        self.shown.append(connections)

    def full(self) -> None:
        self.shown.append("full")

    def drain(self) -> None:
        raise AssertionError

    def others_first(self, connections: int) -> bool:
        return connections >= self.first_from


def test_other_processes_know_how_many_connections_there_are() -> None:
    counted = Counted()
    admission = LimitedAdmission(2, 0, counted)
    admission.accepts()
    admission.enter("a")
    assert not admission.others_first
    admission.hold()
    assert admission.others_first
    admission.call_with_room(lambda: None)
    admission.release()
    assert counted.shown == [0, 1, 2, "full", 1]
    assert not LimitedAdmission(1, 0).others_first
    assert not UnlimitedAdmission().others_first
