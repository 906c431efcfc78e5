"""Live processes, and the log's time."""

from proxy.quota.sharing.members import LEASE_SECONDS, MAX_STEP_SECONDS, LogClock, Members


def test_time_is_that_of_the_records() -> None:
    clock = LogClock()
    clock.see(5_000)
    assert clock.see(5_250) == 0.25


def test_time_does_not_go_back() -> None:
    clock = LogClock()
    clock.see(5_000)
    clock.see(5_500)
    assert clock.see(1_000) == 0.5
    assert clock.see(1_100) == 0.6


def test_a_clock_that_jumps_an_hour_ahead_ends_no_lease() -> None:
    clock, members = LogClock(), Members()
    members.see("a", 1, 0, clock.see(5_000))
    assert clock.see(3_605_000) == MAX_STEP_SECONDS
    assert members.expire(clock.now) == []


def test_a_process_that_does_not_report_expires() -> None:
    members = Members()
    assert members.see("a", 2, 0, 0.0)
    assert members.see("b", 3, 0, LEASE_SECONDS)
    assert not members.see("b", 4, 0, LEASE_SECONDS)
    assert members.expire(LEASE_SECONDS) == []
    assert members.expire(LEASE_SECONDS + 0.1) == ["a"]
    assert members.names() == ["b"]
    assert "a" not in members


def test_a_process_that_leaves_is_gone() -> None:
    members = Members()
    members.see("a", 5, 0, 0.0)
    assert members.leave("a")
    assert not members.leave("a")
    assert len(members) == 0


def test_all_have_read_what_the_slowest_has() -> None:
    members = Members()
    assert members.read_by_all() == 0
    members.see("a", 6, 9, 0.0)
    members.see("b", 7, 4, 0.0)
    assert members.read_by_all() == 4
    members.see("b", 8, 3, 0.0)
    assert members.read_by_all() == 4


def test_the_slowest_is_found_among_many_and_after_it_has_gone() -> None:
    members, names = Members(), [f"p{number}" for number in range(20)]
    for turn in range(100):
        for place, name in enumerate(names):
            members.see(name, turn + 1, turn * 20 + place, turn / 10)
        assert members.read_by_all() == turn * 20
    members.leave("p0")
    assert members.read_by_all() == 99 * 20 + 1
    for turn in range(100, 200):
        members.see("p1", turn, 50 * turn, 10.0)
    assert members.read_by_all() == 99 * 20 + 2
    assert members.expire(LEASE_SECONDS + 9.95) == ["p2", *names[3:]]
    assert members.names() == ["p1"]


def test_those_that_write_a_newer_format_are_known() -> None:
    members = Members()
    members.see("b", 1, 0, 0.0, newer=True)
    members.see("a", 1, 0, 0.0, newer=True)
    members.see("c", 1, 0, 0.0)
    assert members.newer() == ["a", "b"]
    members.see("b", 2, 0, 0.0)
    members.leave("a")
    assert members.newer() == []


def test_a_report_that_was_sent_twice_is_known() -> None:
    members = Members()
    assert not members.repeated("a", 3)
    members.see("a", 3, 0, 0.0)
    assert members.repeated("a", 3)
    assert members.repeated("a", 2)
    assert not members.repeated("a", 4)
