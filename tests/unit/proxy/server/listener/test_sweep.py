"""Sweep: connections that are idle or send no request are closed, and ports in use are retried."""

import socket
from types import SimpleNamespace
from typing import Any

import pytest

from proxy.config.settings import ConnectionLimits, Listener, Upstream
from proxy.relay.close_reasons import CLIENT_CLOSED, HANDSHAKE_TIMEOUT, IDLE
from proxy.server.listener.brokers.rejected_addresses import RejectedAddresses
from proxy.server.listener.closed_connections import ClosedConnections
from proxy.server.listener.ports.broker_ports import BrokerPorts
from proxy.server.listener.sweep import Sweep

LIMITS = ConnectionLimits(handshake_seconds=10, idle_seconds=60)


class Client:
    def __init__(
        self,
        *,
        seen: bool,
        opened_at: float,
        heard_at: float,
        waits: bool = False,
        ended_at: float = 0.0,
    ) -> None:
        self.first_request_seen = seen
        self.opened_at = opened_at
        self.heard_at = heard_at
        self.waits_for_broker = waits
        self.client_ended_at = ended_at
        self.reason = ""
        self.session = self

    def give_up(self, reason: str, what: str) -> None:
        self.reason = reason


class Watch:
    def __init__(self) -> None:
        self.checked: list[float] = []

    def check(self, now: float) -> None:
        self.checked.append(now)

    def warnings(self) -> list[str]:
        return []


def sweep_of(*clients: Client, ports: Any = None, watch: Any = None, closed: Any = None) -> Sweep:
    connections: Any = SimpleNamespace(open=set(clients))
    no_ports: Any = SimpleNamespace(retry=lambda: None)
    return Sweep(
        connections=connections,
        ports=ports or no_ports,
        watch=watch or Watch(),
        closed=closed or ClosedConnections("clients"),
        rejected=RejectedAddresses("clients"),
        limits=LIMITS,
    )


@pytest.mark.parametrize(
    ("client", "reason"),
    [
        (Client(seen=False, opened_at=90.0, heard_at=90.0), ""),
        (Client(seen=False, opened_at=89.0, heard_at=100.0), HANDSHAKE_TIMEOUT),
        (Client(seen=True, opened_at=0.0, heard_at=40.0), ""),
        (Client(seen=True, opened_at=0.0, heard_at=39.0), IDLE),
        (Client(seen=True, opened_at=0.0, heard_at=0.0, waits=True), ""),
        (Client(seen=True, opened_at=0.0, heard_at=99.0, waits=True, ended_at=99.0), ""),
        (Client(seen=True, opened_at=0.0, heard_at=90.0, waits=True, ended_at=94.0), CLIENT_CLOSED),
    ],
)
def test_which_connections_are_closed(client: Client, reason: str) -> None:
    sweep_of(client).sweep(100.0)
    assert client.reason == reason


def test_counters_are_checked() -> None:
    watch = Watch()
    sweep_of(watch=watch).sweep(100.0)
    assert watch.checked == [100.0]


def test_omitted_log_lines_are_counted() -> None:
    flushed: list[bool] = []
    sweep_of(closed=SimpleNamespace(flush_log=lambda: flushed.append(True))).sweep(100.0)
    assert flushed == [True]


def test_a_port_that_was_in_use_is_bound_once_it_is_free() -> None:
    bound: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as taken:
        base = taken.getsockname()[1]
        listener = Listener(upstream=Upstream(bootstrap=("a:1",)), broker_port_base=base)
        ports = BrokerPorts(listener, range(base, base + 1), lambda node_id, bound_: bound.append(bound_))
        ports.advertised(0, "internal", 9092)
        sweep = sweep_of(ports=ports)
        sweep.sweep(100.0)
        assert list(ports.without_port) == [0]
    sweep.sweep(101.0)
    assert (ports.without_port, len(bound)) == ({}, 1)
    bound[0].close()
