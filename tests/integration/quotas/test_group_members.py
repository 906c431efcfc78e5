"""Members of groups with much metadata, before a real broker."""

from contextlib import ExitStack, suppress
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from proxy.demo.embedded_kafka import EmbeddedKafka
from tests.support.kafka.raw_client import RawClient
from tests.support.messages.groups import join, sync
from tests.support.messages.requests import find_coordinator
from tests.support.process.proxy_process import ProxyProcess, ProxyRunner
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kafka
MOST = 6_000_000
SIZE = 2_500_000
"""Two members of this size have room; a broker takes one of 4 MB, too."""


@pytest.fixture(scope="module")
def proxy(kafka: EmbeddedKafka, run_proxy: ProxyRunner) -> ProxyProcess:
    proxy = run_proxy(kafka.bootstrap, settings={"limits": {"max_group_member_bytes": MOST}})
    with RawClient(kafka.port(1)) as client:
        wait_until(
            lambda: not client.ask(find_coordinator("group-members")).coordinators[0].error_code,
            "a coordinator",
        )
    return proxy


def member_id(client: RawClient, group: str) -> str:
    """The id that the coordinator gives to a new member, once the broker is the group's coordinator."""

    def given() -> str:
        response = client.ask(join(group, "", 10))
        return str(response.member_id) if response.error_code == ErrorCode.member_id_required else ""

    return wait_until(given, f"a member id in {group}")


def joined(client: RawClient, group: str, size: int) -> Any:
    """Join a group of one member, which is complete after group.initial.rebalance.delay.ms."""
    return client.ask(join(group, member_id(client, group), size))


def test_a_client_cannot_fill_the_memory_of_a_broker(proxy: ProxyProcess) -> None:
    with ExitStack() as stack:
        clients = [stack.enter_context(RawClient(proxy.broker_port(1))) for _ in range(3)]
        for number, client in enumerate(clients[:2]):
            assert joined(client, f"group-members-{number}", SIZE).error_code == ErrorCode.none
        last = clients[2]
        too_much = join("group-members-2", member_id(last, "group-members-2"), SIZE)
        with suppress(ConnectionError):  # the proxy does not read all of it
            last.send(too_much)
        assert last.ended()
        small = stack.enter_context(RawClient(proxy.broker_port(1)))
        response = joined(small, "group-members-small", 1000)
        assert response.error_code == ErrorCode.none
        request = sync("group-members-small", response.member_id, 1000, response.generation_id)
        assert len(small.ask(request).assignment) == 1000
    assert proxy.log_lines(r".*JoinGroup of .*limits\.max_group_member_bytes.*")
