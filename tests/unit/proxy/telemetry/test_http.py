"""The admin port: /readyz tells what keeps clients from being served, and what else is wrong."""

from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from prometheus_client.core import GaugeMetricFamily

from proxy.quota.engines import ALL_BROKERS
from proxy.quota.measure.bucket_state import BucketState
from proxy.telemetry.console import MAX_BODY, READING, ConsoleReply, ConsoleRequest
from proxy.telemetry.guard import ADMIN_PORT, Guard
from proxy.telemetry.http import AdminSite
from proxy.telemetry.quota_table import QuotaTable
from tests.support.quotas.buckets import bucket_state


def site(
    problems: list[str], warnings: list[str], buckets: list[tuple[int, BucketState]]
) -> TestClient[web.Request, web.Application]:
    pages = AdminSite(
        families=list,
        problems=lambda: problems,
        warnings=lambda: warnings,
        table=QuotaTable(lambda: buckets, lambda: 100.0),
    )
    return TestClient(TestServer(pages.application()))


@pytest.mark.parametrize(
    ("problems", "warnings", "status"),
    [
        ([], [], 200),
        ([], ["the topic is away"], 200),
        (["no broker responds"], [], 503),
        (["no broker responds"], ["the topic is away"], 503),
    ],
)
async def test_readyz(problems: list[str], warnings: list[str], status: int) -> None:
    async with site(problems, warnings, []) as client:
        response = await client.get("/readyz")
        assert response.status == status
        assert await response.json() == {
            "ready": status == 200,
            "problems": problems,
            "warnings": warnings,
            "certificate_days_left": {},
        }


@pytest.mark.parametrize(("token", "detail"), [("", False), ("wrong", False), ("t0ken", True)])
async def test_readyz_has_no_details_without_the_token(token: str, detail: bool) -> None:
    pages = AdminSite(
        families=lambda: (),
        problems=lambda: ["secret host"],
        warnings=list,
        table=QuotaTable(),
        guard=Guard("0.0.0.0", lambda: "t0ken"),
    )
    async with TestClient(TestServer(pages.application())) as client:
        response = await client.get("/readyz", headers={"Authorization": f"Bearer {token}"})
        assert response.status == 503
        assert ("secret host" in await response.text()) is detail


async def test_metrics_of_the_process_come_with_the_others() -> None:
    pages = AdminSite(
        families=lambda: (None, GaugeMetricFamily("a_family", "", value=1)),
        process=lambda: [GaugeMetricFamily("a_process", "", value=2)],
        problems=list,
        warnings=list,
        table=QuotaTable(),
    )
    async with TestClient(TestServer(pages.application())) as client:
        text = await (await client.get("/metrics")).text()
    assert {"a_family 1.0", "a_process 2.0"} <= set(text.splitlines())


async def test_a_bucket_of_all_brokers() -> None:
    state = bucket_state("controller_mutation_rate", user="alice")
    async with site([], [], [(ALL_BROKERS, state)]) as client:
        response = await (await client.get("/api/quotas")).json()
    assert [bucket["broker"] for bucket in response["quotas"]] == [None]


async def test_quotas() -> None:
    states = [
        (
            1,
            bucket_state(
                "producer_byte_rate",
                user="alice",
                throttled_until=101.0,
                throttled_requests=2,
                throttle_seconds=1.5,
            ),
        ),
        (
            2,
            bucket_state(
                "connection_creation_rate",
                limit=3.0,
                throttled_until=99.0,
                throttled_requests=2,
                throttle_seconds=1.5,
                mode="observe",
                ip="10.0.0.1",
            ),
        ),
    ]
    async with site([], [], states) as client:
        response = await (await client.get("/api/quotas")).json()
    first, second = response["quotas"]
    assert first == {
        "kind": "producer_byte_rate",
        "broker": 1,
        "entity": {"user": "alice"},
        "mode": "enforce",
        "limit": 5.0,
        "scope": "broker",
        "share": 5.0,
        "rate": 1.0,
        "throttled": True,
        "throttled_requests": 2,
        "throttle_seconds": 1.5,
    }
    assert (second["entity"], second["mode"], second["throttled"]) == ({"ip": "10.0.0.1"}, "observe", False)


async def test_many_quotas_are_one_response() -> None:
    states = [
        (
            1,
            bucket_state("producer_byte_rate", user=f"u{n}", throttled_requests=2, throttle_seconds=1.5),
        )
        for n in range(1201)
    ]
    async with site([], [], states) as client:
        response = await (await client.get("/api/quotas")).json()
    assert [bucket["entity"]["user"] for bucket in response["quotas"]] == [f"u{n}" for n in range(1201)]


async def test_metrics_in_the_requested_format() -> None:
    pages = AdminSite(
        families=lambda: [GaugeMetricFamily("up", "Up.", value=1), None],
        problems=list,
        warnings=list,
        table=QuotaTable(),
    )
    async with TestClient(TestServer(pages.application())) as client:
        plain = await client.get("/metrics")
        assert plain.content_type == "text/plain"
        assert "up 1.0\n" in await plain.text()
        accept = {"Accept": "application/openmetrics-text; version=1.0.0"}
        response = await client.get("/metrics", headers=accept)
        assert response.content_type == "application/openmetrics-text"
        assert (await response.text()).endswith("# EOF\n")


def console_site(
    answered: list[ConsoleRequest], table: QuotaTable | None = None
) -> TestClient[web.Request, web.Application]:
    async def console(request: ConsoleRequest) -> ConsoleReply:
        answered.append(request)
        return ConsoleReply(418, b'{"reply": true}')

    pages = AdminSite(
        families=list,
        problems=list,
        warnings=list,
        table=table or QuotaTable(),
        console=console,
        guard=Guard("127.0.0.1", lambda: "t0ken"),
    )
    return TestClient(TestServer(pages.application()))


async def test_history() -> None:
    table = QuotaTable(lambda: [(1, BucketState(quota="q", user="alice", limit=10.0, rate=5.0))])
    await table.sample()
    async with console_site([], table) as client:
        series = (await (await client.get("/api/history")).json())["series"]
    assert series == [{"kind": "q", "broker": 1, "entity": {"user": "alice"}, "used": [0.5]}]


@pytest.mark.parametrize("what", READING)
async def test_requests_of_the_console(what: str) -> None:
    answered: list[ConsoleRequest] = []
    async with console_site(answered) as client:
        response = await client.get(f"/api/{what}", params={"user": "ü"})
        assert (response.status, await response.json()) == (418, {"reply": True})
    assert [(request.what, request.query) for request in answered] == [(what, {"user": "ü"})]


async def test_a_change_needs_the_token_and_has_an_author() -> None:
    answered: list[ConsoleRequest] = []
    bearer = {"Authorization": "Bearer t0ken"}
    async with console_site(answered) as client:
        assert (await client.post("/api/change", json={})).status == 401
        assert (await client.get("/api/change", headers=bearer)).status == 405
        # The types that a form of another site can send.
        for content_type in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
            form = {**bearer, "Content-Type": content_type}
            assert (await client.post("/api/change", data=b"{}", headers=form)).status == 415
        assert (await client.post("/api/change", json="x" * MAX_BODY, headers=bearer)).status == 413
        assert answered == []
        assert (await client.post("/api/change", json={"a": 1}, headers=bearer)).status == 418
    [request] = answered
    assert (request.what, request.body, request.author) == ("change", b'{"a": 1}', ADMIN_PORT)
    assert request.address == "127.0.0.1"


async def test_a_change_may_arrive_in_parts() -> None:
    answered: list[ConsoleRequest] = []
    headers = {"Authorization": "Bearer t0ken", "Content-Type": "application/json"}
    async with console_site(answered) as client:

        async def parts() -> AsyncIterator[bytes]:
            yield b'{"a"'
            # By its response, the server has read the first part.
            assert (await client.get("/healthz")).status == 200
            yield b": 1}"

        assert (await client.post("/api/change", data=parts(), headers=headers)).status == 418
    assert [request.body for request in answered] == [b'{"a": 1}']
