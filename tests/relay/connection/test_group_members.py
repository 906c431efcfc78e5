"""Members of groups of one client: how many bytes of them it may give to a broker."""

from typing import Any

import pytest

from proxy.relay.budgets.group_members import GroupMembers
from proxy.relay.close_reasons import CLIENT_PROTOCOL_ERROR, RelayError
from proxy.relay.counters.traffic import Traffic
from tests.support.messages.groups import consumer_heartbeat, heartbeat, join, sync
from tests.support.messages.kio_messages import Ports, request_frame
from tests.support.stories.playbook import Playbook, drive, engine

MOST = 2 << 20
SIZE = 900_000
"""Two members of this size have room."""


class Process:
    """Connections of clients to brokers through one process."""

    def __init__(self) -> None:
        self._members = GroupMembers(MOST)

    def connect(self, principal: str = "alice", node_id: int = 1) -> Playbook:
        return Playbook(
            drive(
                engine({}),
                Ports(),
                Traffic(),
                principal=principal,
                group_members=self._members,
                node_id=node_id,
            )
        )


@pytest.fixture
def process() -> Process:
    return Process()


def forwards(story: Playbook, message: Any) -> None:
    frame = request_frame(message)
    story.client(frame).to_broker(frame)


def closes(story: Playbook, message: Any) -> None:
    with pytest.raises(RelayError) as raised:
        story.client(request_frame(message))
    assert raised.value.reason == CLIENT_PROTOCOL_ERROR
    story.to_broker()


@pytest.mark.parametrize(
    "large", [join("g3", "m3", SIZE), sync("g1", "m1", SIZE), join("g3", "m3", 3 * SIZE)]
)
def test_a_client_cannot_fill_the_memory_of_a_broker(process: Process, large: Any) -> None:
    forwards(process.connect(), join("g1", "m1", SIZE))
    forwards(process.connect(), join("g2", "m2", SIZE))
    closes(process.connect(), large)


def test_what_a_member_has_sent_before_is_replaced(process: Process) -> None:
    story = process.connect()
    for _ in range(10):
        forwards(story, join("g1", "m1", SIZE))


def test_other_clients_and_brokers_have_room_of_their_own(process: Process) -> None:
    for who in ({}, {"principal": "bob"}, {"node_id": 2}):
        forwards(process.connect(**who), join("g1", "m1", SIZE))
        forwards(process.connect(**who), join("g2", "m2", SIZE))


def test_the_end_of_a_connection_makes_no_room_before_the_session_is_over(process: Process) -> None:
    for number in range(2):
        story = process.connect()
        forwards(story, join(f"g{number}", "m", SIZE, session_seconds=30, rebalance_seconds=60))
        story.relay.end()
    closes(process.connect().at(1.0), join("g2", "m", SIZE))
    closes(process.connect().at(89.0), join("g2", "m", SIZE))
    forwards(process.connect().at(92.0), join("g2", "m", SIZE))


def test_a_member_that_another_connection_keeps_in_its_group(process: Process) -> None:
    other = process.connect()
    for number in range(2):
        story = process.connect()
        forwards(story, join(f"g{number}", "m", SIZE))
        story.relay.end()
        forwards(other, heartbeat(f"g{number}", "m"))
    closes(process.connect().at(5000.0), join("g2", "m", SIZE))


def test_subscriptions_of_the_consumer_protocol_count(process: Process) -> None:
    for number in range(MOST // 420_000):
        forwards(process.connect(), consumer_heartbeat("g", f"m{number}", 10_000))
    closes(process.connect(), consumer_heartbeat("g", "another", 10_000))
