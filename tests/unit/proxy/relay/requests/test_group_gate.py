"""GroupGate: which bytes of a request count; tests/relay/connection/test_group_members.py has the stories."""

from typing import Any, Final

import pytest

from proxy.quota.identity import Identity
from proxy.relay.budgets.group_members import MEMBER_BYTES, GroupMembers
from proxy.relay.requests.group_gate import GroupGate
from proxy.wire.errors import Malformed
from tests.support.messages.groups import heartbeat, join, sync
from tests.support.messages.received import received

ALICE: Final = Identity("alice", "app", "127.0.0.1")
MOST: Final = 200_000


def take(gate: GroupGate, message: Any) -> int:
    """Give the gate a request, and return the size of its frame."""
    frame, header, body_at = received(message)
    gate.take(frame, header, body_at, ALICE, 10.0)
    return sum(map(len, frame.pieces))


def test_a_join_counts_as_a_whole() -> None:
    members = GroupMembers(MOST)
    size = take(GroupGate(members, 1), join("g", "m", 5000))
    assert members.of((1, ("alice", "")), 10.0).size == size + MEMBER_BYTES


def test_a_join_that_gets_an_id_counts_without_its_metadata() -> None:
    members = GroupMembers(MOST)
    take(GroupGate(members, 1), join("g", "", 150_000))
    assert MEMBER_BYTES < members.of((1, ("alice", "")), 10.0).size < 2 * MEMBER_BYTES


@pytest.mark.parametrize("message", [join("g", "m", MOST), sync("g", "m", MOST)])
def test_what_has_no_room(message: Any) -> None:
    with pytest.raises(Malformed, match=rf"{MOST} bytes at the broker \(limits.max_group_member_bytes\)"):
        take(GroupGate(GroupMembers(MOST), 1), message)


def test_a_heartbeat_only_reminds() -> None:
    members = GroupMembers(MOST)
    first, other = GroupGate(members, 1), GroupGate(members, 1)
    take(first, join("g", "m", 5000))
    size = members.of((1, ("alice", "")), 10.0).size
    first.end()
    take(other, heartbeat("g", "m"))
    client = members.of((1, ("alice", "")), 10.0)
    assert (client.size, client.orphans) == (size, 0)
