"""LocalResponses: which connection gets which response, and how errors end a connection."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from proxy.admin.broker import Reply
from proxy.admin.dispatch import AdminApis
from proxy.quota.cluster_view import ClusterView
from proxy.quota.verdict import Verdict
from proxy.relay.close_reasons import CLIENT_PROTOCOL_ERROR, RelayError
from proxy.server.listener import local_responses
from proxy.server.listener.local_responses import ANSWER_FAILED, LocalResponses
from proxy.upstream.cluster_access import ClusterAccess
from proxy.upstream.refresh import ClusterRefresh
from proxy.wire.addresses import BrokerAddress
from proxy.wire.errors import Malformed

ADMIN_API = min(AdminApis.api_keys)
WAIT = Verdict(1.5)
VIEW = ClusterView("c", {3: BrokerAddress(3, "b", 9)}, {})


class Apis:
    """Responds with its own name, or raises."""

    api_keys = AdminApis.api_keys

    def __init__(self, name: str, failure: BaseException | None = None) -> None:
        self.authority = SimpleNamespace()
        self.brokers: list[Any] = []
        self._name = name
        self._failure = failure

    async def answer(self, request: Any, broker: Any) -> Any:
        self.brokers.append(broker)
        if self._failure is not None:
            raise self._failure
        if self._name == "forwards":
            return Reply(b"request", forwards=True)
        return Reply(self._name.encode(), throttle=WAIT, delay_seconds=1.5)


class Connection:
    node_id = 3
    address_stated = False

    def __init__(self) -> None:
        self.got: list[Any] = []
        self.reads = asyncio.Event()
        self.reads.set()
        self.charged: list[float] = []
        self.session = self
        self.request: Any = None

    def handled(self, request: Any) -> "Connection":
        self.request = request
        return self

    def answer(self, frame: bytes, throttle: Verdict, delay_seconds: float) -> None:
        self.got.append((frame, throttle, delay_seconds))

    async def taken(self) -> None:
        await self.reads.wait()

    def gone(self) -> bool:
        return False

    async def earlier_done(self) -> None:
        pass

    def forward(self, frame: bytes) -> None:
        self.got.append(("forwarded", frame))

    def charge_work(self, seconds: float) -> None:
        self.charged.append(seconds)

    def fail(self, error: RelayError) -> None:
        self.got.append(error.reason)

    def close(self, reason: str) -> None:
        self.got.append(reason)

    async def ask(self, frame: bytes) -> bytes:
        return b""


async def respond(admin: Any, connection: Any = None) -> list[Any]:
    cluster = ClusterRefresh("clients", ClusterAccess((("k", 9092),), 1.0), lambda view: None)
    cluster.view = VIEW
    counts: Any = SimpleNamespace()
    responses = LocalResponses(admin=admin, cluster=cluster, counts=counts, known_to_brokers=True)
    header = SimpleNamespace(api_key=ADMIN_API, correlation_id=7)
    request: Any = SimpleNamespace(header=header, exchange=SimpleNamespace(client=SimpleNamespace()))
    connection = connection or Connection()
    try:
        await responses.respond(connection, request)
    except ZeroDivisionError:
        connection.got.append("raised")
    got: list[Any] = connection.got
    return got


async def test_a_connection_gets_the_response_to_its_request() -> None:
    admin = Apis("admin")
    assert await respond(admin) == [(b"admin", WAIT, 1.5)]
    [broker] = admin.brokers
    assert (broker.node_id, broker.cluster_id) == (3, "c")


@pytest.mark.parametrize("failure", [None, Malformed("no request"), RelayError("broker_closed", "gone")])
async def test_the_work_on_a_request_is_charged(failure: BaseException | None) -> None:
    connection = Connection()
    await respond(Apis("admin", failure), connection)
    [seconds] = connection.charged
    assert seconds > 0


async def test_a_stated_address_gives_no_rights_of_this_host(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[bool] = []

    def rights(*_: object, address_stated: bool, **__: object) -> None:
        told.append(address_stated)

    monkeypatch.setattr(local_responses, "ClientRights", rights)
    for stated in (False, True):
        monkeypatch.setattr(Connection, "address_stated", stated)
        await respond(Apis("admin"))
    assert told == [False, True]


async def test_a_request_may_be_forwarded_after_all() -> None:
    assert await respond(Apis("forwards")) == [("forwarded", b"request")]


@pytest.mark.parametrize(
    ("failure", "got"),
    [
        (Malformed("no request"), [CLIENT_PROTOCOL_ERROR]),
        (RelayError("broker_closed", "gone"), ["broker_closed"]),
        (ZeroDivisionError(), [ANSWER_FAILED, "raised"]),
    ],
)
async def test_an_error_ends_the_connection(failure: BaseException, got: list[str]) -> None:
    assert await respond(Apis("admin", failure)) == got


async def test_a_handler_learns_when_its_response_has_been_taken() -> None:
    taken: list[bool] = []

    class Keeping(Apis):
        async def answer(self, request: Any, broker: Any) -> Any:
            return Reply(b"large", taken=lambda: taken.append(True))

    connection = Connection()
    connection.reads.clear()
    responding = asyncio.ensure_future(respond(Keeping("admin"), connection))
    for _ in range(10):
        await asyncio.sleep(0)
    assert connection.got
    assert not taken
    connection.reads.set()
    await responding
    assert taken == [True]
