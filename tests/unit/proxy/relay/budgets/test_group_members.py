"""GroupMembers: which members of groups count for a client, and for how long."""

from typing import Final

import pytest

from proxy.relay.budgets.group_members import (
    CLIENTS_AT_MOST,
    LONGEST_SECONDS,
    MEMBER_BYTES,
    ConnectionMembers,
    GroupMembers,
)
from proxy.wire.group_member import SESSION_SECONDS, GroupMember

MOST: Final = 100_000
SIZE: Final = 30_000
"""Three members of this size have room."""
ALICE: Final = (1, ("alice", ""))


def member(
    member_id: str = "a", group: str = "g", instance: str = "", joins: bool = True, seconds: float = 300.0
) -> GroupMember:
    return GroupMember(group.encode(), member_id.encode(), instance.encode(), joins, seconds, 100)


class Process:
    def __init__(self, most: int = MOST) -> None:
        self.all = GroupMembers(most)

    def connect(self) -> ConnectionMembers:
        return ConnectionMembers(self.all)

    def size(self) -> int:
        return int(self.all.of(ALICE, 0.0).size)


@pytest.fixture
def process() -> Process:
    return Process()


def join(
    connection: ConnectionMembers,
    request: GroupMember,
    size: int = SIZE,
    now: float = 10.0,
    keeps: bool = False,
) -> bool:
    return connection.join(ALICE, request, size, keeps, now)


def test_the_members_of_all_connections_of_a_client_count(process: Process) -> None:
    connections = [process.connect() for _ in range(4)]
    joined = [join(each, member(f"m{number}")) for number, each in enumerate(connections)]
    assert joined == [True, True, True, False]
    assert process.size() == 3 * (SIZE + MEMBER_BYTES)
    others = [(1, ("bob", "")), (2, ("alice", ""))]
    assert all(process.connect().join(other, member("m"), SIZE, False, 10.0) for other in others)


def test_small_members_count_at_least_with_what_a_coordinator_needs_for_each(process: Process) -> None:
    joined = [join(process.connect(), member(f"m{number}"), 1) for number in range(200)]
    assert sum(joined) == MOST // (MEMBER_BYTES + 1)


def test_a_member_that_joins_again_counts_once(process: Process) -> None:
    connection = process.connect()
    assert all(join(connection, member(), SIZE + step) for step in range(20))
    assert process.size() == SIZE + 19 + MEMBER_BYTES
    assert join(connection, member(), 10)
    assert process.size() == 10 + MEMBER_BYTES


def test_a_heartbeat_does_not_replace_what_the_member_has_sent(process: Process) -> None:
    connection = process.connect()
    assert join(connection, member(), SIZE, keeps=True)
    assert join(connection, member(), 50, keeps=True)
    assert process.size() == SIZE + MEMBER_BYTES


def test_members_without_an_id_are_different_ones(process: Process) -> None:
    connection = process.connect()
    assert [join(connection, member("")) for _ in range(4)] == [True, True, True, False]


def test_a_static_member_counts_once(process: Process) -> None:
    for number in range(10):
        connection = process.connect()
        assert join(connection, member("" if number else "id", instance="static"))
        connection.end()


def test_assignments_count_with_the_leader(process: Process) -> None:
    leader = process.connect()
    assert join(leader, member())
    assert leader.sync(ALICE, member(), SIZE, 10.0)
    assert leader.sync(ALICE, member(), SIZE, 10.0)
    assert process.size() == 2 * SIZE + MEMBER_BYTES
    assert not leader.sync(ALICE, member(), 3 * SIZE, 10.0)
    assert leader.sync(ALICE, member("other"), 10, 10.0)
    assert process.size() == 2 * SIZE + 2 * MEMBER_BYTES + 10


def test_a_member_counts_until_its_session_is_over(process: Process) -> None:
    for number in range(3):
        connection = process.connect()
        assert join(connection, member(f"m{number}"))
        connection.end()
    later = process.connect()
    assert not join(later, member("later"), now=20.0)
    assert not join(later, member("later"), now=10.0 + 299.0)
    assert join(later, member("later"), now=20.0 + 301.0)
    assert process.size() == SIZE + MEMBER_BYTES


@pytest.mark.parametrize(("seconds", "counted"), [(1.0, SESSION_SECONDS), (1e9, LONGEST_SECONDS)])
def test_the_time_has_bounds(process: Process, seconds: float, counted: float) -> None:
    first = process.connect()
    assert join(first, member(seconds=seconds), MOST - MEMBER_BYTES)
    first.end()
    later = process.connect()
    assert not join(later, member("later"), now=20.0)
    assert not join(later, member("later"), now=20.0 + counted - 1.0)
    assert join(later, member("later"), now=20.0 + counted + 1.0)


def test_a_member_that_rebalances_for_long_keeps_the_others_of_the_client(process: Process) -> None:
    """A coordinator keeps a member that has joined without heartbeats until the group is complete."""
    slow, quick, later = process.connect(), process.connect(), process.connect()
    assert join(slow, member("slow", seconds=2000.0), 10)
    assert join(quick, member("quick", seconds=7.0), MOST - 3 * MEMBER_BYTES)
    quick.end()
    assert not join(later, member("later"), now=20.0)
    assert not join(later, member("later"), now=1900.0)


def test_a_member_that_another_connection_keeps_alive_counts(process: Process) -> None:
    first, other, later = process.connect(), process.connect(), process.connect()
    assert join(first, member(), MOST - MEMBER_BYTES)
    assert not other.has_orphans(ALICE, 10.0)
    first.end()
    assert other.has_orphans(ALICE, 20.0)
    other.remind(ALICE, member(), 20.0)
    assert not other.has_orphans(ALICE, 20.0)
    assert not join(later, member("later"), now=5000.0)
    other.end()
    assert not join(later, member("later"), now=5001.0)
    assert join(later, member("later"), now=5400.0)


@pytest.mark.parametrize("instance", ["", "static"])
def test_a_member_whose_id_is_unknown_counts_with_any_of_its_group(process: Process, instance: str) -> None:
    first, other, later = process.connect(), process.connect(), process.connect()
    assert join(first, member("", instance=instance), MOST - 3 * MEMBER_BYTES)
    first.end()
    other.remind(ALICE, member("of the coordinator", group="another"), 20.0)
    assert other.has_orphans(ALICE, 20.0)
    assert other.sync(ALICE, member("of the coordinator"), 10, 20.0)
    assert not other.has_orphans(ALICE, 20.0)
    assert not join(later, member("later"), now=5000.0)


def test_a_client_that_joins_anew_has_left_its_last_member(process: Process) -> None:
    connection = process.connect()
    for number in range(3):
        assert join(connection, member(f"m{number}"), now=10.0)
    assert not join(connection, member("m3"), now=20.0)
    assert join(connection, member("m3"), now=10.0 + 350.0)


def test_it_counts_again_if_a_request_names_it(process: Process) -> None:
    connection, other = process.connect(), process.connect()
    for number in range(3):
        assert join(connection, member(f"m{number}"), now=10.0)
    for number in range(2):
        other.remind(ALICE, member(f"m{number}"), 10.0)
    assert not join(connection, member("m3"), now=5000.0)


def test_members_of_several_groups_count_with_one_connection(process: Process) -> None:
    connection = process.connect()
    for number in range(3):
        assert join(connection, member(group=f"g{number}"), now=10.0)
    assert not join(connection, member(group="g3"), now=5000.0)


def test_requests_that_only_get_an_id_do_not_stay(process: Process) -> None:
    connection = process.connect()
    for _ in range(90):
        assert join(connection, member("", joins=False), 50, now=10.0)
    assert not join(connection, member("", joins=False), 10_000, now=20.0)
    assert join(connection, member("", joins=False), 10_000, now=10.0 + 350.0)


def test_a_login_as_another_user_leaves_the_members(process: Process) -> None:
    connection = process.connect()
    assert join(connection, member())
    assert connection.join((1, ("bob", "")), member(), SIZE, False, 10.0)
    assert process.all.of(ALICE, 10.0).orphans == 1


def test_clients_without_members_are_forgotten() -> None:
    process = Process()
    first = process.connect()
    for number in range(CLIENTS_AT_MOST):
        connection = process.connect()
        assert connection.join((number, ("u", "")), member(), 10, False, 10.0)
        connection.end()
    assert process.all.clients == CLIENTS_AT_MOST
    assert not first.has_orphans((0, ("other", "")), 10.0)
    assert process.all.clients == CLIENTS_AT_MOST + 1
    for number in range(CLIENTS_AT_MOST, 3 * CLIENTS_AT_MOST):
        assert not process.connect().has_orphans((number, ("u", "")), 10.0 + 1000.0)
    assert process.all.clients <= 2 * CLIENTS_AT_MOST + 1
    # A connection that has seen its client forgotten counts with the others of the client.
    assert first.join((0, ("other", "")), member(), SIZE, False, 2000.0)
    assert process.all.of((0, ("other", "")), 2000.0).size == SIZE + MEMBER_BYTES
