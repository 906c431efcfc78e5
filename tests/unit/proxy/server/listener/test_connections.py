"""ListenerConnections: which clients get a relay, and what is counted when they come and go."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from proxy.config.settings import Listener, Upstream
from proxy.quota.engines import QuotaEngines
from proxy.quota.identity import DEFAULT, QuotaEntity
from proxy.quota.kinds import load_kinds
from proxy.quota.kinds.connection_creation import MAX_WAIT_SECONDS
from proxy.quota.limits.limits import Limits
from proxy.quota.measure.bucket import Bucket
from proxy.quota.verdict import ALLOW
from proxy.relay.close_reasons import (
    CLIENT_PROTOCOL_ERROR,
    CONNECTION_RATE,
    NO_PRINCIPAL,
    TOO_MANY_CONNECTIONS,
    RelayError,
)
from proxy.relay.counters.traffic import Traffic
from proxy.relay.relay import Relay
from proxy.relay.settings import RelaySettings
from proxy.security.access import PLAINTEXT
from proxy.security.settings import Principal, Tls
from proxy.server.listener.accept.admission import LimitedAdmission
from proxy.server.listener.accept.tls_opener import TLS_HANDSHAKE_FAILED
from proxy.server.listener.brokers.bootstrap_router import STAND_IN, BootstrapRouter
from proxy.server.listener.brokers.dialer import BrokerDialer
from proxy.server.listener.client_identification import ClientIdentification
from proxy.server.listener.closed_connections import ClosedConnections
from proxy.server.listener.connections import MAX_UNSERVED, ListenerConnections
from proxy.server.listener.ports.broker_ports import BrokerPorts
from proxy.server.listener.relays import ClientRelays
from proxy.tasks import Tasks
from proxy.upstream.cluster_access import ClusterAccess
from proxy.upstream.refresh import ClusterRefresh
from proxy.upstream.topic_names import ClusterTopicNames
from proxy.wire.protected_topics import ProtectedTopics

NOW = 50.0
RATE = 2.0
ONE_ADDRESS = {QuotaEntity(None, None, DEFAULT): {"connection_creation_rate": RATE}}
BOOTSTRAP = (("k", 9092),)
NAMED_BY_RULE: dict[str, Any] = {
    "tls": Tls(certificate="c", key="k"),
    "principal": Principal(source="tls", rules="RULE:^O=(.*)$/$1/"),
}


class Client:
    """A connection, as far as the listener looks at it."""

    def __init__(self, address: str = "10.0.0.1", node_id: int | None = 3, admitted: bool = False) -> None:
        self.address = address
        self.peer = f"{address}:5000"
        self.node_id = node_id
        self.admitted = admitted
        self.tls: Any = None
        self.served_at: list[float] = []
        self.closed_at: list[float] = []
        self.follower: tuple[int, int] | None = None
        self.drained: list[float] = []
        self.aborted = 0
        self.principal = ""
        self.keeps_broker = False
        self.session = self
        self.relay: Relay | None = None

    def keep_broker(self) -> None:
        self.keeps_broker = True

    def serve_at(self, time: float, bucket: Bucket) -> None:
        assert bucket.quota == "connection_creation_rate"
        self.served_at.append(time)

    def close_at(self, time: float) -> None:
        self.closed_at.append(time)

    @property
    def unserved(self) -> bool:
        return bool(self.served_at)

    @property
    def closes_unserved(self) -> bool:
        return bool(self.closed_at)

    def drain(self, now: float) -> None:
        self.drained.append(now)

    def abort(self) -> None:
        self.aborted += 1


class Kit:
    def __init__(self, max_connections: int = 100, max_per_address: int = 0, **keys: Any) -> None:
        listener = Listener(upstream=Upstream(bootstrap=("k:9092",)), **keys)
        cluster = ClusterRefresh("test", ClusterAccess(BOOTSTRAP, 1.0), lambda view: None)
        ports = BrokerPorts(listener, range(0), lambda node_id, bound: bound.close())
        self.router = router = BootstrapRouter(BOOTSTRAP, cluster, ports, lambda: NOW)
        topic_names = ClusterTopicNames(cluster, lambda seconds, call: None)
        self.closed = ClosedConnections("clients")
        self.admission = LimitedAdmission(max_connections, max_per_address)
        self.connections = ListenerConnections(
            admission=self.admission,
            identification=ClientIdentification(listener, ports),
            router=router,
            relays=ClientRelays(
                engines=QuotaEngines(load_kinds(), Limits(ONE_ADDRESS)),
                addresses=ports.addresses,
                traffic=Traffic(),
                settings=RelaySettings(
                    max_frame_bytes=1 << 20,
                    protected=ProtectedTopics(frozenset()),
                    topic_names=topic_names,
                ),
            ),
            ports=ports,
            topic_names=topic_names,
            dialer=BrokerDialer(router=router, cluster=cluster, access=PLAINTEXT, connect_seconds=1.0),
            local_responses=None,
            closed=self.closed,
            tasks=Tasks(),
            time=lambda: NOW,
        )

    def open(self, client: Any) -> Relay | None:
        if not client.admitted:
            self.connections.enter(client.address, client.peer)
        return self.connections.opened(client, client.address)

    def end(self, client: Any, reason: str) -> None:
        self.connections.ended(client, reason)


def test_a_connection_is_open_until_it_ends_and_closing_until_its_sockets_are_closed() -> None:
    kit = Kit()
    client: Any = Client()
    assert kit.open(client) is not None
    assert kit.connections.open == {client}
    kit.end(client, "idle")
    assert (kit.connections.open, kit.connections.closing) == (set(), {client})
    assert kit.closed.by_reason == {"idle": 1}
    kit.connections.left(client)
    assert kit.connections.closing == set()


def test_a_bootstrap_connection_gets_a_broker() -> None:
    kit, client = Kit(), Client(node_id=None)
    assert kit.open(client) is not None
    assert client.node_id == STAND_IN
    assert not client.keeps_broker


def test_a_bootstrap_connection_gets_another_broker_while_there_is_one() -> None:
    kit, client = Kit(), Client(node_id=None)
    connection: Any = client
    kit.open(client)
    kit.router.mark_unreachable(STAND_IN)
    assert kit.connections.reroute(connection) is None, "upstream.bootstrap has one address"
    broker = Client(node_id=3)
    kit.open(broker)
    assert broker.keeps_broker


def test_a_connection_counts_until_its_sockets_are_closed() -> None:
    kit, first = Kit(max_connections=1), Client()
    assert kit.open(first) is not None
    assert kit.connections.room.full
    kit.end(first, "idle")
    assert kit.connections.room.full, "its sockets are still open"
    kit.connections.left(cast("Any", first))
    kit.connections.left(cast("Any", first))
    assert not kit.connections.room.full
    assert kit.open(Client()) is not None
    assert kit.connections.room.full, "it was given back once"


def test_a_connection_too_many_of_an_address_is_rejected() -> None:
    kit = Kit(max_per_address=1)
    assert kit.connections.enter("10.0.0.1", "10.0.0.1:1")
    assert not kit.connections.enter("10.0.0.1", "10.0.0.1:2")
    assert kit.closed.by_reason == {TOO_MANY_CONNECTIONS: 1}
    kit.connections.abandoned("10.0.0.1")
    assert kit.connections.enter("10.0.0.1", "10.0.0.1:3")


@pytest.mark.parametrize(("node_id", "broker"), [(3, "broker 3"), (None, "bootstrap")])
def test_a_connection_that_fails_is_logged_with_its_client_and_broker(
    node_id: int | None, broker: str, caplog: pytest.LogCaptureFixture
) -> None:
    client: Any = Client(node_id=node_id)
    error = RelayError(CLIENT_PROTOCOL_ERROR, "a reason")
    Kit().connections.failed(client, error)
    assert [record.args for record in caplog.records] == [("clients", client.peer, "", "", broker, error)]


def test_a_connection_that_fails_is_logged_with_its_user_and_client_id(
    caplog: pytest.LogCaptureFixture,
) -> None:
    client: Any = Client()
    client.relay = SimpleNamespace(status=SimpleNamespace(sender=("alice", "billing")))
    Kit().connections.failed(client, RelayError(CLIENT_PROTOCOL_ERROR, "a reason"))
    [record] = caplog.records
    fields = {name: getattr(record, name) for name in ("listener", "address", "user", "client_id", "broker")}
    assert fields == {
        "listener": "clients",
        "address": client.peer,
        "user": "alice",
        "client_id": "billing",
        "broker": "3",
    }


def test_a_client_that_is_not_identified_does_not_count() -> None:
    kit = Kit(1, **NAMED_BY_RULE)
    client = Client()
    client.tls = SimpleNamespace(getpeercert=lambda binary_form: b"")
    for _ in range(3):
        assert kit.open(client) is None
    assert kit.connections.open == set()
    assert kit.closed.by_reason == {NO_PRINCIPAL: 3}


def test_connections_over_the_rate_are_served_late() -> None:
    kit = Kit()
    clients = [Client() for _ in range(4)]
    for client in clients:
        assert kit.open(client) is not None
    assert [client.served_at for client in clients] == [[], [], [NOW + 1 / RATE], [NOW + 2 / RATE]]
    elsewhere = Client("10.0.0.2")
    kit.open(elsewhere)
    assert elsewhere.served_at == []


def test_connections_that_would_wait_too_long_are_closed_and_cost_others_nothing() -> None:
    kit = Kit(max_connections=10_000)
    waiting = int(RATE + RATE * MAX_WAIT_SECONDS)
    clients = [Client() for _ in range(waiting + MAX_UNSERVED + 5)]
    relays = [kit.open(client) for client in clients]
    closed = clients[waiting : waiting + MAX_UNSERVED]
    assert [client for client in clients if client.closed_at] == closed
    assert {at for client in closed for at in client.closed_at} == {NOW + 1.0}
    # More of them than that do not wait for their end, and are not counted as open.
    assert relays[-5:] == [None] * 5
    assert kit.closed.by_reason == {CONNECTION_RATE: 5}
    assert len(kit.connections.open) == waiting + MAX_UNSERVED
    kit.end(closed[0], CONNECTION_RATE)
    late = Client()
    kit.open(late)
    assert late.closed_at == [NOW + 1.0]


def test_a_connection_that_ends_before_it_is_served_leaves_its_turn_to_others() -> None:
    kit = Kit()
    clients = [Client() for _ in range(4)]
    for client in clients:
        kit.open(client)
    for client in clients:
        kit.end(client, "client_closed")
    late = Client()
    kit.open(late)
    assert late.served_at == [NOW + 1 / RATE]


def test_over_tls_connections_are_closed_likewise() -> None:
    kit = Kit(max_connections=10_000)
    waiting = int(RATE + RATE * MAX_WAIT_SECONDS)
    for _ in range(waiting + MAX_UNSERVED + 5):
        kit.connections.enter("10.0.0.1", "10.0.0.1:1")
    verdicts = [kit.connections.admit(3, "10.0.0.1", "10.0.0.1:1") for _ in range(waiting + MAX_UNSERVED + 5)]
    assert [verdict is not None and verdict.closes for verdict in verdicts[:-5]] == (
        [False] * waiting + [True] * MAX_UNSERVED
    )
    assert verdicts[-5:] == [None] * 5
    assert kit.closed.by_reason == {CONNECTION_RATE: 5}
    kit.connections.throttle_ended("10.0.0.1")
    assert kit.closed.by_reason == {CONNECTION_RATE: 6}
    verdict = kit.connections.admit(3, "10.0.0.1", "10.0.0.1:1")
    assert verdict is not None
    assert verdict.closes


def test_over_tls_a_client_counts_once_and_before_its_handshake() -> None:
    kit = Kit(max_connections=1)
    connections = kit.connections
    assert connections.enter("10.0.0.1", "10.0.0.1:1")
    assert connections.admit(3, "10.0.0.1", "10.0.0.1:1") is ALLOW
    client = Client(admitted=True)
    connection: Any = client
    assert kit.open(client) is not None
    assert connections.room.full
    kit.end(client, "idle")
    connections.left(connection)
    assert not connections.room.full


def test_over_tls_the_rate_is_charged_once_and_before_the_handshake() -> None:
    kit = Kit()
    verdicts = [kit.connections.admit(None, "10.0.0.1", "10.0.0.1:1") for _ in range(3)]
    assert [verdict and verdict.throttle_seconds for verdict in verdicts] == [0.0, 0.0, 1 / RATE]
    client = Client(admitted=True)
    kit.open(client)
    assert client.served_at == []


@pytest.mark.parametrize(("why", "counted"), [("no common cipher", {TLS_HANDSHAKE_FAILED: 1}), ("", {})])
def test_a_failed_handshake_frees_its_place(why: str, counted: dict[str, int]) -> None:
    kit = Kit(max_connections=1)
    for _ in range(2):
        assert not kit.connections.room.full
        kit.connections.enter("10.0.0.1", "10.0.0.1:1")
        assert kit.connections.admit(3, "10.0.0.1", "10.0.0.1:1") is not None
        kit.closed.by_reason.clear()
        kit.connections.handshake_failed("10.0.0.1", "10.0.0.1:1", why)
        assert kit.closed.by_reason == counted


def test_lags_of_followers() -> None:
    kit = Kit()
    clients = [Client(), Client(), Client()]
    for client in clients:
        kit.open(client)
    clients[0].follower, clients[1].follower = (2, 70), (3, 0)
    assert sorted(kit.connections.follower_lags()) == [(2, 70), (3, 0)]


def test_draining_and_aborting_reach_open_and_closing_connections() -> None:
    kit = Kit()
    clients = [Client(), Client()]
    for client in clients:
        kit.open(client)
    kit.end(clients[0], "idle")
    kit.connections.drain(7.0)
    kit.connections.abort()
    assert [(client.drained, client.aborted) for client in clients] == [([7.0], 1), ([7.0], 1)]
