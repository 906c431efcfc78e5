"""Consumer groups rebalance through the proxy when members join and leave."""

from collections.abc import Callable
from contextlib import ExitStack

import confluent_kafka
import pytest

from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.clients import Confluent, new_group
from tests.support.kafka.members import MEMBERS, Member
from tests.support.kafka.topics import make_topic
from tests.support.messages.numbered import number
from tests.support.process.proxy_process import ProxyProcess
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kafka
PARTITIONS = {0, 1, 2, 3}
COUNT = 100


@pytest.mark.parametrize("name", MEMBERS)
def test_members_come_and_go(name: str, kafka: EmbeddedKafka, proxy: ProxyProcess) -> None:
    group = new_group()
    make_topic(kafka, group, partitions=len(PARTITIONS))
    seen: set[int] = set()
    members: list[Member] = []

    def poll_until(condition: Callable[[], bool], what: str) -> None:
        def polled() -> bool:
            for member in members:
                seen.update(number(message.value) for message in member.poll())
            return condition()

        wait_until(polled, what, 60)

    def read_all() -> None:
        seen.clear()
        Confluent().send(proxy.bootstrap, group, COUNT)
        poll_until(lambda: seen == set(range(COUNT)), "every message at some member")

    with ExitStack() as leaving:
        first = MEMBERS[name](kafka, proxy.bootstrap, group, group)
        leaving.callback(first.leave)
        members.append(first)
        poll_until(lambda: first.partitions() == PARTITIONS, "all partitions at the first member")
        read_all()

        second = MEMBERS[name](kafka, proxy.bootstrap, group, group)
        left = leaving.enter_context(ExitStack())
        left.callback(second.leave)
        members.append(second)
        poll_until(
            lambda: (
                len(first.partitions()) == len(second.partitions()) == 2
                and first.partitions() | second.partitions() == PARTITIONS
            ),
            "half of the partitions at each member",
        )
        read_all()

        members.remove(second)
        left.close()
        poll_until(lambda: first.partitions() == PARTITIONS, "all partitions back at the first member")
        read_all()


def test_a_share_group_divides_the_messages(kafka: EmbeddedKafka, proxy: ProxyProcess) -> None:
    """KIP-932, with librdkafka's share consumers: each message goes to one of them."""
    group = new_group()
    make_topic(kafka, group, partitions=2)
    of_group = ("--bootstrap-server", proxy.bootstrap, "--entity-type", "groups", "--entity-name", group)
    earliest = ("--alter", "--add-config", "share.auto.offset.reset=earliest")
    kafka.run_tool("kafka-configs", *of_group, *earliest)
    config = {"bootstrap.servers": proxy.bootstrap, "group.id": group}
    with confluent_kafka.ShareConsumer(config) as first, confluent_kafka.ShareConsumer(config) as second:
        for consumer in (first, second):
            consumer.subscribe([group])
        got: list[int] = []

        def poll() -> bool:
            for consumer in (first, second):
                messages = consumer.poll(0.2)
                assert all(message.error() is None for message in messages)
                got.extend(number(message.value() or b"") for message in messages)
            return len(got) >= COUNT

        Confluent().send(proxy.bootstrap, group, COUNT)
        wait_until(poll, "all messages", 60)
    assert sorted(got) == list(range(COUNT))
